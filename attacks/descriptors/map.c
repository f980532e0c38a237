// title: Maps a descriptor that was left open into memory
// how: A mapping outlives the descriptor, so it cannot be taken back by closing.
// without: closed-descriptors
// expect: held
#include <stdio.h>
#include <sys/mman.h>

int main(void) {
    for (int descriptor = 3; descriptor < 4096; descriptor++) {
        if (mmap(NULL, 1, PROT_READ, MAP_PRIVATE, descriptor, 0) != MAP_FAILED) {
            printf("BREACH descriptor %d is mapped\n", descriptor);
            return 0;
        }
    }
    puts("HELD no descriptor to map");
    return 0;
}
