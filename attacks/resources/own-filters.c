// title: Keeps its memory in system-call filters of its own
// how: The kernel keeps a filter's text and its machine code, some 70 to 160 KiB for 4,096 instructions, and
//   charges neither to a cgroup. Eight for each of 64 processes are 70 MiB; and the room for machine code is one
//   for the whole host, so that a few sandboxes that use it up keep everybody from starting another.
// without: seccomp
// limits: memory=16M
// expect: held
// violations: prctl, seccomp
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LENGTH 4096

int main(void) {
    static struct sock_filter text[LENGTH];
    // Dividing by a register is long in machine code.
    for (int place = 1; place < LENGTH - 1; place++)
        text[place] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0);
    text[0] = (struct sock_filter)BPF_STMT(BPF_LDX | BPF_IMM, 1);
    text[LENGTH - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {LENGTH, text};
    int count = 0;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0)
        count++;
    while (count < 8 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0)
        count++;
    if (count > 0)
        printf("BREACH %d filters of %d instructions\n", count, LENGTH);
    else
        printf("HELD filter: %s\n", strerror(errno));
    return 0;
}
