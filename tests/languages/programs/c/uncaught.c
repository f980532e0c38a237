#include <assert.h>
#include <stdio.h>

int main(void) {
    puts("before");
    fflush(stdout);
    assert(!"out of stock");
}
