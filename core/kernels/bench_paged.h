/* The shipped attention kernels on a batch of dense_attention's form: keys and values rounded into
 * pages, blocks of positions × KV heads as tasks, as the CPU backend runs them. */
#ifndef CORE_KERNELS_BENCH_PAGED_H
#define CORE_KERNELS_BENCH_PAGED_H

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/kernels/attention_dense.h"
#include "core/kernels/attention_page.h"
#include "core/kernels/kernels.h"

struct bench_paged_inputs {
    const struct attention_dense_shape *shape; /* causal */
    const struct kernels *kernels;
    enum attention_page_type page_type;
    const float *queries, *keys, *values; /* in the order of attention_dense.h */
    int workers;
};

struct bench_paged;

/* Copies what it needs of the inputs but the kernels and the shape, which must outlive it. */
enum status bench_paged_open(const struct bench_paged_inputs *inputs, struct bench_paged **paged,
                             struct error *error);
void bench_paged_close(struct bench_paged *paged);

void bench_paged_run(struct bench_paged *paged, struct thread_pool *pool);

/* [rows of all sequences][heads][head_dim] */
const float *bench_paged_out(const struct bench_paged *paged);

#endif
