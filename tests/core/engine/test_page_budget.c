/* How bytes become pages of global and window groups, and which budgets are refused. */
#include <criterion/criterion.h>

#include "core/engine/page_budget.h"

static const struct model global = {.kv_group_count = 1, .kv_groups = {{30, 0}}};
static const struct model mixed = {.kv_group_count = 2, .kv_groups = {{15, 512}, {3, 0}}};

static struct engine_options options_of(int max_sequences, int context, uint64_t kv_bytes) {
    return (struct engine_options){.batch_tokens = 512,
                                   .max_sequences = max_sequences,
                                   .context = context,
                                   .kv_bytes = kv_bytes,
                                   .prefix_cache = true};
}

Test(page_budget, one_group_gets_everything) {
    struct engine_options options = options_of(4, 1000, 1000000);
    uint64_t page_bytes[] = {3000};
    int64_t pages[1];
    cr_assert_eq(page_budget_split(&global, &options, page_bytes, pages, NULL), STATUS_OK);
    cr_assert_eq(pages[0], 333);
    options.prefix_cache = false;
    cr_assert_eq(page_budget_split(&global, &options, page_bytes, pages, NULL), STATUS_OK);
    cr_assert_eq(pages[0], 4 * 16, "more could never be held at once");
}

Test(page_budget, windows_get_what_all_sequences_need_if_that_is_little) {
    struct engine_options options = options_of(8, 32768, 1000000);
    uint64_t page_bytes[] = {500, 100};
    int64_t pages[2];
    cr_assert_eq(page_budget_split(&mixed, &options, page_bytes, pages, NULL), STATUS_OK);
    cr_assert_eq(pages[0], 8 * 17, "511 behind, 512 of a chunk, anywhere in a page");
    cr_assert_eq(pages[1], (1000000 - 8 * 17 * 500) / 100);
}

Test(page_budget, windows_get_at_most_half_when_they_need_much) {
    struct engine_options options = options_of(256, 131072, 1000000);
    uint64_t page_bytes[] = {500, 100};
    int64_t pages[2];
    cr_assert_eq(page_budget_split(&mixed, &options, page_bytes, pages, NULL), STATUS_OK);
    cr_assert_eq(pages[0], 1000);
    cr_assert_eq(pages[1], 5000);
}

Test(page_budget, a_sequence_that_fills_the_context_fits_if_it_can_fit_at_all) {
    uint64_t page_bytes[] = {500, 100};
    int64_t pages[2];
    for (int context = 100; context < 5000; context += 100) {
        int64_t all = (context - 1 + 63) / 64, windowed = all < 17 ? all : 17;
        struct engine_options options =
            options_of(32, context, (uint64_t)(windowed * 500 + all * 100));
        cr_assert_eq(page_budget_split(&mixed, &options, page_bytes, pages, NULL), STATUS_OK);
        cr_assert(pages[0] >= windowed && pages[1] >= all, "context %d", context);
        cr_assert_leq((uint64_t)(pages[0] * 500 + pages[1] * 100), options.kv_bytes);
    }
}

Test(page_budget, a_budget_below_a_page_is_refused_with_numbers) {
    struct engine_options options = options_of(4, 1000, 2999);
    uint64_t page_bytes[] = {3000};
    int64_t pages[1];
    struct error error;
    cr_assert_eq(page_budget_split(&global, &options, page_bytes, pages, &error),
                 STATUS_OVER_LIMIT);
    cr_assert_str_eq(error.text, "2999 bytes of KV memory are too few: a page of 64 tokens has "
                                 "3000 bytes; give more with --kv-memory");
}

Test(page_budget, options_out_of_range_are_named) {
    struct engine_options options = options_of(4, 1000, 100000);
    struct error error;
    cr_assert_eq(page_budget_check(&options, NULL), STATUS_OK);
    options.batch_tokens = 0;
    cr_assert_eq(page_budget_check(&options, &error), STATUS_BAD_INPUT);
    cr_assert_str_eq(error.text, "batch tokens 0, sequences 4 and context 1000 are too few");
    options.batch_tokens = INT32_MAX;
    cr_assert_eq(page_budget_check(&options, &error), STATUS_BAD_INPUT);
    cr_assert_str_eq(error.text, "batch tokens 2147483647 and sequences 4 must be at most 1048576");
}
