// title: Makes system calls by their x32 numbers
// how: On x86-64 a set bit in the call's number selects another table; a filter that compares numbers
//   and forgets the bit lets everything through.
// without: seccomp
// optional: few kernels are built with the x32 table
// expect: held
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
#ifdef __x86_64__
    // In a child, because the answer may be to end the process that asks.
    pid_t child = fork();
    if (child == 0)
        _exit(syscall(0x40000000 | SYS_getpid) == getpid() ? 0 : errno);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        printf("HELD ended by signal %d\n", WTERMSIG(status));
    else if (WEXITSTATUS(status) == 0)
        puts("BREACH an x32 call was answered");
    else
        printf("HELD x32 getpid: %s\n", strerror(WEXITSTATUS(status)));
#else
    puts("HELD this processor has no x32 calls");
#endif
    return 0;
}
