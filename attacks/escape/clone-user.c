// title: Starts a child in a new user namespace with clone
// how: The namespace flag rides on an ordinary clone call; a filter that allows clone for fork and
//   threads has to look at the flags to notice.
// without: seccomp
// expect: held
// violations: clone
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    if (child > 0) {
        waitpid((pid_t)child, NULL, 0);
        puts("BREACH a child in a new user namespace");
    } else {
        printf("HELD clone: %s\n", strerror(errno));
    }
    return 0;
}
