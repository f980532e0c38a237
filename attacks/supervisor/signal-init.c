// title: Signals the sandbox's init
// how: Init reports how the program ended; a program that could signal it could end or confuse the
//   report. Signal 0 asks for permission and does nothing. Another user id and Landlock's scope both
//   stand in the way.
// without: capabilities, landlock-scope
// expect: held
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    if (kill(1, 0) == 0)
        puts("BREACH init can be signalled");
    else
        printf("HELD kill: %s\n", strerror(errno));
    return 0;
}
