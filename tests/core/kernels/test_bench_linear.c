/* Ceilings and the matmul benchmark: figures are positive and consistent with each other; how large
 * they are is not tested, because it depends on the neighbours. */
#include <criterion/criterion.h>

#include "core/base/cpu_features.h"
#include "core/base/thread_pool.h"
#include "core/kernels/bench_linear.h"
#include "core/kernels/ceilings.h"

static const struct linear_kernels *best_variant(void) {
    struct cpu_features features = cpu_features_detect();
    return kernels_select(&features).linear;
}

Test(bench_linear, a_case_reports_its_own_arithmetic) {
    struct thread_pool *pool;
    struct error error;
    cr_assert_eq(thread_pool_create(2, false, &pool, &error), STATUS_OK);
    struct bench_linear_case what = {
        .name = "odd edge", .type = QUANT_Q6_K, .in = 256, .out = 70, .row_count = 3};
    struct bench_linear_result result;
    cr_assert_eq(bench_linear_run(best_variant(), pool, &what, 1e9, &result, &error), STATUS_OK);
    cr_expect_gt(result.seconds, 0);
    cr_expect_float_eq(result.flops * result.seconds, 2.0 * 256 * 70 * 3, 1);
    cr_expect_float_eq(result.weights_rate * result.seconds, 256.0 * 70, 1);
    cr_expect_float_eq(result.peak_share, result.flops / 1e9, 1e-9);
    cr_expect_float_eq(result.weight_bytes_rate * result.seconds, 2 * 210.0 * 64, 1);
    thread_pool_destroy(pool);
}

Test(bench_linear, shapes_are_whole_blocks_of_types_that_exist) {
    for (size_t i = 0; i < bench_linear_shape_count(); i++) {
        struct bench_linear_case shape = bench_linear_shape_at(i);
        const struct quant_type *type = quant_type_find(shape.type);
        cr_assert(type != NULL, "%s", shape.name);
        cr_expect_eq(shape.in % (int)type->block_values, 0, "%s", shape.name);
        cr_expect_gt(shape.out, 0);
    }
}

/* One thread alone reads the largest size out of everyone's memory, so that has to be there. */
Test(ceilings, memory_is_bounded_whatever_the_threads) {
    cr_expect_eq(ceilings_memory_bytes(1), 128u << 20);
    cr_expect_eq(ceilings_memory_bytes(8), 1u << 30);
    for (int threads = 1; threads <= 1024; threads++) {
        cr_expect_leq(ceilings_memory_bytes(threads), 1u << 30, "%d threads", threads);
        cr_expect_geq(ceilings_memory_bytes(threads), 128u << 20, "%d threads", threads);
    }
}

Test(ceilings, every_rate_is_measured_for_one_and_for_all_threads) {
    struct thread_pool *pool;
    struct error error;
    struct ceilings ceilings = {0};
    cr_assert_eq(thread_pool_create(2, false, &pool, &error), STATUS_OK);
    cr_assert_eq(ceilings_measure(best_variant(), pool, &ceilings, &error), STATUS_OK);
    cr_expect_gt(ceilings.flops_one, 1e8);
    cr_expect_gt(ceilings.flops_all, 1e8);
    for (int i = 0; i < CEILINGS_READ_COUNT; i++) {
        cr_expect_gt(ceilings.read[i].one, 1e7);
        cr_expect_gt(ceilings.read[i].all, 1e7);
        if (i > 0)
            cr_expect_gt(ceilings.read[i].bytes, ceilings.read[i - 1].bytes);
    }
    thread_pool_destroy(pool);
}
