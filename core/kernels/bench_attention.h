/* Timing of attention over KV pages on the shapes of real models, for `sheaf bench attention`. */
#ifndef CORE_KERNELS_BENCH_ATTENTION_H
#define CORE_KERNELS_BENCH_ATTENTION_H

#include <stddef.h>

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/kernels/attention_page.h"
#include "core/kernels/kernels.h"

/* One layer's attention in a step: `sequence_count` sequences of `context` tokens, of which the
 * last `row_count` are computed. One row each is a decode step, one sequence with many rows a
 * prefill. */
struct bench_attention_case {
    const char *name; /* "smollm2 prefill" */
    int head_dim, head_count, kv_head_count;
    int sequence_count;
    int context;
    int row_count;
};

struct bench_attention_result {
    double seconds;       /* best of the trials, all threads of the pool */
    double flops;         /* a second: q·k and p·v over the keys that rows see */
    double peak_share;    /* of `peak_flops`; 0 when that is 0 */
    double kv_bytes_rate; /* bytes a second when every page is read once a step */
};

size_t bench_attention_case_count(void);
struct bench_attention_case bench_attention_case_at(size_t index);

/* peak_flops: ceilings' flops_all, or 0. Takes about 50 ms, longer for a case that does. */
enum status bench_attention_run(const struct kernels *kernels, struct thread_pool *pool,
                                const struct bench_attention_case *what,
                                enum attention_page_type page_type, double peak_flops,
                                struct bench_attention_result *result, struct error *error);

#endif
