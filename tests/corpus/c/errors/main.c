/* Errors without exceptions: errno, jumps, clean-up in reverse, exit handlers, an exit code. */
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status { OK, OUT_OF_STOCK, CLOSED };
static const char *const words[] = {[OK] = "sold", [OUT_OF_STOCK] = "out of stock", [CLOSED] = "closed"};
static jmp_buf handler;

static enum status order(int count, int open) {
    enum status result = OK;
    char *paper = malloc(16), *pen = NULL;
    if (!open) {
        result = CLOSED;
        goto no_pen;
    }
    pen = malloc(16);
    if (count > 3)
        result = OUT_OF_STOCK;
    free(pen);
no_pen:
    free(paper);
    return result;
}

static int parse(const char *text) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0)
        longjmp(handler, errno);
    if (*end != '\0' || end == text)
        longjmp(handler, EINVAL);
    return (int)value;
}

static void last(void) { puts("first registered, last called"); }
static void first(void) { puts("last registered, first called"); }
static void destroyed(char **text) { printf("clean-up of %s\n", *text); }

int main(void) {
    printf("%s, %s, %s\n", words[order(2, 1)], words[order(5, 1)], words[order(1, 0)]);
    const char *texts[] = {"42", "x42", "99999999999999999999", ""};
    for (volatile int at = 0; at < 4; at++) {
        int error = setjmp(handler);
        if (error == 0)
            printf("%d\n", parse(texts[at]));
        else
            printf("'%s': %s\n", texts[at], strerror(error));
    }
    {
        __attribute__((cleanup(destroyed))) char *scoped = "scope";
        printf("in %s\n", scoped);
    }
    atexit(last);
    atexit(first);
    if (fopen("/no/such/file", "r") == NULL)
        perror("cannot open");
    exit(3);
}
