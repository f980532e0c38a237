// title: Keeps kernel memory in leases of files that have no descriptor
// how: Each open file can have a lease, which is charged to no cgroup. A mapping keeps a file open after its
//   descriptor is closed, so that their number has no limit but that of mappings.
// without: seccomp
// limits: memory=64M
// expect: held
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEASES 2000

int main(void) {
    int held = 0;
    int made = open("/tmp/leased", O_RDWR | O_CREAT, 0600);
    if (made < 0 || ftruncate(made, 4096) != 0 || close(made) != 0)
        return 1;
    while (held < LEASES) {
        int file = open("/tmp/leased", O_RDONLY);
        if (file < 0 || mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED || fcntl(file, F_SETLEASE, F_RDLCK) != 0)
            break;
        close(file);
        held++;
    }
    if (held == LEASES)
        printf("BREACH %d leases without a descriptor\n", held);
    else
        printf("HELD after %d: %s\n", held, strerror(errno));
    return 0;
}
