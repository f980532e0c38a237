// title: Makes the assembler write a giant file
// how: One line of source becomes 300 MiB of object file. The section is marked to be left out by the
//   linker, so the program itself stays small. Disk quota and file size limit both stand in the way.
// without: disk, rlimits
// expect: compile_error
#include <stdio.h>

__asm__(".pushsection .junk,\"e\"\n"
        ".zero 300 * 1024 * 1024\n"
        ".popsection\n");

int main(void) {
    puts("BREACH 300 MiB written at compile time");
    return 0;
}
