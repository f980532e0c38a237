// title: Sets the machine's clock
// how: A wrong clock breaks certificates, logs and timers of everybody. The time given is invalid, so a
//   kernel that gets the call says so and sets nothing.
// without: seccomp
// expect: held
// violations: settimeofday
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

int main(void) {
    struct timeval impossible = {.tv_sec = 0, .tv_usec = 99000000};
    syscall(SYS_settimeofday, &impossible, NULL);
    if (errno == EINVAL)
        puts("BREACH settimeofday reached the kernel");
    else
        printf("HELD settimeofday: %s\n", strerror(errno));
    return 0;
}
