/* Gradients of dense attention by recomputation (FlashAttention-2, arXiv:2307.08691, algorithm 2):
 * probabilities come back tile by tile from the scores and the saved log-sum-exp; no score matrix
 * is kept.
 *
 *   delta = Σ dO ∘ O   dV = Pᵀ dO   dP = dO Vᵀ   dS = P ∘ (dP − delta)   dQ = dS K   dK = dSᵀ Q
 *
 * Sums have one order, whatever the threads: keys' gradients add the query heads of their group in
 * order and each head's rows upwards, queries' gradients add keys upwards. With tasks enough a task
 * is a whole KV head and does each tile once (5 products); else keys' and queries' gradients are
 * passes of their own over tiles of keys and of rows, and scores and dP are computed twice (7). The
 * bits are the same. */
#ifndef CORE_KERNELS_ATTENTION_BACKWARD_H
#define CORE_KERNELS_ATTENTION_BACKWARD_H

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/kernels/attention_dense.h"
#include "core/kernels/kernels.h"

struct attention_backward {
    const struct attention_dense_shape *shape;
    const struct attention_dense_kernels *dense;
    const struct elementwise_kernels *elementwise;
    const float *queries, *keys, *values;
    const float *out;          /* of the forward pass, with log_sums */
    const float *log_sums;     /* [rows of all heads] */
    const float *out_gradient; /* as out */
    float *query_gradient, *key_gradient, *value_gradient;

    /* The rest belongs to attention_backward.c. */
    struct attention_dense_block *blocks; /* rows */
    int block_count;
    struct attention_dense_block *key_blocks; /* the same of keys; head is a KV head */
    int key_block_count;
    float *deltas;  /* [rows of all heads] */
    float *scratch; /* [workers][scratch_values] */
    size_t scratch_values;
    int passes; /* parallel regions of the last run */
};

/* Whether a pool of `workers` does each tile once. */
bool attention_backward_joint(const struct attention_dense_shape *shape, int workers);

enum status attention_backward_open(struct attention_backward *backward, int workers,
                                    struct error *error);
void attention_backward_close(struct attention_backward *backward);

/* joint: as attention_backward_joint says, or to measure the other. */
void attention_backward_run(struct attention_backward *backward, struct thread_pool *pool,
                            bool joint);

#endif
