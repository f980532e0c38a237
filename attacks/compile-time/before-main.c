// title: Acts before main
// how: A constructor runs while the program is being loaded. If it were confined only afterwards, it
//   would be on the outside of them.
// without: seccomp
// expect: held
// violations: ptrace
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>

static int problem;

__attribute__((constructor)) static void early(void) {
    problem = ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 0 : errno;
}

int main(void) {
    if (problem == 0)
        puts("BREACH a forbidden call went through before main");
    else
        printf("HELD ptrace before main: %s\n", strerror(problem));
    return 0;
}
