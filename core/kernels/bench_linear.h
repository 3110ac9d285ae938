/* Timing of the linear kernels on the shapes of real models, for `sheaf bench matmul`. */
#ifndef CORE_KERNELS_BENCH_LINEAR_H
#define CORE_KERNELS_BENCH_LINEAR_H

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/kernels/kernels.h"
#include "core/weights/quant_type.h"

/* One matmul: [row_count][in] × weights [out][in] of a type. */
struct bench_linear_case {
    const char *name; /* "smollm2 gate|up" */
    enum quant_id type;
    int in, out;
    int row_count;
};

struct bench_linear_result {
    double seconds;           /* best of the trials, all threads of the pool */
    double flops;             /* a second */
    double peak_share;        /* of `peak_flops`; 0 when that is 0 */
    double weight_bytes_rate; /* packed weight bytes a second */
    double weights_rate;      /* weights a second */
};

/* Shapes worth showing: those of the models that the README names. row_count is 0: the caller sets
 * it. */
size_t bench_linear_shape_count(void);
struct bench_linear_case bench_linear_shape_at(size_t index);

/* peak_flops: ceilings' flops_all, or 0. Takes about 50 ms, longer for a matmul that does. */
enum status bench_linear_run(const struct linear_kernels *kernels, struct thread_pool *pool,
                             const struct bench_linear_case *bench, double peak_flops,
                             struct bench_linear_result *result, struct error *error);

#endif
