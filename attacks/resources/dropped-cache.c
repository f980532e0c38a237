// title: Has the host read its files again
// how: Advice takes pages of a file out of memory that the host and other sandboxes use, as often as one likes. They
//   read from the disk again, and whoever measures how long that takes has a message.
// without: seccomp
// expect: held
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    // The kernel looks at the descriptor first: only a call that reaches it finds that there is none.
    int error = posix_fadvise(-1, 0, 0, POSIX_FADV_DONTNEED);
    if (error == EBADF)
        puts("BREACH the kernel was asked to drop pages");
    else
        printf("HELD posix_fadvise: %s\n", error == 0 ? "nothing was done" : strerror(error));
    return 0;
}
