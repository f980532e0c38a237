// title: Hangs up on the supervisor
// how: Whoever can shut down the socket on which init reports keeps the supervisor from learning how the
//   program ended, and turns its own failure into one of the sandbox.
// without: closed-descriptors
// expect: held
// breach: error
#include <stdio.h>
#include <sys/socket.h>

int main(void) {
    for (int descriptor = 3; descriptor < 4096; descriptor++) {
        if (shutdown(descriptor, SHUT_RDWR) == 0) {
            printf("BREACH descriptor %d was shut down\n", descriptor);
            return 0;
        }
    }
    puts("HELD no socket to shut down");
    return 0;
}
