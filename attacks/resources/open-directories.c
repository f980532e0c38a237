// title: Keeps its memory in directories that it reads halfway
// how: Of a directory that is being read, ext4 keeps the names of one block, 10 to 20 KiB that no cgroup is charged
//   for, until it is closed. A few processes with some hundred descriptors each hold hundreds of megabytes.
// without: memory
// limits: memory=64M
// expect: memory_limit
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROCESSES 10
#define DIRECTORIES 200

static int open_all(void) {
    char names[400];
    for (int count = 0; count < DIRECTORIES; count++) {
        int directory = open("/usr/bin", O_RDONLY | O_DIRECTORY);
        if (directory < 0 || syscall(SYS_getdents64, directory, names, sizeof names) <= 0)
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
            char result = (char)open_all();
            if (write(ends[1], &result, 1) == 1)
                pause();
            _exit(1);
        }
    for (int process = 0; process < PROCESSES; process++) {
        char result = 1;
        if (read(ends[0], &result, 1) != 1)
            return 1;
        if (result != 0) {
            puts("HELD not every directory could be opened");
            return 0;
        }
    }
    // Whoever counts from outside gets its turn.
    sleep(3);
    printf("BREACH %d directories are open\n", PROCESSES * DIRECTORIES);
    return 0;
}
