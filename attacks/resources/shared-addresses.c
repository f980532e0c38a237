// title: Keeps its memory in tables of sockets that share an address
// how: A socket that would share its address gets a table of 2 KiB for those that it shares it with, which is charged
//   to no cgroup. With the descriptors of all processes that is more than the limit's margin.
// without: seccomp
// limits: memory=64M network=localhost
// expect: held
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define SOCKETS 200

int main(void) {
    int one = 1, set = 0, bound = 0;
    socklen_t length = sizeof set;
    struct sockaddr_in address = {.sin_family = AF_INET};
    while (bound < SOCKETS) {
        int holder = socket(AF_INET, SOCK_DGRAM, 0);
        if (holder < 0 || setsockopt(holder, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0)
            break;
        // The call can succeed and do nothing.
        if (getsockopt(holder, SOL_SOCKET, SO_REUSEPORT, &set, &length) != 0 || set == 0)
            break;
        if (bind(holder, (struct sockaddr *)&address, sizeof address) != 0)
            break;
        bound++;
    }
    if (bound == SOCKETS)
        printf("BREACH %d tables\n", bound);
    else
        printf("HELD after %d: %s\n", bound, strerror(errno));
    return 0;
}
