// title: Builds a host file into the program with .incbin
// how: The assembler copies any file it can read into the executable; if the compiler ran outside the
//   sandbox, the program would carry the host's files in.
// without: fresh-root
// args-in-source: yes
// expect: compile_error
#include <stdio.h>

__asm__(".data\n"
        "stolen: .incbin \"{host_file}\"\n"
        ".byte 0\n"
        ".text\n");
extern const char stolen[];

int main(void) {
    printf("BREACH %s\n", stolen);
    return 0;
}
