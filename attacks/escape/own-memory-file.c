// title: Rewrites read-only memory through /proc/self/mem
// how: Writing to this file ignores page protections, so code and constants that the linker sealed can
//   be changed; exploits use it to plant code where none can be written.
// without: landlock
// expect: held
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const volatile char sealed[4] = "old";

int main(void) {
    int memory = open("/proc/self/mem", O_RDWR);
    if (memory < 0) {
        printf("HELD /proc/self/mem: %s\n", strerror(errno));
        return 0;
    }
    if (pwrite(memory, "new", 3, (off_t)(uintptr_t)sealed) == 3 && sealed[0] == 'n')
        puts("BREACH a constant in read-only memory was changed");
    else
        printf("HELD write to /proc/self/mem: %s\n", strerror(errno));
    return 0;
}
