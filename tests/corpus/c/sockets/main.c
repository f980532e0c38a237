/* One thread serves two clients with poll; datagrams; a pair with a descriptor sent across. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in bound(int socket) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(socket, (struct sockaddr *)&address, size) != 0)
        perror("bind");
    getsockname(socket, (struct sockaddr *)&address, &size);
    return address;
}

static void *serve(void *argument) {
    struct pollfd polled[3] = {{.fd = *(int *)argument, .events = POLLIN}, {.fd = -1}, {.fd = -1}};
    for (int known = 0, ended = 0; ended < 2;) {
        poll(polled, 3, -1);
        if (polled[0].revents & POLLIN)
            polled[++known] = (struct pollfd){.fd = accept(polled[0].fd, NULL, NULL), .events = POLLIN};
        for (int client = 1; client <= 2; client++) {
            char data[64];
            if (polled[client].fd < 0 || !(polled[client].revents & (POLLIN | POLLHUP)))
                continue;
            ssize_t size = read(polled[client].fd, data, sizeof data);
            for (ssize_t at = 0; at < size; at++)
                data[at] = (char)toupper((unsigned char)data[at]);
            if (size > 0 && write(polled[client].fd, data, (size_t)size) == size)
                continue;
            close(polled[client].fd);
            polled[client].fd = -1;
            ended++;
        }
    }
    return NULL;
}

int main(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), clients[2];
    struct sockaddr_in address = bound(listener);
    listen(listener, 5);
    pthread_t server;
    pthread_create(&server, NULL, serve, &listener);
    for (int client = 0; client < 2; client++) {
        clients[client] = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(clients[client], (struct sockaddr *)&address, sizeof address) != 0)
            perror("connect");
    }
    const char *words[] = {"first", "second"};
    for (int client = 1; client >= 0; client--) {
        char answer[64] = "";
        if (write(clients[client], words[client], strlen(words[client])) > 0 && read(clients[client], answer, 63) > 0)
            puts(answer);
        close(clients[client]);
    }
    pthread_join(server, NULL);
    close(listener);

    int receiver = socket(AF_INET, SOCK_DGRAM, 0), sender = socket(AF_INET, SOCK_DGRAM, 0), pair[2];
    address = bound(receiver);
    char text[64] = "";
    sendto(sender, "datagram", 8, 0, (struct sockaddr *)&address, sizeof address);
    ssize_t size = recv(receiver, text, 63, 0);
    printf("%zd %s\n", size, text);
    size = recv(receiver, text, 63, MSG_DONTWAIT);
    printf("%zd %d\n", size, errno == EAGAIN);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[0], "pair", 5) == 5 && read(pair[1], text, 5) == 5)
        puts(text);
    address.sin_port = htons(1);
    int refused = connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address);
    printf("%d %s\n", refused, strerror(errno));
    return 0;
}
