// title: Puts a key into the kernel's key store
// how: Keys are kernel memory outside every namespace and limit of the sandbox, and their code has had
//   its share of holes.
// without: seccomp
// expect: held
// violations: add_key
#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    if (syscall(SYS_add_key, "user", "attack", "text", 4, KEY_SPEC_PROCESS_KEYRING) >= 0)
        puts("BREACH a key was added");
    else
        printf("HELD add_key: %s\n", strerror(errno));
    return 0;
}
