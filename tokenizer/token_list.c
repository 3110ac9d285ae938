/* Growable lists of ids and offsets. */
#include <stdlib.h>

#include "tokenizer/tokenizer_state.h"

void token_list_deinit(struct token_list *list) {
    free(list->ids);
    free(list->offsets);
    *list = (struct token_list){0};
}

bool token_list_reserve(struct token_list *list, size_t extra) {
    if (extra <= list->capacity - list->count)
        return true;
    size_t capacity = list->capacity + list->capacity / 2 + extra + 64;
    if (capacity > SIZE_MAX / sizeof *list->ids)
        return false;
    int32_t *ids = realloc(list->ids, capacity * sizeof *ids);
    if (ids)
        list->ids = ids;
    uint32_t *offsets = realloc(list->offsets, capacity * sizeof *offsets);
    if (offsets)
        list->offsets = offsets;
    if (!ids || !offsets)
        return false;
    list->capacity = capacity;
    return true;
}
