// title: Keeps its memory in filters of sockets
// how: A filter is copied for each socket and translated to machine code. No memory limit counts either,
//   so that cheap sockets hold much.
// without: seccomp
// limits: memory=32M open-files=256
// expect: held
#include <linux/filter.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <sys/socket.h>

#define LENGTH 4000

int main(void) {
    static struct sock_filter code[LENGTH];
    for (int index = 0; index < LENGTH - 1; index++)
        code[index] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, index);
    code[LENGTH - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 65535);
    struct sock_fprog filter = {LENGTH, code};
    int attached = 0;
    for (int index = 0; index < 200; index++) {
        int holder = socket(AF_UNIX, SOCK_DGRAM, 0);
        if (setsockopt(holder, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0)
            break;
        attached++;
    }
    if (attached > 0)
        printf("BREACH %d filters of %d instructions\n", attached, LENGTH);
    else
        printf("HELD SO_ATTACH_FILTER: %s\n", strerror(errno));
    return 0;
}
