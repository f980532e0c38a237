// title: Watches files through fanotify
// how: fanotify reports what other processes do with files, for whole mounts at a time.
// without: seccomp
// optional: kernels before 5.13 keep it from ordinary users
// expect: held
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>

int main(void) {
    if (fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY) >= 0)
        puts("BREACH a fanotify group was made");
    else
        printf("HELD fanotify_init: %s\n", strerror(errno));
    return 0;
}
