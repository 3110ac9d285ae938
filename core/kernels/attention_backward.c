/* Every pair of a tile of rows and a tile of keys that see each other is visited; what is added
 * there, to which gradients, is the pass's choice. */
#include "core/kernels/attention_backward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = ATTENTION_DENSE_TILE, ALIGNMENT = 64, TASKS_PER_WORKER = 4 };

enum parts { QUERY_GRADIENT = 1, KEY_GRADIENTS = 2, ALL_GRADIENTS = 3 };

bool attention_backward_joint(const struct attention_dense_shape *shape, int workers) {
    int tasks = shape->sequence_count * shape->kv_heads;
    return tasks % workers == 0 || tasks >= TASKS_PER_WORKER * workers;
}

static float *allocate(size_t values) {
    return aligned_alloc(ALIGNMENT, (values * sizeof(float) + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
}

/* Blocks of keys are those of a shape whose queries are the keys. */
static struct attention_dense_block *make_key_blocks(const struct attention_dense_shape *shape,
                                                     int *count) {
    size_t bytes = (size_t)shape->sequence_count * sizeof *shape->sequences;
    struct attention_dense_sequence *sequences = malloc(bytes);
    if (sequences == NULL)
        return NULL;
    memcpy(sequences, shape->sequences, bytes);
    for (int s = 0; s < shape->sequence_count; s++)
        sequences[s].query_count = sequences[s].context;
    struct attention_dense_shape keys = *shape;
    keys.heads = shape->kv_heads;
    keys.sequences = sequences;
    struct attention_dense_block *blocks = attention_dense_blocks(&keys, TILE, count);
    free(sequences);
    return blocks;
}

enum status attention_backward_open(struct attention_backward *backward, int workers,
                                    struct error *error) {
    const struct attention_dense_shape *shape = backward->shape;
    size_t dim = (size_t)attention_dense_dim(shape->head_dim);
    backward->scratch_values = TILE * (2 * dim + 3 * TILE);
    backward->scratch = allocate((size_t)workers * backward->scratch_values);
    backward->deltas = allocate(attention_dense_query_values(shape) / dim);
    backward->blocks = attention_dense_blocks(shape, TILE, &backward->block_count);
    backward->key_blocks = make_key_blocks(shape, &backward->key_block_count);
    if (backward->scratch != NULL && backward->deltas != NULL && backward->blocks != NULL &&
        backward->key_blocks != NULL)
        return STATUS_OK;
    attention_backward_close(backward);
    return error_no_memory(error, "gradients to measure with");
}

void attention_backward_close(struct attention_backward *backward) {
    free(backward->scratch);
    free(backward->deltas);
    free(backward->blocks);
    free(backward->key_blocks);
    backward->scratch = backward->deltas = NULL;
    backward->blocks = backward->key_blocks = NULL;
}

/* ---- a pair of tiles ---- */

/* Keys [first, first + count) of a KV head, as panels for the products along them. */
struct key_tile {
    size_t at; /* of the first key, in keys, values and their gradients */
    int first, count;
    const float *keys, *values; /* [dim][TILE] */
};

/* A worker's scratch. */
struct pair_state {
    float *keys, *values;                /* panels */
    float *scores, *gradients, *factors; /* [rows][TILE] */
};

static struct pair_state state_of(const struct attention_backward *backward, int worker) {
    int dim = attention_dense_dim(backward->shape->head_dim);
    float *scratch = backward->scratch + (size_t)worker * backward->scratch_values;
    float *scores = scratch + 2 * TILE * dim;
    return (struct pair_state){.keys = scratch,
                               .values = scratch + TILE * dim,
                               .scores = scores,
                               .gradients = scores + TILE * TILE,
                               .factors = scores + 2 * TILE * TILE};
}

static size_t rows_at(const struct attention_backward *backward,
                      const struct attention_dense_block *rows) {
    const struct attention_dense_shape *shape = backward->shape;
    return attention_dense_query_at(shape, &shape->sequences[rows->sequence], rows->head) +
           (size_t)rows->first * (size_t)attention_dense_dim(shape->head_dim);
}

static struct key_tile load_keys(const struct attention_backward *backward, int sequence_index,
                                 int kv_head, int first, struct pair_state *state) {
    const struct attention_dense_shape *shape = backward->shape;
    const struct attention_dense_sequence *sequence = &shape->sequences[sequence_index];
    int dim = attention_dense_dim(shape->head_dim), left = sequence->context - first;
    struct key_tile tile = {
        .at = attention_dense_key_at(shape, sequence, kv_head) + (size_t)first * (size_t)dim,
        .first = first,
        .count = left < TILE ? left : TILE,
        .keys = state->keys,
        .values = state->values,
    };
    backward->dense->transpose(backward->keys + tile.at, (size_t)dim, tile.count, dim, state->keys);
    backward->dense->transpose(backward->values + tile.at, (size_t)dim, tile.count, dim,
                               state->values);
    return tile;
}

/* out[row][TILE] = rows × panel */
static void multiply_panel(const struct attention_backward *backward, const float *rows,
                           int row_count, const float *panel, float *out) {
    int dim = attention_dense_dim(backward->shape->head_dim);
    backward->dense->multiply(&(struct attention_dense_product){
        .a = rows,
        .a_row = (size_t)dim,
        .a_step = 1,
        .b = panel,
        .b_stride = TILE,
        .out = out,
        .out_stride = TILE,
        .rows = row_count,
        .columns = TILE,
        .k = dim,
    });
}

/* Scores become capped ones, and state->factors the derivative of the cap: 1 - tanh². */
static void cap_scores(const struct attention_backward *backward, int count,
                       struct pair_state *state) {
    float cap = backward->shape->softcap;
    backward->elementwise->softcap(state->scores, count, cap);
    for (int i = 0; i < count; i++) {
        float share = state->scores[i] / cap;
        state->factors[i] = 1 - share * share;
    }
}

/* Probabilities of keys that the row does not see become 0. */
static void mask_row(struct attention_dense_range seen, int key_first, float *row) {
    for (int i = 0; i < seen.first - key_first && i < TILE; i++)
        row[i] = 0;
    for (int i = seen.end > key_first ? seen.end - key_first : 0; i < TILE; i++)
        row[i] = 0;
}

/* state->scores become probabilities, state->gradients those of the products q·k. */
static void recompute(const struct attention_backward *backward,
                      const struct attention_dense_block *rows, const struct key_tile *tile,
                      struct pair_state *state) {
    const struct attention_dense_shape *shape = backward->shape;
    const struct attention_dense_kernels *dense = backward->dense;
    int dim = attention_dense_dim(shape->head_dim), count = rows->count * TILE;
    size_t at = rows_at(backward, rows), row = at / (size_t)dim;
    multiply_panel(backward, backward->queries + at, rows->count, tile->keys, state->scores);
    multiply_panel(backward, backward->out_gradient + at, rows->count, tile->values,
                   state->gradients);
    dense->scale(state->scores, count, shape->scale);
    if (shape->softcap > 0)
        cap_scores(backward, count, state);
    for (int r = 0; r < rows->count; r++) {
        float *probabilities = state->scores + r * TILE, *gradients = state->gradients + r * TILE;
        dense->exponentials(probabilities, TILE, backward->log_sums[row + (size_t)r]);
        mask_row(attention_dense_seen(shape, &shape->sequences[rows->sequence], rows->first + r),
                 tile->first, probabilities);
        dense->softmax_gradient(gradients, probabilities, TILE, backward->deltas[row + (size_t)r]);
    }
    for (int i = 0; i < count && shape->softcap > 0; i++)
        state->gradients[i] *= state->factors[i];
    dense->scale(state->gradients, count, shape->scale);
}

/* into[key] += Σ_row weights[row][key] × rows[row] */
static void add_to_keys(const struct attention_backward *backward, const float *weights,
                        const float *rows, int row_count, int key_count, float *into) {
    int dim = attention_dense_dim(backward->shape->head_dim);
    backward->dense->multiply(&(struct attention_dense_product){
        .a = weights,
        .a_row = 1,
        .a_step = TILE,
        .b = rows,
        .b_stride = (size_t)dim,
        .out = into,
        .out_stride = (size_t)dim,
        .rows = key_count,
        .columns = dim,
        .k = row_count,
        .accumulate = true,
    });
}

static void add_to_queries(const struct attention_backward *backward, const float *weights,
                           const struct key_tile *tile, int row_count, float *into) {
    int dim = attention_dense_dim(backward->shape->head_dim);
    backward->dense->multiply(&(struct attention_dense_product){
        .a = weights,
        .a_row = TILE,
        .a_step = 1,
        .b = backward->keys + tile->at,
        .b_stride = (size_t)dim,
        .out = into,
        .out_stride = (size_t)dim,
        .rows = row_count,
        .columns = dim,
        .k = tile->count,
        .accumulate = true,
    });
}

static void visit_pair(const struct attention_backward *backward,
                       const struct attention_dense_block *rows, const struct key_tile *tile,
                       struct pair_state *state, enum parts parts) {
    size_t at = rows_at(backward, rows);
    recompute(backward, rows, tile, state);
    if (parts & KEY_GRADIENTS) {
        add_to_keys(backward, state->scores, backward->out_gradient + at, rows->count, tile->count,
                    backward->value_gradient + tile->at);
        add_to_keys(backward, state->gradients, backward->queries + at, rows->count, tile->count,
                    backward->key_gradient + tile->at);
    }
    if (parts & QUERY_GRADIENT)
        add_to_queries(backward, state->gradients, tile, rows->count,
                       backward->query_gradient + at);
}

/* ---- passes ---- */

static bool see_each_other(const struct attention_backward *backward,
                           const struct attention_dense_block *rows, int key_first) {
    const struct attention_dense_shape *shape = backward->shape;
    const struct attention_dense_sequence *sequence = &shape->sequences[rows->sequence];
    int first = attention_dense_seen(shape, sequence, rows->first).first;
    int end = attention_dense_seen(shape, sequence, rows->first + rows->count - 1).end;
    return key_first < end && key_first + TILE > first;
}

/* All rows of the group's heads against the tile, upwards. */
static void walk_rows(const struct attention_backward *backward, int sequence, int kv_head,
                      const struct key_tile *tile, struct pair_state *state, enum parts parts) {
    int group = backward->shape->heads / backward->shape->kv_heads;
    int query_count = backward->shape->sequences[sequence].query_count;
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
        for (int first = 0; first < query_count; first += TILE) {
            int left = query_count - first;
            struct attention_dense_block rows = {sequence, head, first, left < TILE ? left : TILE};
            if (see_each_other(backward, &rows, tile->first))
                visit_pair(backward, &rows, tile, state, parts);
        }
}

static void walk_keys(const struct attention_backward *backward, int sequence, int kv_head,
                      int key_first, struct pair_state *state, enum parts parts) {
    size_t dim = (size_t)attention_dense_dim(backward->shape->head_dim);
    struct key_tile tile = load_keys(backward, sequence, kv_head, key_first, state);
    memset(backward->key_gradient + tile.at, 0, (size_t)tile.count * dim * sizeof(float));
    memset(backward->value_gradient + tile.at, 0, (size_t)tile.count * dim * sizeof(float));
    walk_rows(backward, sequence, kv_head, &tile, state, parts);
}

/* delta of every row; the rows' gradient begins at 0. */
static void delta_pass(void *context, int task, int worker) {
    (void)worker;
    const struct attention_backward *backward = context;
    const struct attention_dense_block *rows = &backward->blocks[task];
    int dim = attention_dense_dim(backward->shape->head_dim);
    size_t at = rows_at(backward, rows);
    for (int r = 0; r < rows->count; r++) {
        size_t row = at + (size_t)(r * dim);
        backward->deltas[row / (size_t)dim] =
            backward->dense->dot(backward->out + row, backward->out_gradient + row, dim);
    }
    memset(backward->query_gradient + at, 0, (size_t)(rows->count * dim) * sizeof(float));
}

static void head_pass(void *context, int task, int worker) {
    const struct attention_backward *backward = context;
    struct pair_state state = state_of(backward, worker);
    int sequence = task / backward->shape->kv_heads, kv_head = task % backward->shape->kv_heads;
    for (int key = 0; key < backward->shape->sequences[sequence].context; key += TILE)
        walk_keys(backward, sequence, kv_head, key, &state, ALL_GRADIENTS);
}

static void key_pass(void *context, int task, int worker) {
    const struct attention_backward *backward = context;
    struct pair_state state = state_of(backward, worker);
    const struct attention_dense_block *keys = &backward->key_blocks[task];
    walk_keys(backward, keys->sequence, keys->head, keys->first, &state, KEY_GRADIENTS);
}

static void query_pass(void *context, int task, int worker) {
    const struct attention_backward *backward = context;
    struct pair_state state = state_of(backward, worker);
    const struct attention_dense_block *rows = &backward->blocks[task];
    int kv_head = rows->head / (backward->shape->heads / backward->shape->kv_heads);
    for (int key = 0; key < backward->shape->sequences[rows->sequence].context; key += TILE) {
        if (!see_each_other(backward, rows, key))
            continue;
        struct key_tile tile = load_keys(backward, rows->sequence, kv_head, key, &state);
        visit_pair(backward, rows, &tile, &state, QUERY_GRADIENT);
    }
}

static void run_pass(struct attention_backward *backward, struct thread_pool *pool,
                     void (*function)(void *, int, int), int tasks) {
    thread_pool_run(pool, tasks, function, backward);
    backward->passes++;
}

void attention_backward_run(struct attention_backward *backward, struct thread_pool *pool,
                            bool joint) {
    const struct attention_dense_shape *shape = backward->shape;
    backward->passes = 0;
    run_pass(backward, pool, delta_pass, backward->block_count);
    if (joint) {
        run_pass(backward, pool, head_pass, shape->sequence_count * shape->kv_heads);
        return;
    }
    run_pass(backward, pool, key_pass, backward->key_block_count);
    run_pass(backward, pool, query_pass, backward->block_count);
}
