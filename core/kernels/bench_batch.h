/* Batches written briefly, for `sheaf bench attention`: groups joined by `_` or `,`, each
 *
 *     [COUNT] q QUERIES [s CONTEXT | kv CONTEXT]
 *
 * COUNT sequences (1) that compute QUERIES positions, the last of CONTEXT (as many as QUERIES). A
 * number is decimal without sign or leading zero and may end in k: times 1024 (before a v the k is
 * that of kv). `q2k`: a prompt of 2048; `8q1s1k`: a decode step of 8; `q512s8k_32q1kv2k`: a chunk
 * beside 32 that decode. The notation is that of vLLM's attention benchmarks. */
#ifndef CORE_KERNELS_BENCH_BATCH_H
#define CORE_KERNELS_BENCH_BATCH_H

#include "core/base/error.h"

enum {
    BENCH_BATCH_GROUPS_MAX = 64,
    BENCH_BATCH_SEQUENCES_MAX = 4096,
    BENCH_BATCH_CONTEXT_MAX = 1 << 24,
};

struct bench_batch_group {
    int sequence_count;
    int query_count;
    int context;
};

struct bench_batch {
    int group_count;
    struct bench_batch_group groups[BENCH_BATCH_GROUPS_MAX];
    int sequence_count; /* of all groups */
};

enum status bench_batch_parse(const char *text, struct bench_batch *batch, struct error *error);

#endif
