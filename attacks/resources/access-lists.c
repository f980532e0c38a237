// title: Keeps its memory in access control lists
// how: An access control list of 8,000 entries is 64 KiB of kernel memory that no cgroup is charged for.
//   Each file has room for one and each directory for two, so that a thousand empty ones hold 128 MiB.
// without: seccomp
// optional: some kernels have no access control lists on a tmpfs
// limits: memory=16M
// expect: held
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define ENTRIES 8000
#define FILES 400

struct entry {
    uint16_t tag, permissions;
    uint32_t id;
};

static struct {
    uint32_t version;
    struct entry entries[ENTRIES];
} list;

int main(void) {
    list.version = 2;
    for (int place = 0; place < ENTRIES; place++)
        list.entries[place] = (struct entry){2, 7, 1000};
    list.entries[0] = (struct entry){1, 7, -1};
    list.entries[ENTRIES - 3] = (struct entry){4, 5, -1};
    list.entries[ENTRIES - 2] = (struct entry){16, 7, -1};
    list.entries[ENTRIES - 1] = (struct entry){32, 5, -1};
    int count = 0;
    for (; count < FILES; count++) {
        char name[32];
        snprintf(name, sizeof name, "/tmp/%d", count);
        if (mkdir(name, 0700) != 0 ||
            setxattr(name, "system.posix_acl_default", &list, sizeof list, 0) != 0)
            break;
    }
    if (count == FILES)
        printf("BREACH %zu MiB in lists\n", FILES * sizeof list >> 20);
    else
        printf("HELD after %d lists: %s\n", count, strerror(errno));
    return 0;
}
