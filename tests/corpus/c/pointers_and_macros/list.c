#include "list.h"
#include <stdlib.h>

void list_push(struct list *list, int item) {
    if (list->size == list->room) {
        list->room = list->room == 0 ? 4 : list->room * 2;
        list->items = realloc(list->items, list->room * sizeof *list->items);
        if (list->items == NULL)
            abort();
    }
    list->items[list->size++] = item;
}

int list_at(const struct list *list, size_t index) { return list->items[index]; }

void list_free(struct list *list) {
    free(list->items);
    *list = (struct list){0};
}
