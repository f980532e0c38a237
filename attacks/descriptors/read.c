// title: Reads from a descriptor that was left open
// how: Reading needs no path and no permission, only the number.
// without: closed-descriptors
// expect: held
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    for (int descriptor = 3; descriptor < 4096; descriptor++) {
        char text[65] = "";
        if (pread(descriptor, text, sizeof text - 1, 0) > 0) {
            text[strcspn(text, "\n")] = 0;
            printf("BREACH descriptor %d gives: %s\n", descriptor, text);
            return 0;
        }
    }
    puts("HELD no descriptor to read from");
    return 0;
}
