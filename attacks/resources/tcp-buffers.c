// title: Keeps its memory in TCP connections
// how: What is sent and not received waits in socket buffers. Version 1 of the memory cgroup does not count
//   them, and once the host's own limit is reached, nobody's connections go on.
// without: memory
// limits: memory=256M open-files=256 network=localhost
// expect: held
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    static char block[65536];
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), large = 1 << 22;
    bind(listener, (struct sockaddr *)&address, length);
    listen(listener, 8);
    getsockname(listener, (struct sockaddr *)&address, &length);
    long total = 0;
    for (int count = 0; count < 60; count++) {
        int ends[2] = {socket(AF_INET, SOCK_STREAM, 0), -1};
        if (connect(ends[0], (struct sockaddr *)&address, length) != 0)
            break;
        ends[1] = accept(listener, NULL, NULL);
        for (int end = 0; end < 2; end++) {
            setsockopt(ends[end], SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
            fcntl(ends[end], F_SETFL, O_NONBLOCK);
        }
        for (int end = 0; end < 2; end++)
            for (ssize_t taken; total < (400 << 20) && (taken = write(ends[end], block, sizeof block)) > 0;)
                total += taken;
    }
    printf("%s %ld MiB in connections\n", total > (64 << 20) ? "BREACH" : "HELD", total >> 20);
    return 0;
}
