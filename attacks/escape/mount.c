// title: Mounts a file system
// how: A mount over a system directory would replace what the program and its children see. The place
//   named does not exist, so that a kernel which gets the call says just that and changes nothing.
// without: seccomp
// expect: held
// violations: mount
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

int main(void) {
    mount("none", "/no-such-directory", "tmpfs", 0, "");
    if (errno == ENOENT)
        puts("BREACH mount reached the kernel");
    else
        printf("HELD mount: %s\n", strerror(errno));
    return 0;
}
