/* Deep, nested and mutual recursion, a tree, and permutations by call-back. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long depth(long number) {
    volatile long frame[4] = {number};
    return number == 0 ? 0 : 1 + depth(frame[0] - 1);
}

static unsigned ackermann(unsigned m, unsigned n) {
    return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

struct tree { struct tree *left, *right; int value; };

static void insert(struct tree **place, int value) {
    if (*place == NULL) {
        *place = calloc(1, sizeof **place);
        (*place)->value = value;
    } else {
        insert(value < (*place)->value ? &(*place)->left : &(*place)->right, value);
    }
}

static void walk_and_free(struct tree *tree) {
    if (tree == NULL)
        return;
    walk_and_free(tree->left);
    printf("%d ", tree->value);
    walk_and_free(tree->right);
    free(tree);
}

static int permute(char *letters, size_t from, void (*visit)(const char *)) {
    if (letters[from] == '\0') {
        visit(letters);
        return 1;
    }
    int count = 0;
    for (size_t at = from; at < strlen(letters); at++) {
        char kept = letters[from];
        letters[from] = letters[at], letters[at] = kept;
        count += permute(letters, from + 1, visit);
        letters[at] = letters[from], letters[from] = kept;
    }
    return count;
}

static void say(const char *letters) { printf("%s ", letters); }

static void *far(void *argument) {
    (void)argument;
    return (void *)depth(800000);
}

int main(void) {
    printf("%ld %u %u\n", depth(50000), ackermann(2, 300), ackermann(3, 5));
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 << 20);
    pthread_create(&thread, &attributes, far, NULL);
    void *result;
    pthread_join(thread, &result);
    printf("%ld\n", (long)result);
    struct tree *root = NULL;
    for (const char *digit = "528193"; *digit != '\0'; digit++)
        insert(&root, *digit - '0');
    walk_and_free(root);
    printf("%d\n", permute((char[]){"abc"}, 0, say));
    return 0;
}
