/* Sorting token sequences lexicographically puts common prefixes side by side. A group is a run of
 * neighbours that share more whole KV pages than all documents of the window do (the template and
 * prompt, which every document shares, make no group). */
#include "core/job/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/model.h"

void order_window_init(struct order_window *window) {
    *window = (struct order_window){0};
}

void order_window_deinit(struct order_window *window) {
    for (size_t i = 0; i < window->count; i++)
        item_destroy(window->items[i]);
    free(window->items);
    *window = (struct order_window){0};
}

bool order_window_is_empty(const struct order_window *window) {
    return window->count == 0;
}

bool order_window_is_full(const struct order_window *window) {
    return window->count == ORDER_WINDOW_MAX || window->bytes >= ORDER_WINDOW_BYTES_MAX;
}

bool order_window_add(struct order_window *window, struct item *item) {
    if (!window->items) {
        window->items = malloc(ORDER_WINDOW_MAX * sizeof(struct item *));
        if (!window->items)
            return false;
    }
    assert(window->count < ORDER_WINDOW_MAX);
    window->items[window->count++] = item;
    window->bytes += item_bytes(item);
    window->sorted = false;
    return true;
}

struct item *order_window_take(struct order_window *window) {
    struct item *item = window->items[--window->count];
    window->bytes -= item_bytes(item);
    return item;
}

static int common_tokens(const struct item *a, const struct item *b) {
    int shorter = a->token_count < b->token_count ? a->token_count : b->token_count;
    int count = 0;
    while (count < shorter && a->tokens[count] == b->tokens[count])
        count++;
    return count;
}

static int by_tokens(const void *left, const void *right) {
    const struct item *a = *(struct item *const *)left, *b = *(struct item *const *)right;
    int common = common_tokens(a, b);
    if (common < a->token_count && common < b->token_count)
        return a->tokens[common] < b->tokens[common] ? -1 : 1;
    if (a->token_count != b->token_count)
        return a->token_count < b->token_count ? -1 : 1;
    return (a->document.index > b->document.index) - (a->document.index < b->document.index);
}

struct group {
    size_t first, count;
    int longest;
};

/* Groups are taken longest first: the array is filled from the back. */
static int shortest_group_first(const void *left, const void *right) {
    const struct group *a = left, *b = right;
    if (a->longest != b->longest)
        return a->longest < b->longest ? -1 : 1;
    return (a->first < b->first) - (a->first > b->first);
}

/* Pages shared by the whole sorted window: its first and last item differ soonest. */
static int pages_shared_by_all(const struct order_window *window) {
    return common_tokens(window->items[0], window->items[window->count - 1]) / KV_PAGE_TOKENS;
}

static size_t find_groups(const struct order_window *window, struct group *groups) {
    int base = window->count > 1 ? pages_shared_by_all(window) : 0;
    size_t group_count = 0;
    for (size_t i = 0; i < window->count; i++) {
        bool joins =
            i > 0 && common_tokens(window->items[i - 1], window->items[i]) / KV_PAGE_TOKENS > base;
        if (!joins)
            groups[group_count++] = (struct group){.first = i};
        struct group *group = &groups[group_count - 1];
        group->count++;
        if (window->items[i]->token_count > group->longest)
            group->longest = window->items[i]->token_count;
    }
    return group_count;
}

void order_window_sort(struct order_window *window) {
    if (window->sorted || window->count < 2)
        return;
    window->sorted = true;
    qsort(window->items, window->count, sizeof *window->items, by_tokens);
    struct group *groups = calloc(window->count, sizeof *groups);
    struct item **sorted = malloc(ORDER_WINDOW_MAX * sizeof(struct item *));
    if (!groups || !sorted) { /* lexicographic order serves as well, only not longest first */
        free(groups);
        free(sorted);
        return;
    }
    size_t group_count = find_groups(window, groups);
    qsort(groups, group_count, sizeof *groups, shortest_group_first);
    size_t next = 0;
    for (size_t g = 0; g < group_count; g++) {
        memcpy(&sorted[next], &window->items[groups[g].first],
               groups[g].count * sizeof(struct item *));
        next += groups[g].count;
    }
    free(groups);
    free(window->items);
    window->items = sorted;
}
