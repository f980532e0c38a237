// title: Makes the compiler print without end
// how: A warning in a file that includes itself comes out thousands of times; compiler messages are
//   output too.
// without: output
// limits: output=64K
// expect: output_limit
#if __INCLUDE_LEVEL__ < 10
#include __FILE__
#include __FILE__
#endif
#warning a message of some length that is printed once for every time this file is read
#if __INCLUDE_LEVEL__ == 0
#include <stdio.h>

int main(void) {
    puts("BREACH more than a thousand messages");
    return 0;
}
#endif
