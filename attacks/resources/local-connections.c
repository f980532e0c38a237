// title: Keeps its memory in local connections that it never accepts
// how: The packet that carries a connection to an AF_UNIX listener is charged to no cgroup, and stays until somebody
//   accepts the connection. The connecting end can be closed, so that they cost no descriptors.
// without: memory
// limits: memory=64M
// expect: memory_limit
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTENERS 4
#define CONNECTIONS 4000

int main(void) {
    int made = 0;
    for (int index = 0; index < LISTENERS; index++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        socklen_t length = sizeof address;
        int listener = socket(AF_UNIX, SOCK_STREAM, 0);
        // Without a name the kernel chooses an abstract one.
        if (bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)) != 0 || listen(listener, CONNECTIONS) != 0
            || getsockname(listener, (struct sockaddr *)&address, &length) != 0)
            return 1;
        for (int each = 0; each < CONNECTIONS; each++) {
            int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
            made += connect(client, (struct sockaddr *)&address, length) == 0;
            close(client);
        }
    }
    // Whoever counts from outside gets its turn.
    sleep(3);
    printf("%s %d connections\n", made > 15000 ? "BREACH" : "HELD", made);
    return 0;
}
