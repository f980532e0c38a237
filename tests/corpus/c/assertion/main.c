/* An assertion that does not hold. */
#include <assert.h>
#include <stdio.h>

static int order(int count) {
    assert(count <= 3 && "the stock is large enough");
    return count;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%d\n", order(2));
    printf("%d\n", order(5));
    return 0;
}
