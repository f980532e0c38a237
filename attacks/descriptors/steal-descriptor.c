// title: Takes a descriptor out of another process
// how: pidfd_getfd copies an open file from one process into another. The victim is the program's own
//   child, so that only the filter can object.
// without: seccomp
// expect: held
// violations: pidfd_getfd
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    int ready[2];
    if (pipe(ready) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        dup2(ready[0], 40);
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        alarm(5);
        pause();
        _exit(0);
    }
    char byte;
    if (read(ready[0], &byte, 1) != 1)
        return 1;
    long process = syscall(SYS_pidfd_open, child, 0);
    if (syscall(SYS_pidfd_getfd, process, 40, 0) >= 0)
        puts("BREACH a descriptor of another process");
    else
        printf("HELD pidfd_getfd: %s\n", strerror(errno));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
