#include <stdio.h>

int main(int count, char **arguments) {
    for (int at = 1; at < count; at++)
        printf("%s%s", at == 1 ? "" : "|", arguments[at]);
    puts("");
}
