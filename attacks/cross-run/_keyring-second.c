#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    char text[128] = "";
    long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user",
                       "left-by-first-run", 0);
    if (key >= 0 && syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof text - 1) >= 0) {
        printf("BREACH %s\n", text);
        syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_SESSION_KEYRING);
    } else {
        printf("HELD keyctl: %s\n", strerror(errno));
    }
    return 0;
}
