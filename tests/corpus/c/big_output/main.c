/* Half a megabyte through standard output's own buffer. */
#include <stdio.h>

int main(void) {
    for (int number = 0; number < 10000; number++)
        printf("%05d abcdefghijabcdefghijabcdefghijabcdefghij %09d\n", number, number * number);
    return 0;
}
