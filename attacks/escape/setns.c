// title: Asks to enter another namespace
// how: setns joins any namespace a descriptor names. The descriptor here is an ordinary file, so a
//   kernel that gets the call says "invalid argument"; any such answer means the call was let through.
// without: seccomp
// expect: held
// violations: setns
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    int file = open("/proc/self/status", O_RDONLY);
    setns(file, 0);
    if (errno == EINVAL)
        puts("BREACH setns reached the kernel");
    else
        printf("HELD setns: %s\n", strerror(errno));
    return 0;
}
