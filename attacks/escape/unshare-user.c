// title: Makes a user namespace to become root in it
// how: unshare(CLONE_NEWUSER) needs no privilege and hands out every capability over the new
//   namespace, which opens most of the kernel's attack surface.
// without: seccomp
// expect: held
// violations: unshare
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    if (unshare(CLONE_NEWUSER) == 0)
        puts("BREACH a new user namespace with every capability over it");
    else
        printf("HELD unshare: %s\n", strerror(errno));
    return 0;
}
