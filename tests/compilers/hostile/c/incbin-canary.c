// Has the assembler copy a file of the host into the program, which prints it. No include is needed,
// and nothing shows before the program runs. CANARY is replaced by the path.
#include <stdio.h>

__asm__(".section .rodata\n"
        "stolen: .incbin \"CANARY\"\n"
        ".byte 0\n"
        ".text\n");
extern const char stolen[];

int main(void) {
    puts(stolen);
    return 0;
}
