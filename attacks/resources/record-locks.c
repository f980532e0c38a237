// title: Keeps its memory in record locks
// how: Every locked range of a file is some 200 bytes of kernel memory that no cgroup is charged for, and there is
//   no limit for them. A few processes with some hundred files each hold gigabytes.
// without: memory
// limits: memory=16M timeout=60s
// expect: memory_limit
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PROCESSES 8
#define FILES 150
#define RANGES 80

static int lock_all(int process) {
    int files[FILES];
    for (int file = 0; file < FILES; file++) {
        char name[32];
        snprintf(name, sizeof name, "/tmp/%d.%d", process, file);
        files[file] = open(name, O_RDWR | O_CREAT, 0600);
        if (files[file] < 0)
            return 1;
    }
    for (int range = 0; range < RANGES; range++)
        for (int file = 0; file < FILES; file++) {
            // One byte each, from the end to the beginning: neighbours would become one.
            struct flock lock = {.l_type = F_WRLCK, .l_start = 2 * (RANGES - range), .l_len = 1};
            if (fcntl(files[file], F_SETLK, &lock) != 0)
                return 1;
        }
    return 0;
}

int main(void) {
    int ends[2];
    if (pipe(ends) != 0)
        return 1;
    for (int process = 0; process < PROCESSES; process++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            char result = (char)lock_all(process);
            if (write(ends[1], &result, 1) == 1)
                pause();
            _exit(1);
        }
    int failed = 0;
    for (int process = 0; process < PROCESSES; process++) {
        char result = 1;
        if (read(ends[0], &result, 1) != 1)
            return 1;
        failed += result;
    }
    if (failed > 0) {
        puts("HELD not every range could be locked");
    } else {
        // Whoever counts from outside gets its turn.
        sleep(1);
        printf("BREACH %d locks are held\n", PROCESSES * FILES * RANGES);
    }
    return 0;
}
