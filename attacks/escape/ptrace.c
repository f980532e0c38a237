// title: Takes control of another process with ptrace
// how: A tracer reads and rewrites its target and can make system calls in its name. The target is the
//   program's own child, so that only the filter can object.
// without: seccomp
// expect: held
// violations: ptrace
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(5);
        pause();
        _exit(0);
    }
    if (ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0)
        puts("BREACH the other process is traced");
    else
        printf("HELD ptrace: %s\n", strerror(errno));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
