// title: Looks for open descriptors beyond the standard three
// how: A descriptor that was left open reaches what it stands for, whatever protects paths.
// without: closed-descriptors
// expect: held
#include <fcntl.h>
#include <stdio.h>

int main(void) {
    for (int descriptor = 3; descriptor < 4096; descriptor++) {
        if (fcntl(descriptor, F_GETFD) != -1) {
            printf("BREACH descriptor %d is open\n", descriptor);
            return 0;
        }
    }
    puts("HELD only 0, 1 and 2 are open");
    return 0;
}
