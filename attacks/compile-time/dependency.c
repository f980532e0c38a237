// title: Asks the compiler how old a host file is
// how: #pragma GCC dependency fails if the file is missing and warns if it is newer than the source.
// without: fresh-root
// args-in-source: yes
// expect: compile_error
#pragma GCC dependency "{host_file}"
#include <stdio.h>

int main(void) {
    puts("BREACH the compiler found the file");
    return 0;
}
