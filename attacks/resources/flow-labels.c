// title: Reserves IPv6 flow labels
// how: The table of labels has room for a few thousand and is one for the whole host. A program that fills it takes
//   labels from everyone else, and two sandboxes can tell each other something by it.
// without: seccomp
// limits: network=localhost
// expect: held
// optional: IPv6
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define IPV6_FLOWLABEL_MGR 32

// From linux/in6.h, which does not go together with netinet/in.h.
struct label_request {
    struct in6_addr destination;
    unsigned label;
    unsigned char action, share;
    unsigned short flags, expires, linger;
    unsigned padding;
};

int main(void) {
    // Get (0), created if need be (1), for this socket alone (1).
    struct label_request request = {.action = 0, .share = 1, .flags = 1};
    request.destination.s6_addr[15] = 1;
    int holder = socket(AF_INET6, SOCK_DGRAM, 0);
    if (setsockopt(holder, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &request, sizeof request) == 0)
        printf("BREACH reserved a flow label\n");
    else
        printf("HELD IPV6_FLOWLABEL_MGR: %s\n", strerror(errno));
    return 0;
}
