#include <stdio.h>

int main(void) {
    puts("before");
    return 3;
}
