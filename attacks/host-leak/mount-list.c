// title: Lists mounts through listmount
// how: The newer listmount call answers without any /proc, and its sibling tells where each mount comes
//   from on the host.
// without: seccomp
// optional: kernels before 6.8 do not have the call
// expect: held
// violations: listmount
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Not in every libc's headers yet; the number is the same on all architectures.
#define SYS_LISTMOUNT 458

int main(void) {
    struct {
        uint32_t size, spare;
        uint64_t mount, after;
    } request = {.size = sizeof request, .mount = UINT64_MAX};
    uint64_t mounts[64];
    long count = syscall(SYS_LISTMOUNT, &request, mounts, 64, 0);
    if (count >= 0)
        printf("BREACH %ld mounts listed\n", count);
    else
        printf("HELD listmount: %s\n", strerror(errno));
    return 0;
}
