/* The attention benchmark: its rates follow from its shapes, and a failed allocation is an error.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "core/kernels/bench_attention.h"
#include "tests/support/failing_malloc.h"

static const struct bench_attention_case small = {
    .name = "small",
    .head_dim = 64,
    .head_count = 6,
    .kv_head_count = 2,
    .sequence_count = 3,
    .context = 200,
    .row_count = 70,
};

static enum status run(struct thread_pool *pool, enum attention_page_type type, double peak,
                       struct bench_attention_result *result) {
    struct cpu_features features = cpu_features_detect();
    struct kernels kernels = kernels_select(&features);
    struct error error = {0};
    return bench_attention_run(&kernels, pool, &small, type, peak, result, &error);
}

Test(bench_attention, rates_follow_from_the_shape) {
    struct thread_pool *pool;
    struct error error;
    cr_assert_eq(thread_pool_create(2, false, &pool, &error), STATUS_OK);
    for (int type = ATTENTION_PAGE_BF16; type <= ATTENTION_PAGE_INT8; type++) {
        struct bench_attention_result result;
        cr_assert_eq(run(pool, type, 1e12, &result), STATUS_OK);
        double keys = 3 * 6 * (70 * 200 - 70 * 69 / 2.0);
        double pages = 3 * 2 * 4 * (double)attention_page_bytes(type, 64);
        cr_expect_gt(result.seconds, 0);
        cr_expect_float_eq(result.flops * result.seconds, keys * 64 * 4, 1);
        cr_expect_float_eq(result.kv_bytes_rate * result.seconds, pages, 1);
        cr_expect_float_eq(result.peak_share * 1e12, result.flops, 1);
    }
    thread_pool_destroy(pool);
}

Test(bench_attention, cases_have_whole_groups) {
    for (size_t i = 0; i < bench_attention_case_count(); i++) {
        struct bench_attention_case what = bench_attention_case_at(i);
        cr_expect_eq(what.head_count % what.kv_head_count, 0);
        cr_expect_leq(what.row_count, what.context);
    }
}

Test(bench_attention, every_failed_allocation_is_an_error) {
    struct thread_pool *pool;
    struct error error;
    cr_assert_eq(thread_pool_create(1, false, &pool, &error), STATUS_OK);
    bool reached = true;
    for (int n = 1; reached; n++) {
        struct bench_attention_result result;
        failing_malloc_arm(n);
        enum status status = run(pool, ATTENTION_PAGE_BF16, 0, &result);
        reached = failing_malloc_disarm();
        cr_assert_eq(status, reached ? STATUS_NO_MEMORY : STATUS_OK, "allocation %d", n);
    }
    thread_pool_destroy(pool);
}
