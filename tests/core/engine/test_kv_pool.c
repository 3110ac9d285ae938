/* The page pool: holders, the order in which pages are taken again, eviction, and that its own
 * check finds what is broken. */
#include <criterion/criterion.h>

#include "core/engine/kv_pool.h"

static struct kv_pool pool_of(int64_t page_count) {
    struct kv_pool pool;
    cr_assert_eq(kv_pool_init(&pool, page_count, NULL), STATUS_OK);
    return pool;
}

static int32_t take(struct kv_pool *pool) {
    int32_t evicted;
    int32_t page = kv_pool_take(pool, &evicted);
    cr_assert_eq(evicted, -1);
    return page;
}

Test(kv_pool, refuses_sizes_it_cannot_number) {
    struct kv_pool pool;
    struct error error;
    cr_assert_eq(kv_pool_init(&pool, 0, &error), STATUS_OVER_LIMIT);
    cr_assert_eq(kv_pool_init(&pool, (int64_t)1 << 31, &error), STATUS_OVER_LIMIT);
    cr_assert_str_eq(error.text, "a pool of 2147483648 pages is out of range");
}

Test(kv_pool, hands_out_every_page_once_and_then_none) {
    struct kv_pool pool = pool_of(3);
    for (int32_t i = 0; i < 3; i++)
        cr_assert_eq(take(&pool), i);
    cr_assert_eq(take(&pool), -1);
    cr_assert_eq(pool.used_count, 3);
    cr_assert_null(kv_pool_check(&pool));
    kv_pool_deinit(&pool);
}

Test(kv_pool, reuses_the_last_freed_private_page_before_touching_new_memory) {
    struct kv_pool pool = pool_of(8);
    take(&pool), take(&pool), take(&pool);
    kv_pool_drop(&pool, 0);
    kv_pool_drop(&pool, 2);
    cr_assert_null(kv_pool_check(&pool));
    cr_assert_eq(take(&pool), 2);
    cr_assert_eq(take(&pool), 0);
    cr_assert_eq(take(&pool), 3);
    cr_assert_eq(pool.fresh, 4);
    cr_assert_eq(pool.used_peak, 4);
    kv_pool_deinit(&pool);
}

Test(kv_pool, evicts_published_pages_last_and_oldest_first) {
    struct kv_pool pool = pool_of(3);
    int32_t evicted;
    take(&pool), take(&pool), take(&pool);
    kv_pool_publish(&pool, 0, 10, 1);
    kv_pool_publish(&pool, 1, 11, 2);
    kv_pool_drop(&pool, 1);
    kv_pool_drop(&pool, 0);
    kv_pool_drop(&pool, 2);
    cr_assert_null(kv_pool_check(&pool));
    cr_assert_eq(kv_pool_take(&pool, &evicted), 2);
    cr_assert_eq(evicted, -1);
    cr_assert_eq(kv_pool_take(&pool, &evicted), 1);
    cr_assert_eq(evicted, 11);
    cr_assert_eq(kv_pool_take(&pool, &evicted), 0);
    cr_assert_eq(evicted, 10);
    cr_assert_null(kv_pool_check(&pool));
    kv_pool_deinit(&pool);
}

Test(kv_pool, keeps_a_shared_page_until_its_last_holder_drops_it) {
    struct kv_pool pool = pool_of(2);
    take(&pool);
    kv_pool_publish(&pool, 0, 5, 1);
    kv_pool_hold(&pool, 0);
    kv_pool_drop(&pool, 0);
    cr_assert_eq(pool.used_count, 1);
    kv_pool_drop(&pool, 0);
    cr_assert_eq(pool.used_count, 0);
    kv_pool_hold(&pool, 0);
    cr_assert_eq(kv_pool_holders(&pool, 0), 1);
    cr_assert_eq(take(&pool), 1);
    cr_assert_eq(take(&pool), -1);
    cr_assert_null(kv_pool_check(&pool));
    kv_pool_deinit(&pool);
}

Test(kv_pool, check_names_what_is_broken) {
    struct kv_pool pool = pool_of(4);
    take(&pool), take(&pool);
    kv_pool_drop(&pool, 1);
    pool.pages[1].holders = 1;
    cr_assert_str_eq(kv_pool_check(&pool), "the count of used pages is wrong");
    pool.pages[1].holders = 0;
    cr_assert_null(kv_pool_check(&pool));
    pool.free_first = pool.free_last = -1;
    cr_assert_str_eq(kv_pool_check(&pool), "a page without holders is missing from the free list");
    pool.free_first = pool.free_last = 1;
    pool.pages[0].serial = 7;
    cr_assert_str_eq(kv_pool_check(&pool),
                     "a page is published without an entry, or has an entry unpublished");
    kv_pool_deinit(&pool);
}

Test(kv_pool, a_queue_that_shares_nothing_recycles_instead_of_touching_all) {
    struct kv_pool pool;
    struct error error;
    int32_t evicted;
    cr_assert_eq(kv_pool_init(&pool, 100000, &error), STATUS_OK);
    for (int document = 0; document < 1000; document++) {
        int32_t held[20];
        for (int i = 0; i < 20; i++) {
            held[i] = kv_pool_take(&pool, &evicted);
            kv_pool_publish(&pool, held[i], document * 20 + i, (uint64_t)document * 20 + i + 1);
        }
        for (int i = 20; i-- > 0;)
            kv_pool_drop(&pool, held[i]);
    }
    /* 20 held at once, 20 / 2 + 64 kept findable. */
    cr_assert_leq(pool.fresh, 20 + 74);
    cr_assert_null(kv_pool_check(&pool));
    kv_pool_deinit(&pool);
}
