// title: Kills everything it can reach
// how: kill(-1, SIGKILL) goes to every process the caller may signal. Nothing but its own processes may
//   be hit, and init has to report the program's death as what it is.
// without: none
// why-no-pair: without the PID namespace it would end the processes of the user who runs the test.
// expect: runtime_error
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    if (getpid() > 100) {
        // Not inside a fresh PID namespace: doing it here could hurt somebody.
        puts("BREACH process numbers of the host");
        return 0;
    }
    // The call spares its caller, so a child makes it and the program itself is among the dead.
    if (fork() == 0) {
        kill(-1, SIGKILL);
        _exit(0);
    }
    sleep(3);
    puts("BREACH survived its own shot");
    return 0;
}
