// title: Handles its own page faults
// how: userfaultfd can hold a thread inside the kernel at a chosen moment, which turns narrow races in
//   kernel code into sure hits.
// without: seccomp
// expect: held
// violations: userfaultfd
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    const int user_mode_only = 1;
    if (syscall(SYS_userfaultfd, user_mode_only) >= 0)
        puts("BREACH page faults can be held");
    else
        printf("HELD userfaultfd: %s\n", strerror(errno));
    return 0;
}
