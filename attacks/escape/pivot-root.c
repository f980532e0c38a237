// title: Swaps the root of the mount namespace
// how: With the capability over its mount namespace a program could put another root in place of the
//   one made for it. The directories do not exist; the kernel says so only to those who may.
// without: capabilities, seccomp
// expect: held
// violations: pivot_root
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    syscall(SYS_pivot_root, "/no-such-directory", "/no-such-directory");
    if (errno == ENOENT)
        puts("BREACH pivot_root was allowed and only missed its directory");
    else
        printf("HELD pivot_root: %s\n", strerror(errno));
    return 0;
}
