// title: Checks whether exec may give privileges
// how: Without the no-new-privileges flag every set-user-id program on the toolchain's file system is a
//   candidate for more rights. Landlock and the filter cannot be put up without the flag, so they go
//   with it.
// without: no-new-privs, landlock, seccomp
// expect: held
#include <stdio.h>
#include <sys/prctl.h>

int main(void) {
    // By prctl rather than from /proc, where not every kernel tells it.
    switch (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)) {
    case 1:
        puts("HELD exec gives no privileges");
        return 0;
    case 0:
        puts("BREACH exec may give privileges");
        return 0;
    default:
        puts("BREACH nobody tells of the flag");
        return 0;
    }
}
