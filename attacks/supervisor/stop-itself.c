// title: Stops itself
// how: A stopped program does not end and takes no signal but SIGKILL; whoever waits for it politely
//   waits for ever. A helper wakes it after three seconds.
// without: wall-time
// limits: timeout=1s
// expect: timeout
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    pid_t self = getpid();
    if (fork() == 0) {
        sleep(3);
        kill(self, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    puts("BREACH was stopped for three seconds");
    return 0;
}
