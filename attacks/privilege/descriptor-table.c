// title: Changes the processor's segment table
// how: modify_ldt is an x86 relic that lets a program write processor descriptors; the entry code around
//   it has been exploited repeatedly.
// without: seccomp
// optional: the call exists on x86 only
// expect: held
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
#ifdef SYS_modify_ldt
    char table[64];
    if ((int)syscall(SYS_modify_ldt, 0, table, sizeof table) >= 0)
        puts("BREACH modify_ldt was answered");
    else
        printf("HELD modify_ldt: %s\n", strerror(errno));
#else
    puts("HELD this processor has no segment table");
#endif
    return 0;
}
