/* Page records in one array with int32 links. Two kinds of free page share one list: unfindable
 * ones at the front (the last freed is taken first, its memory is warm), published ones behind
 * them, least recently used first. Pages never handed out are not linked at all, so a large pool
 * costs nothing until it is used; they come after the unfindable ones. They come before evictions
 * only as long as few pages lie findable and unheld: a queue that shares nothing recycles its pages
 * instead of touching the whole budget. */
#include "core/engine/kv_pool.h"

#include <assert.h>
#include <stdlib.h>

enum status kv_pool_init(struct kv_pool *pool, int64_t page_count, struct error *error) {
    *pool = (struct kv_pool){.free_first = -1, .free_last = -1};
    if (page_count < 1 || page_count >= INT32_MAX)
        return error_set(error, STATUS_OVER_LIMIT, "a pool of %lld pages is out of range",
                         (long long)page_count);
    pool->pages = calloc((size_t)page_count, sizeof *pool->pages);
    if (!pool->pages)
        return error_no_memory(error, "page records");
    pool->page_count = (int32_t)page_count;
    return STATUS_OK;
}

void kv_pool_deinit(struct kv_pool *pool) {
    free(pool->pages);
    *pool = (struct kv_pool){.free_first = -1, .free_last = -1};
}

static void unlink_free(struct kv_pool *pool, int32_t page) {
    struct kv_page *record = &pool->pages[page];
    if (record->previous >= 0)
        pool->pages[record->previous].next = record->next;
    else
        pool->free_first = record->next;
    if (record->next >= 0)
        pool->pages[record->next].previous = record->previous;
    else
        pool->free_last = record->previous;
    record->previous = record->next = -1;
}

static void link_first(struct kv_pool *pool, int32_t page) {
    struct kv_page *record = &pool->pages[page];
    record->previous = -1;
    record->next = pool->free_first;
    if (pool->free_first >= 0)
        pool->pages[pool->free_first].previous = page;
    else
        pool->free_last = page;
    pool->free_first = page;
}

static void link_last(struct kv_pool *pool, int32_t page) {
    struct kv_page *record = &pool->pages[page];
    record->next = -1;
    record->previous = pool->free_last;
    if (pool->free_last >= 0)
        pool->pages[pool->free_last].next = page;
    else
        pool->free_first = page;
    pool->free_last = page;
}

static void count_holder(struct kv_pool *pool, int32_t page) {
    if (pool->pages[page].holders++ > 0)
        return;
    pool->used_count++;
    if (pool->used_count > pool->used_peak)
        pool->used_peak = pool->used_count;
}

/* Unheld pages that are kept findable rather than recycled: half of what was ever held at once, and
 * 4096 tokens. */
static int32_t kept_max(const struct kv_pool *pool) {
    return pool->used_peak / 2 + 64;
}

static bool takes_fresh(const struct kv_pool *pool) {
    if (pool->fresh == pool->page_count)
        return false;
    bool findable = pool->free_first >= 0 && pool->pages[pool->free_first].serial != 0;
    return pool->free_first < 0 || (findable && pool->fresh - pool->used_count < kept_max(pool));
}

int32_t kv_pool_take(struct kv_pool *pool, int32_t *evicted) {
    *evicted = -1;
    int32_t page = pool->free_first;
    bool findable = page >= 0 && pool->pages[page].serial != 0;
    if (takes_fresh(pool)) {
        page = pool->fresh++;
        pool->pages[page].previous = pool->pages[page].next = -1;
    } else if (page >= 0) {
        unlink_free(pool, page);
        if (findable)
            *evicted = pool->pages[page].entry;
    } else {
        return -1;
    }
    pool->pages[page].serial = 0;
    pool->pages[page].entry = -1;
    count_holder(pool, page);
    return page;
}

void kv_pool_hold(struct kv_pool *pool, int32_t page) {
    assert(page >= 0 && page < pool->fresh);
    if (pool->pages[page].holders == 0)
        unlink_free(pool, page);
    count_holder(pool, page);
}

void kv_pool_drop(struct kv_pool *pool, int32_t page) {
    assert(page >= 0 && page < pool->fresh && pool->pages[page].holders > 0);
    struct kv_page *record = &pool->pages[page];
    if (--record->holders > 0)
        return;
    pool->used_count--;
    if (record->serial)
        link_last(pool, page);
    else
        link_first(pool, page);
}

void kv_pool_publish(struct kv_pool *pool, int32_t page, int32_t entry, uint64_t serial) {
    assert(page >= 0 && page < pool->fresh && pool->pages[page].holders > 0);
    assert(entry >= 0 && serial != 0 && pool->pages[page].serial == 0);
    pool->pages[page].entry = entry;
    pool->pages[page].serial = serial;
}

int32_t kv_pool_holders(const struct kv_pool *pool, int32_t page) {
    return pool->pages[page].holders;
}

static const char *check_record(const struct kv_page *record) {
    if (record->holders < 0)
        return "a page has a negative number of holders";
    if ((record->serial == 0) != (record->entry < 0))
        return "a page is published without an entry, or has an entry unpublished";
    return NULL;
}

static const char *check_free_list(const struct kv_pool *pool, int64_t expected) {
    int64_t count = 0;
    int32_t previous = -1;
    bool published = false;
    for (int32_t page = pool->free_first; page >= 0; page = pool->pages[page].next) {
        const struct kv_page *record = &pool->pages[page];
        if (record->holders != 0 || record->previous != previous || ++count > expected)
            return "the free list holds a held page, is torn, or is too long";
        if (published && record->serial == 0)
            return "an unpublished page stands behind a published one in the free list";
        published = record->serial != 0;
        previous = page;
    }
    if (previous != pool->free_last || count != expected)
        return "a page without holders is missing from the free list";
    return NULL;
}

const char *kv_pool_check(const struct kv_pool *pool) {
    int64_t used = 0;
    if (pool->fresh < 0 || pool->fresh > pool->page_count)
        return "the fresh mark is outside the pool";
    for (int32_t page = 0; page < pool->fresh; page++) {
        const char *broken = check_record(&pool->pages[page]);
        if (broken)
            return broken;
        used += pool->pages[page].holders > 0;
    }
    if (used != pool->used_count || used > pool->used_peak)
        return "the count of used pages is wrong";
    return check_free_list(pool, pool->fresh - used);
}
