/* The shipped kernels on dense inputs against double, and the benchmark around all variants: what
 * its rows say that no clock decides, and its errors. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "core/kernels/bench_paged.h"
#include "core/kernels/bench_variants.h"
#include "tests/support/dense_oracle.h"
#include "tests/support/failing_malloc.h"

static struct thread_pool *pool_of(int threads) {
    struct thread_pool *pool;
    struct error error;
    cr_assert_eq(thread_pool_create(threads, false, &pool, &error), STATUS_OK);
    return pool;
}

Test(bench_paged, computes_attention_on_dense_inputs) {
    static const struct attention_dense_sequence mixed[] = {
        {1, 131, 0, 0}, {65, 200, 1, 131}, {3, 3, 66, 331}};
    static const struct attention_dense_shape shapes[] = {
        {6, 2, 64, true, 0, 0.125f, 0, mixed, 3},
        {4, 4, 80, true, 17, 0.11f, 2, mixed, 3},
    };
    struct thread_pool *pool = pool_of(2);
    struct cpu_features features = cpu_features_detect();
    struct kernels kernels = kernels_select(&features);
    for (int i = 0; i < 2; i++) {
        const struct attention_dense_shape *shape = &shapes[i];
        struct dense_scene scene;
        dense_oracle_init(&scene, shape, 3);
        struct dense_results expected = {.out = calloc(scene.query_values, sizeof(double))};
        dense_oracle_run(&scene, &expected);
        struct bench_paged_inputs inputs = {
            shape, &kernels, ATTENTION_PAGE_BF16, scene.queries, scene.keys, scene.values, 2};
        struct bench_paged *paged;
        struct error error;
        cr_assert_eq(bench_paged_open(&inputs, &paged, &error), STATUS_OK);
        bench_paged_run(paged, pool);
        for (int s = 0; s < 3; s++)
            for (int head = 0; head < shape->heads; head++)
                for (int row = 0; row < mixed[s].query_count; row++)
                    for (int d = 0; d < shape->head_dim; d++) {
                        size_t at = mixed[s].query_first + (size_t)row;
                        float found = bench_paged_out(
                            paged)[(at * shape->heads + (size_t)head) * shape->head_dim + d];
                        double wanted =
                            expected.out[attention_dense_query_at(shape, &mixed[s], head) +
                                         (size_t)(row * attention_dense_dim(shape->head_dim) + d)];
                        cr_assert(fabs(found - wanted) < 0.01, "%d %d %d %d: %g, not %g", s, head,
                                  row, d, found, wanted);
                    }
        bench_paged_close(paged);
        free(expected.out);
        dense_oracle_deinit(&scene);
    }
    thread_pool_destroy(pool);
}

static struct bench_variants_case small(void) {
    struct bench_variants_case what = {
        .heads = 4, .kv_heads = 2, .head_dim = 64, .causal = true, .backward = true};
    struct error error;
    cr_assert_eq(bench_batch_parse("q70_2q1s65", &what.batch, &error), STATUS_OK);
    return what;
}

static enum status run(const struct bench_variants_case *what, struct thread_pool *pool,
                       double memory_bytes, struct bench_variants_result *result,
                       struct error *error) {
    struct cpu_features features = cpu_features_detect();
    return bench_variants_run(what, &features, pool, memory_bytes, result, error);
}

Test(bench_variants, rows_of_a_batch) {
    static const char *const names[] = {"naive", "naive+copy", "unfused",
                                        "tiled", "ours",       "backward"};
    struct thread_pool *pool = pool_of(2);
    struct bench_variants_case what = small();
    struct bench_variants_result result;
    struct error error;
    cr_assert_eq(run(&what, pool, 1e9, &result, &error), STATUS_OK);
    cr_assert_eq(result.row_count, 6);
    double pairs = 70.0 * 71 / 2 + 2 * 65;
    for (int i = 0; i < 6; i++) {
        const struct bench_variants_row *row = &result.rows[i];
        cr_expect_str_eq(row->name, names[i]);
        cr_expect_gt(row->seconds, 0);
        cr_expect_eq(row->work.flops, (i == 5 ? 10.0 : 4.0) * 64 * 4 * pairs);
        cr_expect_geq(row->work.flops_issued, row->work.flops);
        cr_expect_gt(row->work.bytes_moved, row->work.bytes);
        cr_expect_gt(row->floor_seconds, 0);
        cr_expect_neq(row->bound, BENCH_BOUND_NOT_RUN);
        cr_expect_gt(row->peak, 0);
    }
    what.causal = false;
    cr_assert_eq(run(&what, pool, 1e9, &result, &error), STATUS_OK);
    cr_expect_eq(result.row_count, 5, "the shipped kernels are causal");
    thread_pool_destroy(pool);
}

Test(bench_variants, what_does_not_fit_is_not_run) {
    struct thread_pool *pool = pool_of(1);
    struct bench_variants_case what = small();
    struct bench_variants_result result;
    struct error error;
    double scores = 4.0 * 4 * (70 * 80 + 2 * 80);
    cr_assert_eq(run(&what, pool, scores, &result, &error), STATUS_OK);
    cr_expect_neq(result.rows[ATTENTION_NAIVE].bound, BENCH_BOUND_NOT_RUN);
    cr_expect_eq(result.rows[ATTENTION_NAIVE].needed_bytes, scores);
    cr_expect_eq(result.rows[ATTENTION_NAIVE_COPY].bound, BENCH_BOUND_NOT_RUN);
    cr_expect_eq(result.rows[ATTENTION_UNFUSED].bound, BENCH_BOUND_NOT_RUN);
    cr_expect_neq(result.rows[ATTENTION_TILED].bound, BENCH_BOUND_NOT_RUN);
    thread_pool_destroy(pool);
}

Test(bench_variants, shapes_that_make_no_sense) {
    struct thread_pool *pool = pool_of(1);
    struct bench_variants_result result;
    struct error error;
    struct bench_variants_case what = small();
    what.kv_heads = 3;
    cr_expect_eq(run(&what, pool, 1e9, &result, &error), STATUS_BAD_INPUT);
    cr_expect_str_eq(error.text, "4 heads are no multiple of 3 KV heads");
    what = small();
    what.head_dim = 65;
    cr_expect_eq(run(&what, pool, 1e9, &result, &error), STATUS_BAD_INPUT);
    what = small();
    what.causal = false;
    what.window = 8;
    cr_expect_eq(run(&what, pool, 1e9, &result, &error), STATUS_BAD_INPUT);
    cr_expect_str_eq(error.text, "a window needs a causal mask");
    thread_pool_destroy(pool);
}

/* The variants with arrays have a test of their own (test_attention_variants.c). */
Test(bench_variants, every_failed_allocation_is_an_error) {
    struct thread_pool *pool = pool_of(1);
    struct bench_variants_case what = small();
    bool reached = true;
    for (int n = 1; reached; n++) {
        struct bench_variants_result result;
        struct error error;
        failing_malloc_arm(n);
        enum status status = run(&what, pool, 0, &result, &error);
        reached = failing_malloc_disarm();
        cr_assert_eq(status, reached ? STATUS_NO_MEMORY : STATUS_OK, "allocation %d", n);
    }
    thread_pool_destroy(pool);
}
