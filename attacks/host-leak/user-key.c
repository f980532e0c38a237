// title: Reads a key from the caller's session keyring
// how: Keyrings belong to no namespace and pass from parent to child; whoever keeps disk or ticket keys
//   in the session that starts the sandbox would hand them in. The filter refuses the calls as well.
// without: keyring, seccomp
// args: {keyring_key}
// expect: held
// violations: keyctl
#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 2)
        return 1;
    char text[64] = "";
    long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", words[1], 0);
    if (key >= 0 && syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof text - 1) >= 0)
        printf("BREACH %s\n", text);
    else
        printf("HELD keyctl: %s\n", strerror(errno));
    return 0;
}
