#include <stdio.h>

int main(void) {
    int *forgotten_value = "text";
    puts("hello, world");
    return forgotten_value == NULL;
}
