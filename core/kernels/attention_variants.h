/* The ways attention is commonly computed, for `sheaf bench attention` to measure the shipped
 * kernels against. Each is a list of passes; a pass is one parallel region of the pool.
 *
 * naive: product, scale, mask, softmax, product, each over all scores in memory.
 * naive+copy: its mask writes a second array, as an out-of-place masked fill does.
 * unfused: fp32 from bf16 inputs: widened, repeated for grouped heads, scaled on both sides, a mask
 *     built anew and added, softmax out of place, rows without a key made zero. It does what the
 *     fallback of a framework's fused attention does.
 * tiled: online softmax over 64 × 64 blocks in fp32 (FlashAttention, arXiv:2205.14135, 2307.08691).
 */
#ifndef CORE_KERNELS_ATTENTION_VARIANTS_H
#define CORE_KERNELS_ATTENTION_VARIANTS_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/kernels/attention_dense.h"
#include "core/kernels/kernels.h"

enum attention_variant {
    ATTENTION_NAIVE,
    ATTENTION_NAIVE_COPY,
    ATTENTION_UNFUSED,
    ATTENTION_TILED,
    ATTENTION_VARIANT_COUNT
};

const char *attention_variants_name(enum attention_variant variant);

struct attention_variants {
    const struct attention_dense_shape *shape;
    const struct attention_dense_kernels *dense;
    const struct elementwise_kernels *elementwise;
    /* Inputs in the order of attention_dense.h; unfused takes the bf16 ones, the others fp32. */
    const float *queries, *keys, *values;
    const uint16_t *queries_bf16, *keys_bf16, *values_bf16;
    float *out;
    float *log_sums; /* [rows of all heads], written by tiled: what backward needs; or NULL */

    /* The rest belongs to attention_variants*.c. */
    struct attention_dense_block *blocks;
    int block_count;
    size_t *scores_first;        /* [sequences] floats of a head's scores of the sequences before */
    float *scores, *more_scores; /* [sequence][head][row][context rounded up to 16] */
    float *mask;                 /* [sequence][row][context rounded up to 16], added to scores */
    float *wide;                 /* widened queries; keys; values, the latter two for every head */
    float *scratch;              /* [workers][scratch_values] */
    size_t scratch_values;
    int passes; /* parallel regions of the last run */
};

/* Bytes that a variant's scores, masks and copies take in memory. */
size_t attention_variants_memory(const struct attention_dense_shape *shape,
                                 enum attention_variant variant);

/* Allocates what the variant needs for a pool of `workers`; inputs, outputs and kernels are set. */
enum status attention_variants_open(struct attention_variants *variants,
                                    enum attention_variant variant, int workers,
                                    struct error *error);
void attention_variants_close(struct attention_variants *variants);

void attention_variants_run(struct attention_variants *variants, enum attention_variant variant,
                            struct thread_pool *pool);

#endif
