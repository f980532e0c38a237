// title: Pastes into the console with TIOCLINUX
// how: TIOCLINUX selects and pastes text on a virtual console: the same injection as TIOCSTI by another
//   door. A pipe stands in for the terminal, and
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
    syscall(SYS_ioctl, ends[0], 0x541CUL, "x");
    if (errno == ENOTTY)
        puts("BREACH the request reached the kernel");
    else
        printf("HELD ioctl: %s\n", strerror(errno));
    return 0;
}
