/* The pages of one KV group, by number: who holds them, which may be taken, which are still
 * findable. The memory behind a page is the backend's. The free list is the LRU list too: a
 * published page that nobody holds stays findable until it is taken; pages that nobody can find are
 * taken first. Nothing here allocates after init, and taking never fails while the scheduler's
 * reservations hold. */
#ifndef CORE_ENGINE_KV_POOL_H
#define CORE_ENGINE_KV_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

struct kv_page {
    uint64_t serial;        /* when it was published, 0: not published */
    int32_t entry;          /* its entry in the prefix index, -1: not published */
    int32_t holders;        /* page tables naming it; 0: on the free list */
    int32_t previous, next; /* free list, -1 at its ends */
};

struct kv_pool {
    struct kv_page *pages; /* [page_count]; only the first `fresh` were ever touched */
    int32_t page_count;
    int32_t fresh;      /* pages below were handed out at least once */
    int32_t free_first; /* taken next; -1: empty */
    int32_t free_last;  /* the most recently freed published page */
    int32_t used_count; /* pages with holders */
    int32_t used_peak;
};

/* 1 ≤ page_count < 2^31. */
enum status kv_pool_init(struct kv_pool *pool, int64_t page_count, struct error *error);
void kv_pool_deinit(struct kv_pool *pool);

/* A page with one holder. When a published page had to be evicted for it, *evicted is its index
 * entry (the caller takes it out of the index), else -1. -1 only when every page is held. */
int32_t kv_pool_take(struct kv_pool *pool, int32_t *evicted);

void kv_pool_hold(struct kv_pool *pool, int32_t page);

/* One holder less. Pages of a chain are dropped last first, so that its tail is evicted before its
 * head. */
void kv_pool_drop(struct kv_pool *pool, int32_t page);

/* The page is full, immutable from now on, and findable under `entry`. It must be held. */
void kv_pool_publish(struct kv_pool *pool, int32_t page, int32_t entry, uint64_t serial);

int32_t kv_pool_holders(const struct kv_pool *pool, int32_t page);

/* NULL when all invariants hold, else the one that is broken. Walks everything: debug builds and
 * tests. */
const char *kv_pool_check(const struct kv_pool *pool);

#endif
