// title: Keeps its memory in connections that it never accepts
// how: A connection that waits to be accepted is charged to nobody, with all that was sent over it. The sending
//   end can be closed, so that they cost no descriptors.
// without: memory
// limits: memory=64M network=localhost
// expect: memory_limit
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    static char block[60000];
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    int made = 0;
    for (int index = 0; index < 3; index++) {
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        address.sin_port = 0;
        bind(listener, (struct sockaddr *)&address, length);
        listen(listener, 4096);
        getsockname(listener, (struct sockaddr *)&address, &length);
        for (int each = 0; each < 4000; each++) {
            int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
            if (connect(client, (struct sockaddr *)&address, length) == 0 || errno == EINPROGRESS)
                made += write(client, block, sizeof block) > 0;
            close(client);
        }
    }
    printf("%s %d connections with what was sent over them\n", made > 10000 ? "BREACH" : "HELD", made);
    return 0;
}
