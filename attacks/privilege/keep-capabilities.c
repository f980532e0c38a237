// title: Changes how identities and capabilities go together
// how: The secure bits decide whether becoming root gives capabilities; unlocked, a program can choose
//   rules under which it keeps or regains them.
// without: capabilities, seccomp
// expect: held
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

int main(void) {
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0)
        puts("BREACH the secure bits are not locked");
    else
        printf("HELD prctl: %s\n", strerror(errno));
    return 0;
}
