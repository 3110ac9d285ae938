/* The unfused fp32 variant: every step that a framework's fallback takes as an array in memory. */
#include <math.h>
#include <string.h>

#include "core/kernels/attention_variants_passes.h"
#include "core/weights/quant_type.h"

/* Widened queries, then keys and values of every query head, heads apart. */
static float *wide_keys(const struct attention_variants *variants) {
    return variants->wide + attention_dense_query_values(variants->shape);
}

static float *wide_values(const struct attention_variants *variants) {
    size_t group = (size_t)(variants->shape->heads / variants->shape->kv_heads);
    return wide_keys(variants) + group * attention_dense_key_values(variants->shape);
}

static size_t wide_keys_at(const struct attention_dense_shape *shape,
                           const struct attention_dense_sequence *sequence, int head) {
    size_t rows =
        sequence->key_first * (size_t)shape->heads + (size_t)head * (size_t)sequence->context;
    return rows * (size_t)attention_dense_dim(shape->head_dim);
}

static void widen(const uint16_t *in, size_t count, float *out) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)in[i] << 16;
        memcpy(&out[i], &bits, sizeof bits);
    }
}

static void widen_queries(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_shape *shape = variants->shape;
    const struct attention_dense_block *block = &variants->blocks[task];
    size_t dim = (size_t)attention_dense_dim(shape->head_dim);
    size_t at = attention_dense_query_at(shape, &shape->sequences[block->sequence], block->head) +
                (size_t)block->first * dim;
    widen(variants->queries_bf16 + at, (size_t)block->count * dim, variants->wide + at);
}

/* Task: a query head of a sequence, whose KV head is repeated for it. */
static void widen_repeated(const struct attention_variants *variants, int task, const uint16_t *in,
                           float *out) {
    const struct attention_dense_shape *shape = variants->shape;
    const struct attention_dense_sequence *sequence = &shape->sequences[task / shape->heads];
    int head = task % shape->heads, group = shape->heads / shape->kv_heads;
    widen(in + attention_dense_key_at(shape, sequence, head / group),
          (size_t)sequence->context * (size_t)attention_dense_dim(shape->head_dim),
          out + wide_keys_at(shape, sequence, head));
}

static void widen_keys(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    widen_repeated(variants, task, variants->keys_bf16, wide_keys(variants));
}

static void widen_values(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    widen_repeated(variants, task, variants->values_bf16, wide_values(variants));
}

/* Both sides by the root of the scale, so that no product overflows a narrow type. */
static void scale_queries(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_shape *shape = variants->shape;
    const struct attention_dense_block *block = &variants->blocks[task];
    int dim = attention_dense_dim(shape->head_dim);
    size_t at = attention_dense_query_at(shape, &shape->sequences[block->sequence], block->head) +
                (size_t)block->first * (size_t)dim;
    variants->dense->scale(variants->wide + at, block->count * dim, sqrtf(shape->scale));
}

static void scale_keys(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_shape *shape = variants->shape;
    const struct attention_dense_sequence *sequence = &shape->sequences[task / shape->heads];
    variants->dense->scale(wide_keys(variants) + wide_keys_at(shape, sequence, task % shape->heads),
                           sequence->context * attention_dense_dim(shape->head_dim),
                           sqrtf(shape->scale));
}

static float *mask_of(const struct attention_variants *variants,
                      const struct attention_dense_block *block) {
    size_t stride = attention_variants_stride(&variants->shape->sequences[block->sequence]);
    return variants->mask + variants->scores_first[block->sequence] + (size_t)block->first * stride;
}

/* One mask a sequence, made by the blocks of its first head. */
static void build_mask(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    const struct attention_dense_sequence *sequence = &variants->shape->sequences[block->sequence];
    int stride = (int)attention_variants_stride(sequence);
    float *mask = mask_of(variants, block);
    for (int r = 0; r < block->count && block->head == 0; r++, mask += stride) {
        struct attention_dense_range seen =
            attention_dense_seen(variants->shape, sequence, block->first + r);
        for (int i = 0; i < stride; i++)
            mask[i] = i >= seen.first && i < seen.end ? 0 : -INFINITY;
    }
}

static void score_pass(void *context, int task, int worker) {
    const struct attention_variants *variants = context;
    const struct attention_dense_shape *shape = variants->shape;
    const struct attention_dense_block *block = &variants->blocks[task];
    const struct attention_dense_sequence *sequence = &shape->sequences[block->sequence];
    size_t at = attention_dense_query_at(shape, sequence, block->head) +
                (size_t)block->first * (size_t)attention_dense_dim(shape->head_dim);
    attention_variants_scores_product(
        variants, block, variants->wide + at,
        wide_keys(variants) + wide_keys_at(shape, sequence, block->head), worker);
}

static void add_mask(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    size_t stride = attention_variants_stride(&variants->shape->sequences[block->sequence]);
    float *scores = attention_variants_scores(variants, variants->scores, block);
    variants->elementwise->add(scores, mask_of(variants, block), block->count * (int)stride);
}

static void softmax_pass(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    size_t stride = attention_variants_stride(&variants->shape->sequences[block->sequence]);
    const float *in = attention_variants_scores(variants, variants->scores, block);
    float *out = attention_variants_scores(variants, variants->more_scores, block);
    for (int r = 0; r < block->count; r++)
        variants->dense->softmax(in + (size_t)r * stride, (int)stride, out + (size_t)r * stride);
}

/* Rows without a key would be NaN: where every score is -inf the probabilities become 0. */
static void safe_pass(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    int stride = (int)attention_variants_stride(&variants->shape->sequences[block->sequence]);
    const float *scores = attention_variants_scores(variants, variants->scores, block);
    float *out = attention_variants_scores(variants, variants->more_scores, block);
    for (int r = 0; r < block->count; r++, scores += stride, out += stride) {
        int seen = 0;
        for (int i = 0; i < stride; i++)
            seen |= scores[i] > -INFINITY;
        for (int i = 0; i < stride; i++)
            out[i] = seen ? out[i] : 0;
    }
}

static void output_pass(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_shape *shape = variants->shape;
    const struct attention_dense_block *block = &variants->blocks[task];
    const struct attention_dense_sequence *sequence = &shape->sequences[block->sequence];
    attention_variants_output(variants, block,
                              attention_variants_scores(variants, variants->more_scores, block),
                              wide_values(variants) + wide_keys_at(shape, sequence, block->head));
}

void attention_variants_unfused(struct attention_variants *variants, struct thread_pool *pool) {
    int tasks = variants->block_count;
    int heads = variants->shape->sequence_count * variants->shape->heads;
    attention_variants_pass(variants, pool, widen_queries, tasks);
    attention_variants_pass(variants, pool, widen_keys, heads);
    attention_variants_pass(variants, pool, widen_values, heads);
    attention_variants_pass(variants, pool, scale_queries, tasks);
    attention_variants_pass(variants, pool, scale_keys, heads);
    attention_variants_pass(variants, pool, build_mask, tasks);
    attention_variants_pass(variants, pool, score_pass, tasks);
    if (variants->shape->softcap > 0)
        attention_variants_pass(variants, pool, attention_variants_softcap, tasks);
    attention_variants_pass(variants, pool, add_mask, tasks);
    attention_variants_pass(variants, pool, softmax_pass, tasks);
    attention_variants_pass(variants, pool, safe_pass, tasks);
    attention_variants_pass(variants, pool, output_pass, tasks);
}
