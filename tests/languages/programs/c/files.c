#include <stdio.h>

int main(void) {
    FILE *in = fopen("in/numbers.txt", "r"), *out = fopen("sum.txt", "w");
    long sum = 0;
    for (long number; fscanf(in, "%ld", &number) == 1;)
        sum += number;
    fprintf(out, "%ld\n", sum);
    return fclose(in) + fclose(out);
}
