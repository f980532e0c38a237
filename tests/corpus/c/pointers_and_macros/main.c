/* Variable arguments, tables of functions, unions, bit fields, generic selection, flexible arrays. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "list.h"

#define DESCRIBE(value) _Generic((value), int: "int", double: "double", char *: "text", default: "other")
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT(...) #__VA_ARGS__

static int sum(int count, ...) {
    va_list numbers;
    va_start(numbers, count);
    int total = 0;
    while (count-- > 0)
        total += va_arg(numbers, int);
    va_end(numbers);
    return total;
}

static double add(double a, double b) { return a + b; }
static double multiply(double a, double b) { return a * b; }
static const struct { char symbol; double (*apply)(double, double); } operations[] = {{'+', add}, {'*', multiply}};

static double evaluate(const char *text) {
    double stack[8];
    size_t depth = 0;
    for (; *text != '\0'; text++) {
        if (*text >= '0' && *text <= '9')
            stack[depth++] = *text - '0';
        for (size_t at = 0; at < sizeof operations / sizeof *operations; at++)
            if (*text == operations[at].symbol && depth-- >= 2)
                stack[depth - 1] = operations[at].apply(stack[depth - 1], stack[depth]);
    }
    return stack[0];
}

union word { uint32_t whole; uint8_t bytes[4]; };
struct packed { unsigned kind : 3, length : 5; signed delta : 4; };
struct message { size_t size; char text[]; };

int main(void) {
    printf("%d %d %g\n", sum(0), sum(4, 1, 2, 3, 4), evaluate("34+2*5+"));
    printf("%s %s %s %s\n", DESCRIBE(1), DESCRIBE(1.0), DESCRIBE((char *)"a"), DESCRIBE(1.0f));
    int JOIN(na, me) = 5;
    printf("%d %s %zu\n", name, TEXT(a, b + c), offsetof(struct list, size));
    union word word = {.whole = 0x01020304};
    struct packed packed = {.kind = 9 & 7, .length = 31, .delta = -8};
    packed.delta--;
    printf("%d %u %u %d\n", word.bytes[0], packed.kind, packed.length, packed.delta);
    struct message *message = malloc(sizeof *message + 6);
    message->size = strlen(strcpy(message->text, "hello"));
    printf("%zu %s %zu\n", message->size, message->text, sizeof *message);
    free(message);
    struct list squares = {0};
    for (int number = 0; number < 20; number++)
        list_push(&squares, number * number);
    int grid[3][4] = {{1}, [2] = {[3] = 9}}, (*row)[4] = grid;
    printf("%zu %d %d %td\n", squares.size, list_at(&squares, 19), (*(row + 2))[3], &grid[2][3] - &grid[0][0]);
    list_free(&squares);
    printf("%c %s\n", "abc"[1], (const char *[]){"zero", "one"}[1]);
    return 0;
}
