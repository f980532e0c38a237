// title: Puts its pages into a pipe
// how: vmsplice lends pages to a pipe instead of copying them. They outlive their mapping and are shared with
//   whoever reads the pipe, which several kernel exploits were built on.
// without: seccomp
// expect: held
// violations: vmsplice
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

int main(void) {
    static char page[4096];
    struct iovec memory = {page, sizeof page};
    int ends[2];
    if (pipe(ends) != 0)
        return 1;
    if (vmsplice(ends[1], &memory, 1, 0) > 0)
        puts("BREACH a page is in the pipe");
    else
        printf("HELD vmsplice: %s\n", strerror(errno));
    return 0;
}
