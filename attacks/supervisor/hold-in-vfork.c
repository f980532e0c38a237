// title: Hides in a suspended call
// how: A parent in vfork is suspended inside the kernel until its child lets go, and hears no ordinary
//   signal meanwhile. The child lets go after three seconds.
// without: wall-time
// limits: timeout=1s
// expect: timeout
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    pid_t child = vfork();
    if (child == 0) {
        struct timespec rest = {3, 0};
        syscall(SYS_nanosleep, &rest, NULL);
        _exit(0);
    }
    puts("BREACH was suspended for three seconds");
    return 0;
}
