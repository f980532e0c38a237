// title: Keeps its memory in shared mappings
// how: Shared anonymous memory belongs to no single process and is easily missed by whoever adds up
//   private memory.
// without: memory
// limits: memory=48M
// expect: memory_limit
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(void) {
    const size_t size = 16 << 20;
    for (int count = 0; count < 16; count++) {
        char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED)
            return 1;
        memset(map, 1, size);
    }
    puts("BREACH 256 MiB in shared mappings");
    return 0;
}
