#include <stdio.h>

int main(void) {
    char line[256];
    FILE *file = fopen("ü-文.txt", "w");
    if (file == NULL || fgets(line, sizeof line, stdin) == NULL)
        return 1;
    printf("grüße, 世界\n%s", line);
    fputs(line, file);
    return fclose(file);
}
