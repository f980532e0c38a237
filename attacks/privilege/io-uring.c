// title: Sets up io_uring
// how: Requests placed in a ring are carried out without system calls, so no filter sees them; and the
//   code behind it is young and has been broken often.
// without: seccomp
// optional: some hosts switch io_uring off for everyone
// expect: held
#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    struct io_uring_params parameters;
    memset(&parameters, 0, sizeof parameters);
    if (syscall(SYS_io_uring_setup, 1, &parameters) >= 0)
        puts("BREACH a ring was set up");
    else
        printf("HELD io_uring_setup: %s\n", strerror(errno));
    return 0;
}
