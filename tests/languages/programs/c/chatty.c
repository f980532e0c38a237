#include <stdio.h>

int main(void) {
    for (;;)
        puts("again and again");
}
