/* The passes over scores that attention_variants.c and attention_variants_unfused.c share. */
#ifndef CORE_KERNELS_ATTENTION_VARIANTS_PASSES_H
#define CORE_KERNELS_ATTENTION_VARIANTS_PASSES_H

#include "core/kernels/attention_variants.h"

/* One pass: function(variants, task, worker) for every task. */
void attention_variants_pass(struct attention_variants *variants, struct thread_pool *pool,
                             void (*function)(void *variants, int task, int worker), int tasks);

/* Floats from one row of the sequence's scores to the next. */
size_t attention_variants_stride(const struct attention_dense_sequence *sequence);
/* The block's rows in an array of scores. */
float *attention_variants_scores(const struct attention_variants *variants, float *scores,
                                 const struct attention_dense_block *block);

/* scores = rows × keys, and out = scores × values, of a block; keys and values of its own head. */
void attention_variants_scores_product(const struct attention_variants *variants,
                                       const struct attention_dense_block *block,
                                       const float *queries, const float *keys, int worker);
void attention_variants_output(const struct attention_variants *variants,
                               const struct attention_dense_block *block, const float *scores,
                               const float *values);

void attention_variants_unfused(struct attention_variants *variants, struct thread_pool *pool);
void attention_variants_softcap(void *context, int task, int worker);

#endif
