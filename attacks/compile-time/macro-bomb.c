// title: Expands a few macros into millions of tokens
// how: Each line doubles the one before several times over, so that a kilobyte of source becomes more
//   than the compiler's memory can hold.
// without: memory
// limits: compile-memory=64M
// expect: memory_limit
#include <stdio.h>

#define A "x", "x", "x", "x", "x", "x", "x", "x",
#define B A A A A A A A A
#define C B B B B B B B B
#define D C C C C C C C C
#define E D D D D D D D D
#define F E E E E E E E E

static const char *const many[] = {F F};

int main(void) {
    printf("BREACH %zu entries compiled\n", sizeof many / sizeof *many);
    return many[0] == NULL;
}
