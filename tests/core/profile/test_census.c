/* The census sees what a prefix cache would save, whatever the chunks. */
#include "core/profile/census.h"

#include <criterion/criterion.h>

enum { PAGES = 32, LENGTH = 300 };

static void feed(struct census *census, const int32_t *tokens, int first, int count,
                 const int32_t *table) {
    const struct step_run run = {
        .row_count = count, .position_first = first, .prefill = true, .pages = {table}};
    const struct step_plan plan = {
        .row_count = count, .tokens = tokens + first, .run_count = 1, .runs = &run};
    census_add_step(census, &plan);
}

static void feed_all(struct census *census, const int32_t *tokens, int chunk, int page_first) {
    int32_t table[LENGTH / KV_PAGE_TOKENS + 1];
    for (int i = 0; i <= LENGTH / KV_PAGE_TOKENS; i++)
        table[i] = page_first + i;
    for (int first = 0; first < LENGTH; first += chunk)
        feed(census, tokens, first, LENGTH - first < chunk ? LENGTH - first : chunk, table);
}

static void fill(int32_t *tokens, int same) {
    for (int i = 0; i < LENGTH; i++)
        tokens[i] = i < same ? i * 7 + 1 : -i;
}

Test(census, equal_beginnings_are_counted_in_whole_pages) {
    struct census census;
    int32_t one[LENGTH], other[LENGTH];
    fill(one, LENGTH);
    fill(other, 150);
    cr_assert_eq(census_init(&census, PAGES, NULL), STATUS_OK);
    feed_all(&census, one, 50, 0);
    cr_expect_eq(census.repeated_tokens, 0);
    feed_all(&census, other, 130, 8);
    cr_expect_eq(census.tokens, 2 * LENGTH);
    cr_expect_eq(census.repeated_tokens, 128);
    cr_expect_eq(census.repeated_pairs, 128 * 129 / 2);
    feed_all(&census, one, 17, 16);
    cr_expect_eq(census.repeated_tokens, 128 + 256);
    census_deinit(&census);
}

/* A sequence that got its first pages from the cache goes on from their chain. */
Test(census, a_run_behind_cached_pages_is_known_by_them) {
    struct census census;
    int32_t one[LENGTH];
    const int32_t first[] = {0, 1, 2, 3, 4}, second[] = {0, 1, 20, 21, 22};
    fill(one, LENGTH);
    cr_assert_eq(census_init(&census, PAGES, NULL), STATUS_OK);
    feed(&census, one, 0, LENGTH, first);
    feed(&census, one, 128, LENGTH - 128, second);
    cr_expect_eq(census.repeated_tokens, 128, "pages 2 and 3 had been evicted");
    census_deinit(&census);
}

Test(census, what_nobody_saw_begin_is_not_guessed) {
    struct census census;
    int32_t one[LENGTH];
    const int32_t table[] = {9, 10, 11, 12, 13};
    fill(one, LENGTH);
    cr_assert_eq(census_init(&census, PAGES, NULL), STATUS_OK);
    feed(&census, one, 64, 100, table);
    feed(&census, one, 64, 100, table);
    cr_expect_eq(census.repeated_tokens, 0);
    census_deinit(&census);
}
