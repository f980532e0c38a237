// title: Takes hold of a mount through the new mount interface
// how: open_tree is the first step of the file-descriptor mount calls, which older filters have never
//   heard of.
// without: seccomp
// expect: held
// violations: open_tree
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    long tree = syscall(SYS_open_tree, AT_FDCWD, "/", 0);
    if (tree >= 0)
        puts("BREACH a descriptor on the mount at /");
    else
        printf("HELD open_tree: %s\n", strerror(errno));
    return 0;
}
