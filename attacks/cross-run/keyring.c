// title: Leaves a message in the session keyring
// how: Keys belong to no namespace. Two runs that inherit the same session keyring can leave each other
//   notes in it; the second takes the note out again.
// without: keyring, seccomp
// args: {secret}
// then: _keyring-second.c
// expect: held
#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 2)
        return 1;
    long key = syscall(SYS_add_key, "user", "left-by-first-run", words[1], strlen(words[1]),
                       KEY_SPEC_SESSION_KEYRING);
    if (key >= 0)
        syscall(SYS_keyctl, KEYCTL_SET_TIMEOUT, key, 60);
    puts(key >= 0 ? "left a key" : strerror(errno));
    return 0;
}
