// title: Includes itself twice at every level
// how: Nothing is endless and no level is deep, but the number of files to read doubles with each: the
//   compiler is busy far beyond its time.
// without: wall-time
// limits: compile-timeout=500ms
// expect: timeout
#if __INCLUDE_LEVEL__ < 17
#include __FILE__
#include __FILE__
#endif
#if __INCLUDE_LEVEL__ == 0
#include <stdio.h>

int main(void) {
    puts("BREACH a quarter of a million files were read");
    return 0;
}
#endif
