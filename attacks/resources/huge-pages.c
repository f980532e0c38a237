// title: Takes huge pages out of the host's reserve
// how: Pages that an administrator has set aside for huge mappings are counted by no memory limit. On a host
//   that has set some aside, a program with 16 MiB could take them all.
// without: seccomp
// optional: some kernels do not have huge pages
// limits: memory=16M
// expect: held
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

// No machine has pages of this size. A kernel that gets to read it says so, whether it has any reserve or not;
// a host without one says that there is no memory.
#define ODD_SIZE (63u << 26)

int main(void) {
    const int mapping = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (int)ODD_SIZE;
    int reached = 0;
    reached += mmap(NULL, 1 << 21, PROT_READ | PROT_WRITE, mapping, -1, 0) != MAP_FAILED || errno != ENOMEM;
    reached += shmget(IPC_PRIVATE, 1 << 21, 0600 | SHM_HUGETLB | (int)ODD_SIZE) >= 0 || errno != ENOMEM;
    reached += memfd_create("huge", MFD_HUGETLB | ODD_SIZE) >= 0 || errno != ENOMEM;
    if (reached > 0)
        printf("BREACH %d of 3 ways to huge pages are open\n", reached);
    else
        printf("HELD huge pages: %s\n", strerror(errno));
    return 0;
}
