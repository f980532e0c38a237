// title: Forks without end
// how: Each process uses a number that others need; the host's table is finite. It stops at 100 children,
//   all of which end.
// without: pids
// limits: pids=16
// expect: held
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    pid_t children[100];
    int count = 0, problem = 0;
    while (count < 100) {
        pid_t child = fork();
        if (child == 0) {
            alarm(5);
            pause();
            _exit(0);
        }
        if (child < 0) {
            problem = errno;
            break;
        }
        children[count++] = child;
    }
    for (int index = 0; index < count; index++)
        kill(children[index], SIGKILL);
    while (wait(NULL) > 0) {
    }
    if (count == 100)
        puts("BREACH 100 processes at once");
    else
        printf("HELD after %d: %s\n", count, strerror(problem));
    return 0;
}
