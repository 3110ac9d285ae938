/* Attention in every variant on one batch, for `sheaf bench attention BATCH`: how long each takes,
 * what it spends, and how far it is from what the machine allows. Ceilings are measured between the
 * trials, because a shared machine changes while one measures. */
#ifndef CORE_KERNELS_BENCH_VARIANTS_H
#define CORE_KERNELS_BENCH_VARIANTS_H

#include "core/base/cpu_features.h"
#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/kernels/attention_work.h"
#include "core/kernels/bench_batch.h"
#include "core/kernels/kernels.h"

enum {
    BENCH_VARIANTS_ROWS = ATTENTION_VARIANT_COUNT + 2, /* and ours, and backward */
    BENCH_VARIANTS_TRIALS = 7,
};

struct bench_variants_case {
    struct bench_batch batch;
    int heads, kv_heads, head_dim;
    bool causal;
    int window;    /* 0: none; causal only */
    float softcap; /* 0: none */
    bool backward; /* gradients too */
    enum attention_page_type page_type;
};

/* Issued products at the peak of their format and moved bytes at the bandwidth of memory, one after
 * the other where passes are, must explain 60 % of the time; the larger of them then binds. */
enum bench_variants_bound {
    BENCH_BOUND_COMPUTE,
    BENCH_BOUND_BANDWIDTH,
    BENCH_BOUND_CACHE,   /* the bytes alone would take longer than it took: caches hold some */
    BENCH_BOUND_KERNEL,  /* they do not explain it */
    BENCH_BOUND_NOT_RUN, /* its arrays would take more memory than allowed */
};

struct bench_variants_row {
    const char *name;
    char path[64]; /* "avx512 fp32 64x64" */
    int passes;
    double seconds; /* median of the trials */
    double spread;  /* (longest - shortest) / median */
    struct attention_work work;
    double needed_bytes; /* arrays between the passes */
    double peak;         /* FLOP a second of its number format */
    double floor_seconds;
    enum bench_variants_bound bound;
};

struct bench_variants_result {
    struct bench_variants_row rows[BENCH_VARIANTS_ROWS];
    int row_count;
    double peak_fp32, peak_unit; /* FLOP a second, all threads: best of those between the trials */
    double bandwidth;            /* bytes a second from memory */
};

const char *bench_variants_bound_name(enum bench_variants_bound bound);

/* Refuses shapes that make no sense. memory_bytes: what arrays between passes may take. */
enum status bench_variants_run(const struct bench_variants_case *what,
                               const struct cpu_features *features, struct thread_pool *pool,
                               double memory_bytes, struct bench_variants_result *result,
                               struct error *error);

#endif
