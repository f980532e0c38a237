// title: Checks whether exec may give privileges
// how: Without the no-new-privileges flag every set-user-id program on the toolchain's file system is a
//   candidate for more rights. Landlock and the filter cannot be put up without the flag, so they go
//   with it.
// without: no-new-privs, landlock, seccomp
// expect: held
#include <stdio.h>
#include <string.h>

int main(void) {
    // From /proc rather than by prctl, so that no filter rule can stand in the way.
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "NoNewPrivs:", 11) == 0) {
            puts(line[12] == '1' ? "HELD exec gives no privileges" : "BREACH exec may give privileges");
            return 0;
        }
    }
    puts("BREACH the flag cannot be found");
    return 0;
}
