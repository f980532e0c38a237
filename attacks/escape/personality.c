// title: Makes every readable page executable
// how: personality(READ_IMPLIES_EXEC) undoes the separation of data and code for the program and all it
//   starts, which turns many small bugs into large ones.
// without: seccomp
// expect: held
// violations: personality
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>

int main(void) {
    if (personality(READ_IMPLIES_EXEC) != -1)
        puts("BREACH readable memory is executable now");
    else
        printf("HELD personality: %s\n", strerror(errno));
    return 0;
}
