// title: Makes 32-bit system calls with int 0x80
// how: The 32-bit entry has other numbers for the same calls; a filter that does not look at the
//   architecture reads ptrace as something harmless.
// without: seccomp
// optional: kernels can be built or started without 32-bit support
// expect: held
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
#ifdef __x86_64__
    // In a child, because the answer may be to end the process that asks.
    pid_t child = fork();
    if (child == 0) {
        long answer;
        // 20 is getpid in the 32-bit table.
        __asm__ volatile("int $0x80" : "=a"(answer) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
        _exit((int)answer == getpid() ? 0 : (int)-answer & 127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        printf("HELD ended by signal %d\n", WTERMSIG(status));
    else if (WEXITSTATUS(status) == 0)
        puts("BREACH a 32-bit call was answered");
    else
        printf("HELD 32-bit getpid: %s\n", strerror(WEXITSTATUS(status)));
#else
    puts("HELD this processor has no int 0x80");
#endif
    return 0;
}
