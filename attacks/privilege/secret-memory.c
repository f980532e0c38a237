// title: Hides memory even from the kernel
// how: memfd_secret takes pages out of the kernel's own map, splitting it for good, and keeps what is in
//   them from any supervisor.
// without: seccomp
// optional: some kernels do not have secret memory
// expect: held
// violations: memfd_secret
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Not in every libc's headers; the number is the same on all architectures.
#define SYS_MEMFD_SECRET 447

int main(void) {
    if (syscall(SYS_MEMFD_SECRET, 0) >= 0)
        puts("BREACH secret memory was handed out");
    else
        printf("HELD memfd_secret: %s\n", strerror(errno));
    return 0;
}
