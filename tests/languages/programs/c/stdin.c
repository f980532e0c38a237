#include <stdio.h>

int main(void) {
    long sum = 0;
    for (long number; scanf("%ld", &number) == 1;)
        sum += number;
    printf("%ld\n", sum);
}
