// title: Takes hold of the process at the other end of a leaked socket
// how: A socket knows who made it, and hands out a handle on that process which no process number and
//   no namespace stands in the way of: signals can be sent through it, and its end be waited for.
// without: closed-descriptors
// optional: kernels before 6.5 give no handle
// expect: held
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int main(void) {
    int last = EBADF;
    for (int descriptor = 3; descriptor < 4096; descriptor++) {
        int handle = -1;
        socklen_t size = sizeof handle;
        if (getsockopt(descriptor, SOL_SOCKET, SO_PEERPIDFD, &handle, &size) == 0) {
            printf("BREACH descriptor %d gives a handle on a process outside\n", descriptor);
            return 0;
        }
        if (errno != EBADF)
            last = errno;
    }
    printf("HELD no socket gives a handle: %s\n", strerror(last));
    return 0;
}
