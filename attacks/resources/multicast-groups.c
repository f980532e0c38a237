// title: Keeps its memory in memberships of multicast groups
// how: A socket may be in any number of IPv6 groups. No memory limit counts the memberships, and the kernel
//   looks through all of them whenever one is added.
// without: seccomp
// expect: held
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(void) {
    int joined = 0;
    int member = socket(AF_INET6, SOCK_DGRAM, 0);
    for (unsigned group = 0; group < 500; group++) {
        struct ipv6_mreq request = {.ipv6mr_interface = 1};
        request.ipv6mr_multiaddr.s6_addr[0] = 0xff;
        request.ipv6mr_multiaddr.s6_addr[1] = 1;
        memcpy(&request.ipv6mr_multiaddr.s6_addr[12], &group, sizeof group);
        if (setsockopt(member, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request, sizeof request) != 0)
            break;
        joined++;
    }
    if (joined == 500)
        printf("BREACH in %d groups with one socket\n", joined);
    else
        printf("HELD in %d groups: %s\n", joined, strerror(errno));
    return 0;
}
