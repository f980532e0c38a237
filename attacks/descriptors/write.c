// title: Speaks on any descriptor that was left open
// how: A message on the launcher's control socket, or bytes into a host file, would make orders out of
//   the program's words. The supervisor takes them for a report that it cannot read.
// without: closed-descriptors
// expect: held
// breach: error
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    for (int descriptor = 3; descriptor < 4096; descriptor++) {
        if (send(descriptor, "\0garbage", 8, MSG_DONTWAIT | MSG_NOSIGNAL) > 0 ||
            write(descriptor, "garbage\n", 8) > 0) {
            printf("BREACH descriptor %d took a message\n", descriptor);
            return 0;
        }
    }
    puts("HELD no descriptor to write to");
    return 0;
}
