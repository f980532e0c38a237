// title: Keeps its memory in pages with one message each
// how: Messages are charged one by one, but a page of them stays as long as one is left in it. With many queues a
//   program fills pages with messages of one size, removes all but one of each page, and goes on with the next size.
//   Each size holds as much as the memory limit once more.
// without: ipc-limits
// expect: held
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

// Enough for pages of some megabytes, of every size.
#define QUEUES 512

int main(void) {
    struct { long kind; char text[1000]; } message = {.kind = 1};
    int queues = 0, messages = 0, sets = 0;
    for (; queues < QUEUES; queues++) {
        int queue = msgget(IPC_PRIVATE, 0600);
        if (queue < 0)
            break;
        while (msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) == 0)
            messages++;
    }
    int error = errno;
    while (sets < QUEUES && semget(IPC_PRIVATE, 1, 0600) >= 0)
        sets++;
    if (queues == QUEUES && sets == QUEUES)
        printf("BREACH %d queues with %d messages, and %d sets of semaphores\n", queues, messages, sets);
    else
        printf("HELD %d queues (%s) and %d sets of semaphores\n", queues, strerror(error), sets);
    return 0;
}
