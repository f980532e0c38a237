/* fork, exec, pipes between two programs, exit codes, shared memory, popen. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(int in, int out, int unused, char *const command[]) {
    pid_t child = fork();
    if (child != 0)
        return child;
    dup2(in, 0);
    dup2(out, 1);
    if (unused >= 0)
        close(unused);
    execvp(command[0], command);
    _exit(errno == ENOENT ? 127 : 126);
}

static int code_of(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int main(void) {
    int between[2], back[2];
    if (pipe(between) != 0 || pipe(back) != 0)
        return 1;
    pid_t seq = start(0, between[1], between[0], (char *[]){"seq", "1", "2000", NULL});
    close(between[1]);
    pid_t wc = start(between[0], back[1], -1, (char *[]){"wc", "-l", NULL});
    close(between[0]);
    close(back[1]);
    char text[64] = "";
    ssize_t size = read(back[0], text, sizeof text - 1);
    int seq_code = code_of(seq), wc_code = code_of(wc);
    printf("%d %d %.*s", seq_code, wc_code, (int)size, text);

    printf("%d\n", code_of(start(0, 1, -1, (char *[]){"/no/such/program", NULL})));
    printf("%d\n", code_of(start(0, 1, -1, (char *[]){"/bin/sh", "-c", "exit 42", NULL})));
    printf("%d\n", code_of(start(0, 1, -1, (char *[]){"/bin/sh", "-c", "kill -9 $$", NULL})));
    fflush(stdout);

    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int own = 1;
    pid_t child = fork();
    if (child == 0) {
        *shared = 6 * 7;
        own = 2;
        _exit(own);
    }
    int code = code_of(child);
    printf("%d %d %d\n", code, *shared, own);

    FILE *sorted = popen("printf 'b\\na\\nc\\n' | sort -r | tr '\\n' ' '", "r");
    if (sorted != NULL && fgets(text, sizeof text, sorted) != NULL) {
        int status = pclose(sorted);
        printf("%s%d\n", text, WEXITSTATUS(status));
    }
    pid_t nobody = waitpid(-1, NULL, 0);
    printf("%d %s\n", nobody, strerror(errno));
    return 0;
}
