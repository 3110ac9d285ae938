/* Attention as frameworks lay it out, for comparison with the shipped kernels: fp32 tensors, heads
 * apart, the keys of a sequence in a row. attention_variants.h computes it in several ways and
 * attention_backward.h its gradients; nothing here serves a model.
 *
 * A sequence's rows are the last `query_count` of its `context` positions. Its queries (outputs,
 * gradients) are [head][query_count][dim], its keys and values [kv head][context][dim], one
 * sequence behind the other, `dim` being head_dim rounded up to 16 with zeros behind. */
#ifndef CORE_KERNELS_ATTENTION_DENSE_H
#define CORE_KERNELS_ATTENTION_DENSE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/cpu_features.h"

enum {
    ATTENTION_DENSE_TILE = 64, /* rows and keys that a block of products takes */
};

struct attention_dense_sequence {
    int query_count;
    int context;
    size_t query_first; /* rows of the sequences before */
    size_t key_first;   /* keys of the sequences before */
};

struct attention_dense_shape {
    int heads, kv_heads, head_dim;
    bool causal;
    int window; /* causal only; 0: all earlier keys, else the last `window`, the row's own included
                 */
    float scale;
    float softcap; /* 0: none */
    const struct attention_dense_sequence *sequences;
    int sequence_count;
};

/* Keys [first, end) that a row of the sequence sees. */
struct attention_dense_range {
    int first, end;
};
struct attention_dense_range attention_dense_seen(const struct attention_dense_shape *shape,
                                                  const struct attention_dense_sequence *sequence,
                                                  int row);

int attention_dense_dim(int head_dim);

/* Floats of the queries and of the keys of all sequences. */
size_t attention_dense_query_values(const struct attention_dense_shape *shape);
size_t attention_dense_key_values(const struct attention_dense_shape *shape);

/* Where a head's rows or keys begin. */
size_t attention_dense_query_at(const struct attention_dense_shape *shape,
                                const struct attention_dense_sequence *sequence, int head);
size_t attention_dense_key_at(const struct attention_dense_shape *shape,
                              const struct attention_dense_sequence *sequence, int kv_head);

/* Up to `rows` neighbouring rows of a head: what a task of a pass takes. */
struct attention_dense_block {
    int sequence, head;
    int first, count; /* rows */
};

/* All blocks of the shape, heads and later rows last; NULL without memory. The caller frees it. */
struct attention_dense_block *attention_dense_blocks(const struct attention_dense_shape *shape,
                                                     int rows, int *count);

/* out[r][c] (+)= Σ_i a[r × a_row + i × a_step] × b[i][c]; one accumulator over ascending i.
 * columns is a multiple of 16. */
struct attention_dense_product {
    const float *a;
    size_t a_row, a_step;
    const float *b;
    size_t b_stride;
    float *out;
    size_t out_stride;
    int rows, columns, k;
    bool accumulate;
};

/* Loops over rows, a table an instruction set; the scalar file is the specification. Scores that
 * are masked are -inf. */
struct attention_dense_kernels {
    const char *name;
    bool (*available)(const struct cpu_features *features);

    void (*multiply)(const struct attention_dense_product *product);
    /* out[c][ATTENTION_DENSE_TILE] = in[r][c] for r < rows, 0 for the other rows up to the tile's;
     * columns is a multiple of 16. */
    void (*transpose)(const float *in, size_t in_stride, int rows, int columns, float *out);

    /* Rows of scores; count is a multiple of 16. */
    void (*scale)(float *row, int count, float factor);
    /* The whole softmax of a row into out, which may be the row; returns its log-sum-exp. */
    float (*softmax)(const float *row, int count, float *out);
    /* One tile of an online softmax: scores become e^(score - *max) after *max has grown to the
     * tile's largest, *sum is scaled and added to; returns the factor for what was summed before.
     */
    float (*softmax_tile)(float *row, int count, float *max, float *sum);
    /* row[i] = e^(row[i] - log_sum): the probabilities once more. */
    void (*exponentials)(float *row, int count, float log_sum);
    /* gradients[i] = probabilities[i] × (gradients[i] - delta) */
    void (*softmax_gradient)(float *gradients, const float *probabilities, int count, float delta);
    float (*dot)(const float *a, const float *b, int count);
};

/* The best variant for these features, and all of them, best first. */
const struct attention_dense_kernels *attention_dense_select(const struct cpu_features *features);
size_t attention_dense_variant_count(void);
const struct attention_dense_kernels *attention_dense_variant_at(size_t index);

#endif
