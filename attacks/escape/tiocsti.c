// title: Types into the terminal with TIOCSTI
// how: TIOCSTI puts characters into a terminal's input as if its user had typed them: a shell outside
//   then runs them once the sandbox is gone. A pipe stands in for the terminal, and
//   says "not a terminal" if the call comes through.
// without: seccomp
// expect: held
// violations: ioctl
#define _DEFAULT_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    if (pipe(ends) != 0)
        return 1;
    syscall(SYS_ioctl, ends[0], TIOCSTI, "x");
    if (errno == ENOTTY)
        puts("BREACH the request reached the kernel");
    else
        printf("HELD ioctl: %s\n", strerror(errno));
    return 0;
}
