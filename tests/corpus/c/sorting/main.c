/* qsort with orders of our own, a stable merge sort over void pointers, a heap, bsearch. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*order)(const void *, const void *);
struct person { const char *name; int age; };

static int by_value(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}
static int by_age(const void *left, const void *right) {
    return ((const struct person *)left)->age - ((const struct person *)right)->age;
}
static int oldest_then_name(const void *left, const void *right) {
    int ages = by_age(right, left);
    return ages != 0 ? ages : strcmp(((const struct person *)right)->name, ((const struct person *)left)->name);
}

static void merge_sort(char *items, size_t count, size_t size, order compare, char *spare) {
    if (count < 2)
        return;
    size_t half = count / 2, left = 0, right = half;
    merge_sort(items, half, size, compare, spare);
    merge_sort(items + half * size, count - half, size, compare, spare);
    for (size_t at = 0; at < count; at++) {
        int take_left = right == count || (left < half && compare(items + left * size, items + right * size) <= 0);
        memcpy(spare + at * size, items + (take_left ? left++ : right++) * size, size);
    }
    memcpy(items, spare, count * size);
}

static void show(const struct person *people, size_t count) {
    for (size_t at = 0; at < count; at++)
        printf("%s%c", people[at].name, at + 1 == count ? '\n' : ' ');
}

int main(void) {
    enum { COUNT = 300000 };
    uint32_t *numbers = malloc(COUNT * sizeof *numbers), *copy = malloc(COUNT * sizeof *copy);
    char *spare = malloc(COUNT * sizeof *numbers);
    uint32_t state = 12345;
    for (int at = 0; at < COUNT; at++)
        copy[at] = numbers[at] = state = state * 1664525 + 1013904223;
    uint32_t some = numbers[77];
    qsort(numbers, COUNT, sizeof *numbers, by_value);
    merge_sort((char *)copy, COUNT, sizeof *copy, by_value, spare);
    uint32_t *found = bsearch(&some, numbers, COUNT, sizeof *numbers, by_value);
    int ordered = 1;
    for (int at = 1; at < COUNT; at++)
        ordered &= numbers[at - 1] <= numbers[at];
    printf("%d %d %d\n", ordered, memcmp(numbers, copy, COUNT * sizeof *copy) == 0, found != NULL && *found == some);

    struct person people[] = {{"Ada", 36}, {"Bo", 24}, {"Cy", 36}, {"Di", 24}, {"Ed", 30}};
    size_t count = sizeof people / sizeof *people;
    merge_sort((char *)people, count, sizeof *people, by_age, spare);
    show(people, count);
    qsort(people, count, sizeof *people, oldest_then_name);
    show(people, count);
    free(numbers);
    free(copy);
    free(spare);
    return 0;
}
