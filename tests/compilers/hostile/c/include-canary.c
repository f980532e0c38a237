// Includes a file of the host by its absolute path. What the compiler cannot make sense of it prints,
// so a bare compiler tells the file's first line. CANARY is replaced by the path.
#include "CANARY"

int main(void) {
    return 0;
}
