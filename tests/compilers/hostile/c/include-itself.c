// Includes itself twice for as long as the compiler allows, which is 200 levels deep: the levels are
// bounded, and the number of files, two to the power of 200, is not.
#include __FILE__
#include __FILE__

int main(void) {
    return 0;
}
