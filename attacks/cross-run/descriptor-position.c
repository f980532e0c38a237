// title: Leaves a message in the position of a shared descriptor
// how: Two runs that inherit one open file share its position. The first moves it, the second looks where
//   it is; nothing has to be written.
// without: closed-descriptors
// then: _descriptor-position-second.c
// expect: held
#include <stdio.h>
#include <unistd.h>

int main(void) {
    for (int descriptor = 3; descriptor < 4096; descriptor++)
        if (lseek(descriptor, 7777, SEEK_SET) == 7777)
            puts("left a position");
    return 0;
}
