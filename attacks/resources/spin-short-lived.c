// title: Burns CPU time in children that are soon gone
// how: Sixty children live for 50 milliseconds each. Whoever adds up the processes that are alive at the
//   moment of looking sees almost nothing.
// without: cpu-time
// limits: cpu-time=1s timeout=20s
// expect: timeout
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    for (int turn = 0; turn < 60; turn++) {
        pid_t child = fork();
        if (child == 0) {
            clock_t start = clock();
            while (clock() - start < CLOCKS_PER_SEC / 20) {
            }
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    puts("BREACH three seconds of CPU time in sixty children");
    return 0;
}
