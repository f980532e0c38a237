// title: Runs away by forking
// how: Every few milliseconds the work moves to a new process in a new session while the old one ends,
//   so that a kill aimed at one process id comes too late. The chain ends by itself after three seconds.
// without: wall-time
// limits: timeout=1s
// expect: timeout
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    if (pipe(ends) != 0)
        return 1;
    time_t stop = time(NULL) + 4;
    pid_t link = fork();
    if (link == 0) {
        while (time(NULL) < stop) {
            usleep(5000);
            if (fork() != 0)
                _exit(0);
            setsid();
        }
        _exit(0);
    }
    // The last link of the chain closes the pipe.
    close(ends[1]);
    char end;
    if (read(ends[0], &end, 1) == 0)
        puts("BREACH the chain ran to its end");
    return 0;
}
