// title: Changes the root directory
// how: A second chroot is the oldest way out of a first one. The directory named does not exist, so a
//   kernel that gets the call says that.
// without: seccomp
// expect: held
// violations: chroot
#define _DEFAULT_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    if (chroot("/no-such-directory") != 0 && errno == ENOENT)
        puts("BREACH chroot reached the kernel");
    else
        printf("HELD chroot: %s\n", strerror(errno));
    return 0;
}
