// title: Keeps its memory in pipes
// how: What is written to a pipe and never read stays in kernel memory that belongs to no process.
// without: memory
// limits: memory=16M open-files=512
// expect: memory_limit
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    static char block[65536];
    memset(block, 1, sizeof block);
    long total = 0;
    for (int count = 0; count < 200; count++) {
        int ends[2];
        if (pipe2(ends, O_NONBLOCK) != 0)
            break;
        // Refused once the user's share of pipe pages is used up; then the usual size has to do.
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        ssize_t written;
        while ((written = write(ends[1], block, sizeof block)) > 0)
            total += written;
    }
    printf("%s %ld MiB in pipes\n", total > (32 << 20) ? "BREACH" : "HELD", total >> 20);
    return 0;
}
