#ifndef LIST_H
#define LIST_H
#include <stddef.h>

struct list { int *items; size_t size, room; };

void list_push(struct list *list, int item);
int list_at(const struct list *list, size_t index);
void list_free(struct list *list);

#endif
