// title: Opens a performance counter
// how: Counters watch the processor that all share, and their code is a rich source of kernel bugs. The
//   flags are nonsense, so a kernel that gets the call says "invalid argument".
// without: seccomp
// expect: held
// violations: perf_event_open
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event};
    syscall(SYS_perf_event_open, &event, 0, -1, -1, ~0UL);
    if (errno == EINVAL)
        puts("BREACH perf_event_open reached the kernel");
    else
        printf("HELD perf_event_open: %s\n", strerror(errno));
    return 0;
}
