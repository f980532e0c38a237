// title: Keeps its memory in sockets
// how: What is sent to a socket and never received stays in kernel memory that belongs to no process.
// without: memory
// limits: memory=16M open-files=512
// expect: memory_limit
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    static char block[16384];
    memset(block, 1, sizeof block);
    long total = 0;
    for (int count = 0; count < 240; count++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0)
            break;
        for (int end = 0; end < 2; end++) {
            ssize_t written;
            while ((written = write(ends[end], block, sizeof block)) > 0)
                total += written;
        }
    }
    printf("%s %ld MiB in sockets\n", total > (32 << 20) ? "BREACH" : "HELD", total >> 20);
    return 0;
}
