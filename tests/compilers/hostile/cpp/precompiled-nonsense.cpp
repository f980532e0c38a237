// Brings its own precompiled header, which the compiler prefers to the header itself. Such a file is an
// image of the compiler's memory; this one is nonsense behind the first letters of a real one.
#include "x.h"

int main() {
    return 0;
}
