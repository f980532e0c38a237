// title: Keeps its memory in datagrams that it never finishes
// how: With MSG_MORE the kernel collects a datagram of up to 64 KiB in a sending socket. No memory limit counts
//   what waits there.
// without: seccomp
// limits: memory=16M open-files=2048 network=localhost
// expect: held
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(void) {
    static char block[30000];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    long bytes = 0;
    for (int index = 0; index < 1500; index++) {
        int sender = socket(AF_INET, SOCK_DGRAM, 0);
        if (connect(sender, (struct sockaddr *)&address, sizeof address) != 0)
            break;
        for (int part = 0; part < 2; part++) {
            ssize_t taken = send(sender, block, sizeof block, MSG_MORE | MSG_DONTWAIT);
            if (taken < 0)
                break;
            bytes += taken;
        }
    }
    if (bytes > 32 << 20)
        printf("BREACH %ld MiB in unfinished datagrams\n", bytes >> 20);
    else
        printf("HELD %ld KiB in unfinished datagrams: %s\n", bytes >> 10, strerror(errno));
    return 0;
}
