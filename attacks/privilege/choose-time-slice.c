// title: Chooses the length of its time slices
// how: Since Linux 6.12 a thread can ask for slices of up to 100 ms instead of 3. A neighbor on the same CPU waits
//   that long each time it wakes up.
// without: seccomp
// expect: held
// violations: sched_setattr
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

int main(void) {
    struct attributes wanted;
    if (syscall(SYS_sched_getattr, 0, &wanted, sizeof wanted, 0) != 0) {
        // gVisor's kernel has neither call.
        printf("HELD sched_getattr: %s\n", strerror(errno));
        return 0;
    }
    wanted.runtime = 100000000;
    if (syscall(SYS_sched_setattr, 0, &wanted, 0) == 0)
        puts("BREACH its thread has the time slices that it asked for");
    else
        printf("HELD sched_setattr: %s\n", strerror(errno));
    return 0;
}
