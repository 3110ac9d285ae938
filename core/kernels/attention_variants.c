/* The passes of the naive variants, the tiled one, and the memory of all. A task is 64 rows of a
 * head in every pass. */
#include "core/kernels/attention_variants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/attention_variants_passes.h"

enum { TILE = ATTENTION_DENSE_TILE, ALIGNMENT = 64 };

static const char *const names[ATTENTION_VARIANT_COUNT] = {"naive", "naive+copy", "unfused",
                                                           "tiled"};

const char *attention_variants_name(enum attention_variant variant) {
    return names[variant];
}

size_t attention_variants_stride(const struct attention_dense_sequence *sequence) {
    return (size_t)(sequence->context + 15) / 16 * 16;
}

/* Floats of one head's scores of all sequences. */
static size_t score_values(const struct attention_dense_shape *shape) {
    size_t values = 0;
    for (int s = 0; s < shape->sequence_count; s++)
        values += (size_t)shape->sequences[s].query_count *
                  attention_variants_stride(&shape->sequences[s]);
    return values;
}

static size_t wide_values(const struct attention_dense_shape *shape) {
    size_t group = (size_t)(shape->heads / shape->kv_heads);
    return attention_dense_query_values(shape) + 2 * group * attention_dense_key_values(shape);
}

static size_t score_arrays(enum attention_variant variant) {
    return variant == ATTENTION_TILED ? 0 : variant == ATTENTION_NAIVE ? 1 : 2;
}

size_t attention_variants_memory(const struct attention_dense_shape *shape,
                                 enum attention_variant variant) {
    size_t values = score_arrays(variant) * (size_t)shape->heads * score_values(shape);
    if (variant == ATTENTION_UNFUSED)
        values += score_values(shape) + wide_values(shape);
    return values * sizeof(float);
}

static float *allocate(size_t values) {
    size_t bytes = (values * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return aligned_alloc(ALIGNMENT, bytes > 0 ? bytes : ALIGNMENT);
}

static bool allocate_scores(struct attention_variants *variants, enum attention_variant variant) {
    const struct attention_dense_shape *shape = variants->shape;
    size_t values = (size_t)shape->heads * score_values(shape);
    size_t arrays = score_arrays(variant);
    variants->scores_first = calloc((size_t)shape->sequence_count, sizeof(size_t));
    variants->scores = allocate(arrays > 0 ? values : 0);
    variants->more_scores = allocate(arrays > 1 ? values : 0);
    variants->mask = allocate(variant == ATTENTION_UNFUSED ? score_values(shape) : 0);
    variants->wide = allocate(variant == ATTENTION_UNFUSED ? wide_values(shape) : 0);
    return variants->scores_first != NULL && variants->scores != NULL &&
           variants->more_scores != NULL && variants->mask != NULL && variants->wide != NULL;
}

enum status attention_variants_open(struct attention_variants *variants,
                                    enum attention_variant variant, int workers,
                                    struct error *error) {
    const struct attention_dense_shape *shape = variants->shape;
    size_t dim = (size_t)attention_dense_dim(shape->head_dim);
    variants->scratch_values = TILE * (2 * dim + TILE);
    variants->scratch = allocate((size_t)workers * variants->scratch_values);
    variants->blocks = attention_dense_blocks(shape, TILE, &variants->block_count);
    if (!allocate_scores(variants, variant) || variants->scratch == NULL ||
        variants->blocks == NULL) {
        attention_variants_close(variants);
        return error_no_memory(error, "scores to measure with");
    }
    for (int s = 1; s < shape->sequence_count; s++)
        variants->scores_first[s] =
            variants->scores_first[s - 1] + (size_t)shape->sequences[s - 1].query_count *
                                                attention_variants_stride(&shape->sequences[s - 1]);
    return STATUS_OK;
}

void attention_variants_close(struct attention_variants *variants) {
    free(variants->blocks);
    free(variants->scores_first);
    free(variants->scores);
    free(variants->more_scores);
    free(variants->mask);
    free(variants->wide);
    free(variants->scratch);
    variants->blocks = NULL;
    variants->scores_first = NULL;
    variants->scores = variants->more_scores = variants->mask = variants->wide = NULL;
    variants->scratch = NULL;
}

void attention_variants_pass(struct attention_variants *variants, struct thread_pool *pool,
                             void (*function)(void *variants, int task, int worker), int tasks) {
    thread_pool_run(pool, tasks, function, variants);
    variants->passes++;
}

float *attention_variants_scores(const struct attention_variants *variants, float *scores,
                                 const struct attention_dense_block *block) {
    const struct attention_dense_sequence *sequence = &variants->shape->sequences[block->sequence];
    size_t stride = attention_variants_stride(sequence);
    return scores + variants->scores_first[block->sequence] * (size_t)variants->shape->heads +
           ((size_t)block->head * (size_t)sequence->query_count + (size_t)block->first) * stride;
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* ---- naive ---- */

void attention_variants_scores_product(const struct attention_variants *variants,
                                       const struct attention_dense_block *block,
                                       const float *queries, const float *keys, int worker) {
    const struct attention_dense_sequence *sequence = &variants->shape->sequences[block->sequence];
    size_t stride = attention_variants_stride(sequence);
    int dim = attention_dense_dim(variants->shape->head_dim);
    float *panel = variants->scratch + (size_t)worker * variants->scratch_values;
    float *scores = attention_variants_scores(variants, variants->scores, block);
    for (int key = 0; key < sequence->context; key += TILE) {
        variants->dense->transpose(keys + (size_t)key * (size_t)dim, (size_t)dim,
                                   smaller(TILE, sequence->context - key), dim, panel);
        variants->dense->multiply(&(struct attention_dense_product){
            .a = queries,
            .a_row = (size_t)dim,
            .a_step = 1,
            .b = panel,
            .b_stride = TILE,
            .out = scores + key,
            .out_stride = stride,
            .rows = block->count,
            .columns = smaller(TILE, (int)stride - key),
            .k = dim,
        });
    }
}

void attention_variants_output(const struct attention_variants *variants,
                               const struct attention_dense_block *block, const float *scores,
                               const float *values) {
    const struct attention_dense_shape *shape = variants->shape;
    const struct attention_dense_sequence *sequence = &shape->sequences[block->sequence];
    int dim = attention_dense_dim(shape->head_dim);
    variants->dense->multiply(&(struct attention_dense_product){
        .a = scores,
        .a_row = attention_variants_stride(sequence),
        .a_step = 1,
        .b = values,
        .b_stride = (size_t)dim,
        .out = variants->out + attention_dense_query_at(shape, sequence, block->head) +
               (size_t)block->first * (size_t)dim,
        .out_stride = (size_t)dim,
        .rows = block->count,
        .columns = dim,
        .k = sequence->context,
    });
}

static int kv_head_of(const struct attention_dense_shape *shape, int head) {
    return head / (shape->heads / shape->kv_heads);
}

static const float *block_queries(const struct attention_variants *variants,
                                  const struct attention_dense_block *block) {
    const struct attention_dense_shape *shape = variants->shape;
    size_t dim = (size_t)attention_dense_dim(shape->head_dim);
    return variants->queries + (size_t)block->first * dim +
           attention_dense_query_at(shape, &shape->sequences[block->sequence], block->head);
}

static size_t block_keys_at(const struct attention_variants *variants,
                            const struct attention_dense_block *block) {
    const struct attention_dense_shape *shape = variants->shape;
    return attention_dense_key_at(shape, &shape->sequences[block->sequence],
                                  kv_head_of(shape, block->head));
}

static void score_pass(void *context, int task, int worker) {
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    attention_variants_scores_product(variants, block, block_queries(variants, block),
                                      variants->keys + block_keys_at(variants, block), worker);
}

static void scale_pass(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    size_t stride = attention_variants_stride(&variants->shape->sequences[block->sequence]);
    variants->dense->scale(attention_variants_scores(variants, variants->scores, block),
                           block->count * (int)stride, variants->shape->scale);
}

void attention_variants_softcap(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    size_t stride = attention_variants_stride(&variants->shape->sequences[block->sequence]);
    variants->elementwise->softcap(attention_variants_scores(variants, variants->scores, block),
                                   block->count * (int)stride, variants->shape->softcap);
}

/* out = in where the row sees the key, else -inf; every score is read and written. */
static void mask_block(const struct attention_variants *variants,
                       const struct attention_dense_block *block, const float *in, float *out) {
    const struct attention_dense_sequence *sequence = &variants->shape->sequences[block->sequence];
    int stride = (int)attention_variants_stride(sequence);
    for (int r = 0; r < block->count; r++) {
        struct attention_dense_range seen =
            attention_dense_seen(variants->shape, sequence, block->first + r);
        for (int i = 0; i < stride; i++)
            out[i] = i >= seen.first && i < seen.end ? in[i] : -INFINITY;
        in += stride;
        out += stride;
    }
}

static void mask_pass(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    float *scores = attention_variants_scores(variants, variants->scores, block);
    mask_block(variants, block, scores, scores);
}

/* An out-of-place masked fill is a copy of all and a fill of the copy. */
static void copy_pass(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    size_t stride = attention_variants_stride(&variants->shape->sequences[block->sequence]);
    memcpy(attention_variants_scores(variants, variants->more_scores, block),
           attention_variants_scores(variants, variants->scores, block),
           (size_t)block->count * stride * sizeof(float));
}

static void softmax_pass(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    size_t stride = attention_variants_stride(&variants->shape->sequences[block->sequence]);
    float *scores = attention_variants_scores(variants, variants->scores, block);
    for (int r = 0; r < block->count; r++)
        variants->dense->softmax(scores + (size_t)r * stride, (int)stride,
                                 scores + (size_t)r * stride);
}

static void output_pass(void *context, int task, int worker) {
    (void)worker;
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    attention_variants_output(variants, block,
                              attention_variants_scores(variants, variants->scores, block),
                              variants->values + block_keys_at(variants, block));
}

static void run_naive(struct attention_variants *variants, struct thread_pool *pool, bool copy) {
    int tasks = variants->block_count;
    attention_variants_pass(variants, pool, score_pass, tasks);
    attention_variants_pass(variants, pool, scale_pass, tasks);
    if (variants->shape->softcap > 0)
        attention_variants_pass(variants, pool, attention_variants_softcap, tasks);
    if (copy) {
        attention_variants_pass(variants, pool, copy_pass, tasks);
        float *scores = variants->scores;
        variants->scores = variants->more_scores;
        variants->more_scores = scores;
    }
    attention_variants_pass(variants, pool, mask_pass, tasks);
    attention_variants_pass(variants, pool, softmax_pass, tasks);
    attention_variants_pass(variants, pool, output_pass, tasks);
}

/* ---- tiled ---- */

/* A worker's scratch: a panel of keys, scores, sums of the output. */
struct tile_state {
    float *panel, *scores, *out;
    float max[TILE], sum[TILE];
};

static void mask_tile(const struct attention_variants *variants,
                      const struct attention_dense_block *block, int key_first, float *scores) {
    const struct attention_dense_sequence *sequence = &variants->shape->sequences[block->sequence];
    for (int r = 0; r < block->count; r++) {
        struct attention_dense_range seen =
            attention_dense_seen(variants->shape, sequence, block->first + r);
        for (int i = 0; i < seen.first - key_first && i < TILE; i++)
            scores[r * TILE + i] = -INFINITY;
        for (int i = seen.end > key_first ? seen.end - key_first : 0; i < TILE; i++)
            scores[r * TILE + i] = -INFINITY;
    }
}

static void score_tile(const struct attention_variants *variants,
                       const struct attention_dense_block *block, int key, int count,
                       struct tile_state *state) {
    int dim = attention_dense_dim(variants->shape->head_dim);
    const float *keys = variants->keys + block_keys_at(variants, block) + (size_t)key * (size_t)dim;
    variants->dense->transpose(keys, (size_t)dim, count, dim, state->panel);
    variants->dense->multiply(&(struct attention_dense_product){
        .a = block_queries(variants, block),
        .a_row = (size_t)dim,
        .a_step = 1,
        .b = state->panel,
        .b_stride = TILE,
        .out = state->scores,
        .out_stride = TILE,
        .rows = block->count,
        .columns = TILE,
        .k = dim,
    });
    variants->dense->scale(state->scores, block->count * TILE, variants->shape->scale);
    if (variants->shape->softcap > 0)
        variants->elementwise->softcap(state->scores, block->count * TILE,
                                       variants->shape->softcap);
    mask_tile(variants, block, key, state->scores);
}

static void add_tile(const struct attention_variants *variants,
                     const struct attention_dense_block *block, int key, int count,
                     struct tile_state *state) {
    int dim = attention_dense_dim(variants->shape->head_dim);
    for (int r = 0; r < block->count; r++) {
        float factor = variants->dense->softmax_tile(state->scores + r * TILE, TILE, &state->max[r],
                                                     &state->sum[r]);
        if (factor != 1)
            variants->dense->scale(state->out + r * dim, dim, factor);
    }
    variants->dense->multiply(&(struct attention_dense_product){
        .a = state->scores,
        .a_row = TILE,
        .a_step = 1,
        .b = variants->values + block_keys_at(variants, block) + (size_t)key * (size_t)dim,
        .b_stride = (size_t)dim,
        .out = state->out,
        .out_stride = (size_t)dim,
        .rows = block->count,
        .columns = dim,
        .k = count,
        .accumulate = true,
    });
}

static void finish_rows(const struct attention_variants *variants,
                        const struct attention_dense_block *block, struct tile_state *state) {
    const struct attention_dense_shape *shape = variants->shape;
    int dim = attention_dense_dim(shape->head_dim);
    size_t at = attention_dense_query_at(shape, &shape->sequences[block->sequence], block->head) +
                (size_t)block->first * (size_t)dim;
    for (int r = 0; r < block->count; r++) {
        variants->dense->scale(state->out + r * dim, dim, 1 / state->sum[r]);
        if (variants->log_sums != NULL)
            variants->log_sums[at / (size_t)dim + (size_t)r] = state->max[r] + logf(state->sum[r]);
    }
    memcpy(variants->out + at, state->out, (size_t)(block->count * dim) * sizeof(float));
}

static void tiled_pass(void *context, int task, int worker) {
    const struct attention_variants *variants = context;
    const struct attention_dense_block *block = &variants->blocks[task];
    const struct attention_dense_sequence *sequence = &variants->shape->sequences[block->sequence];
    int dim = attention_dense_dim(variants->shape->head_dim);
    struct tile_state state = {.panel =
                                   variants->scratch + (size_t)worker * variants->scratch_values};
    state.scores = state.panel + TILE * dim;
    state.out = state.scores + TILE * TILE;
    memset(state.out, 0, (size_t)(block->count * dim) * sizeof(float));
    for (int r = 0; r < block->count; r++)
        state.max[r] = -INFINITY;
    int first = attention_dense_seen(variants->shape, sequence, block->first).first;
    int end = attention_dense_seen(variants->shape, sequence, block->first + block->count - 1).end;
    for (int key = first / TILE * TILE; key < end; key += TILE) {
        int count = smaller(TILE, sequence->context - key);
        score_tile(variants, block, key, count, &state);
        add_tile(variants, block, key, count, &state);
    }
    finish_rows(variants, block, &state);
}

void attention_variants_run(struct attention_variants *variants, enum attention_variant variant,
                            struct thread_pool *pool) {
    variants->passes = 0;
    if (variant == ATTENTION_TILED)
        attention_variants_pass(variants, pool, tiled_pass, variants->block_count);
    else if (variant == ATTENTION_UNFUSED)
        attention_variants_unfused(variants, pool);
    else
        run_naive(variants, pool, variant == ATTENTION_NAIVE_COPY);
}
