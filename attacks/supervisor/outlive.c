// title: Leaves a daemon behind
// how: The program ends at once; a grandchild in a session of its own keeps the output pipe open, waits,
//   and would speak two seconds later. The report has to come without waiting for it.
// without: none
// why-no-pair: the end of the PID namespace and the kill of the whole cgroup each end the daemon, and a
//   daemon let loose on the host on purpose is no test.
// expect: held
#include <stdio.h>
#include <unistd.h>

int main(void) {
    if (fork() == 0) {
        setsid();
        if (fork() != 0)
            _exit(0);
        sleep(2);
        puts("BREACH still alive");
        fflush(stdout);
        _exit(0);
    }
    puts("HELD unless somebody speaks after this line");
    return 0;
}
