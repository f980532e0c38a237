// title: Opens a file by its inode number, past every path
// how: open_by_handle_at finds files by number on the whole file system, also above a bind mount. The
//   mount descriptor is invalid, so a kernel that gets the call complains of that.
// without: seccomp
// expect: held
// violations: open_by_handle_at
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    union {
        struct file_handle handle;
        char room[sizeof(struct file_handle) + 8];
    } file = {.handle = {.handle_bytes = 8, .handle_type = 1}};
    open_by_handle_at(-1, &file.handle, O_RDONLY);
    if (errno == EBADF)
        puts("BREACH open_by_handle_at reached the kernel");
    else
        printf("HELD open_by_handle_at: %s\n", strerror(errno));
    return 0;
}
