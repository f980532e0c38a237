// title: Carries a capability over exec in the ambient set
// how: A capability raised into the ambient set stays through exec of any program.
// without: capabilities, seccomp
// expect: held
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    memset(sets, 0, sizeof sets);
    if (syscall(SYS_capget, &header, sets) != 0) {
        printf("HELD capget: %s\n", strerror(errno));
        return 0;
    }
    sets[0].inheritable |= 1u << CAP_NET_RAW;
    syscall(SYS_capset, &header, sets);
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0) == 0)
        puts("BREACH CAP_NET_RAW is in the ambient set");
    else
        printf("HELD prctl: %s\n", strerror(errno));
    return 0;
}
