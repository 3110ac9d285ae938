/* In which order documents enter the engine: grouped by their longest common prefix, longest first,
 * inside a bounded window, so that shared KV is used while it is there and long documents don't end
 * last. The order never changes a byte of any row. */
#ifndef CORE_JOB_ORDER_H
#define CORE_JOB_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/job/item.h"

enum { ORDER_WINDOW_MAX = 1024, ORDER_WINDOW_BYTES_MAX = 32 << 20 };

struct order_window {
    struct item **items; /* [count]; sorted: the next one to take is last */
    size_t count;
    size_t bytes;
    bool sorted;
};

void order_window_init(struct order_window *window);
void order_window_deinit(struct order_window *window); /* destroys what is left */
bool order_window_is_empty(const struct order_window *window);
bool order_window_is_full(const struct order_window *window);
/* false: out of memory; the item stays the caller's. */
bool order_window_add(struct order_window *window, struct item *item);
void order_window_sort(struct order_window *window);
struct item *order_window_take(struct order_window *window);

#endif
