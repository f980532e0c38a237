// title: Unmounts what lies over the host's files
// how: Taking a mount away can uncover what it hides. The flags are nonsense, so that a kernel which
//   gets the call refuses them before it does anything.
// without: seccomp
// expect: held
// violations: umount2
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

int main(void) {
    umount2("/", 0x40000000);
    if (errno == EINVAL)
        puts("BREACH umount2 reached the kernel");
    else
        printf("HELD umount2: %s\n", strerror(errno));
    return 0;
}
