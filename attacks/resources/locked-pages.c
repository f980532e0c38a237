// title: Keeps the host's page cache in memory
// how: Pages of a file that the host has read are charged to nobody here. Locked, they cannot be given up: with a
//   process for each part, a program that may use little memory takes the host much.
// without: rlimits
// limits: memory=64M pids=64
// expect: held
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PART (512 << 10)

int main(void) {
    // A file that is mapped by this very process, and so is in memory.
    char line[512], path[256] = "";
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && path[0] == 0 && fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "/libc") != NULL)
            sscanf(line, "%*s %*s %*s %*s %*s %255s", path);
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0 || status.st_size < PART) {
        puts("HELD no large file");
        return 0;
    }
    void *pages = mmap(NULL, PART, PROT_READ, MAP_PRIVATE, file, 0);
    if (pages != MAP_FAILED && mlock(pages, PART) == 0)
        printf("BREACH %d KiB of %s are locked\n", PART >> 10, path);
    else
        printf("HELD mlock: %s\n", strerror(errno));
    return 0;
}
