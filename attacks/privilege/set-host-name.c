// title: Renames the machine
// how: The name goes into prompts, logs and certificates. It is set to what it already is, so nothing
//   changes even where the call is allowed.
// without: capabilities, seccomp
// expect: held
// violations: sethostname
#define _DEFAULT_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    char name[65] = "";
    gethostname(name, sizeof name - 1);
    if (sethostname(name, strlen(name)) == 0)
        puts("BREACH the host name was set");
    else
        printf("HELD sethostname: %s\n", strerror(errno));
    return 0;
}
