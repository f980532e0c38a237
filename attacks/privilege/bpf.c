// title: Calls the kernel's program loader, bpf
// how: Loaded programs run in the kernel; their checker has been fooled many times. The command number
//   is nonsense, so a kernel that gets the call says "invalid argument".
// without: seccomp
// expect: held
// violations: bpf
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    char attributes[128] = {0};
    syscall(SYS_bpf, 9999, attributes, sizeof attributes);
    if (errno == EINVAL)
        puts("BREACH bpf reached the kernel");
    else
        printf("HELD bpf: %s\n", strerror(errno));
    return 0;
}
