// title: Asks the preprocessor whether a host file exists
// how: __has_include answers for any path without an error message that could be noticed.
// without: fresh-root
// args-in-source: yes
// expect: held
#include <stdio.h>

int main(void) {
#if __has_include("{host_file}")
    puts("BREACH the compiler sees the file");
#else
    puts("HELD the compiler sees no such file");
#endif
    return 0;
}
