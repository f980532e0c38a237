// title: Keeps its memory in keys of TCP connections
// how: A socket takes one key for each address that it may speak to, and keeps them without being
//   connected. No memory limit counts them.
// without: seccomp
// expect: held
// optional: TCP MD5 signatures
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(void) {
    int kept = 0;
    int holder = socket(AF_INET, SOCK_STREAM, 0);
    for (int index = 0; index < 500; index++) {
        struct tcp_md5sig key = {.tcpm_keylen = 80};
        struct sockaddr_in *address = (struct sockaddr_in *)&key.tcpm_addr;
        address->sin_family = AF_INET;
        address->sin_addr.s_addr = htonl(0x0a000000 + index);
        if (setsockopt(holder, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof key) != 0)
            break;
        kept++;
    }
    if (kept == 500)
        printf("BREACH %d keys in one socket\n", kept);
    else
        printf("HELD %d keys: %s\n", kept, strerror(errno));
    return 0;
}
