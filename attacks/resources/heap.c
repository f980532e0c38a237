// title: Allocates memory without end
// how: Touches one megabyte after the other; it stops by itself at 512 MiB, eight times its limit.
// without: memory
// limits: memory=64M
// expect: memory_limit
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    for (int count = 0; count < 512; count++) {
        char *block = malloc(1 << 20);
        if (block == NULL)
            return 1;
        memset(block, 1, 1 << 20);
        // Keeps the compiler from leaving out memory that is never read.
        __asm__ volatile("" : : "r"(block) : "memory");
    }
    puts("BREACH 512 MiB");
    return 0;
}
