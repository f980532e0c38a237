// title: Reads another process's memory with process_vm_readv
// how: The call copies memory straight out of another process, without tracing it. The victim is the
//   program's own child, so that only the filter can object.
// without: seccomp
// expect: held
// violations: process_vm_readv
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    static char secret[16] = "in the other";
    pid_t child = fork();
    if (child == 0) {
        alarm(5);
        pause();
        _exit(0);
    }
    char copy[16] = "";
    struct iovec local = {copy, sizeof copy}, remote = {secret, sizeof secret};
    if (process_vm_readv(child, &local, 1, &remote, 1, 0) == sizeof copy)
        printf("BREACH read \"%s\" from another process\n", copy);
    else
        printf("HELD process_vm_readv: %s\n", strerror(errno));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
