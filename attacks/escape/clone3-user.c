// title: Starts a child in a new user namespace with clone3
// how: clone3 takes its flags in memory, where a filter cannot read them, so the whole call has to be
//   refused.
// without: seccomp
// expect: held
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &args, sizeof args);
    if (child == 0)
        _exit(0);
    if (child > 0) {
        waitpid((pid_t)child, NULL, 0);
        puts("BREACH a child in a new user namespace");
    } else {
        printf("HELD clone3: %s\n", strerror(errno));
    }
    return 0;
}
