/* Divides by zero in whole numbers, which the processor does not do. */
#include <stdio.h>

int main(int count, char **arguments) {
    (void)arguments;
    puts("before");
    fflush(stdout);
    volatile int zero = count - 1;
    return 7 / zero;
}
