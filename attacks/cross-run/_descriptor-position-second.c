#include <stdio.h>
#include <unistd.h>

int main(void) {
    for (int descriptor = 3; descriptor < 4096; descriptor++) {
        if (lseek(descriptor, 0, SEEK_CUR) == 7777) {
            printf("BREACH the position of descriptor %d was moved by the other run\n", descriptor);
            return 0;
        }
    }
    puts("HELD no descriptor is shared");
    return 0;
}
