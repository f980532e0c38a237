// title: Keeps its memory in answers of the kernel that it never reads
// how: The kernel answers questions about network interfaces at once. Answers wait in the asking socket,
//   and no memory limit counts them.
// without: seccomp
// limits: memory=32M open-files=256
// expect: held
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(void) {
    static char answer[65536];
    int sockets[200], count = 0, large = 1 << 22;
    struct {
        struct nlmsghdr header;
        struct ifinfomsg interface;
    } question = {
        .header = {sizeof question, RTM_GETLINK, NLM_F_REQUEST, 1, 0},
        .interface = {.ifi_index = 1},
    };
    for (int asked = 0; count < 200 && asked < 60000; count++) {
        int asking = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE);
        if (asking < 0)
            break;
        setsockopt(asking, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
        for (int each = 0; each < 4000 && send(asking, &question, sizeof question, 0) > 0; each++)
            asked++;
        sockets[count] = asking;
    }
    const char *stopped = strerror(errno);
    long bytes = 0;
    for (int index = 0; index < count; index++)
        // A full socket first says that it dropped some.
        for (ssize_t got; (got = recv(sockets[index], answer, sizeof answer, 0)) > 0 || errno == ENOBUFS;) {
            bytes += got > 0 ? got : 0;
            errno = 0;
        }
    if (bytes > 32 << 20)
        printf("BREACH %ld MiB of unread answers in %d sockets\n", bytes >> 20, count);
    else
        printf("HELD %ld KiB of unread answers in %d sockets: %s\n", bytes >> 10, count, stopped);
    return 0;
}
