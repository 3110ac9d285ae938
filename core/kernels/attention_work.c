/* Rows of a sequence at ascending positions see ascending ranges of keys, so a tile's keys are
 * those from its first row's first to its last row's last. */
#include "core/kernels/attention_work.h"

#include "core/kernels/attention_block.h"
#include "core/kernels/attention_variants_passes.h"

enum { TILE = ATTENTION_DENSE_TILE };

/* Keys, in whole units of `unit`, that rows [first, first + count) see together. */
static int64_t keys_seen(const struct attention_dense_shape *shape,
                         const struct attention_dense_sequence *sequence, int first, int count,
                         int unit) {
    int from = attention_dense_seen(shape, sequence, first).first / unit * unit;
    int end = attention_dense_seen(shape, sequence, first + count - 1).end;
    return ((int64_t)end - from + unit - 1) / unit * unit;
}

/* Σ over tiles of `rows` rows of the keys they see; weighted by the rows, or each tile once. */
static int64_t sum_tiles(const struct attention_dense_shape *shape, int rows, int unit,
                         bool weighted) {
    int64_t sum = 0;
    for (int s = 0; s < shape->sequence_count; s++) {
        const struct attention_dense_sequence *sequence = &shape->sequences[s];
        for (int first = 0; first < sequence->query_count; first += rows) {
            int left = sequence->query_count - first, count = left < rows ? left : rows;
            sum += keys_seen(shape, sequence, first, count, unit) * (weighted ? count : 1);
        }
    }
    return sum;
}

int64_t attention_work_pairs(const struct attention_dense_shape *shape) {
    return sum_tiles(shape, 1, 1, true);
}

int64_t attention_work_pairs_tiled(const struct attention_dense_shape *shape) {
    return sum_tiles(shape, TILE, TILE, true);
}

int64_t attention_work_pairs_paged(const struct attention_dense_shape *shape) {
    return sum_tiles(shape, 1, PANEL_COLUMNS, true);
}

int64_t attention_work_pairs_all(const struct attention_dense_shape *shape) {
    int64_t sum = 0;
    for (int s = 0; s < shape->sequence_count; s++)
        sum += (int64_t)shape->sequences[s].query_count *
               (int64_t)attention_variants_stride(&shape->sequences[s]);
    return sum;
}

int64_t attention_work_keys(const struct attention_dense_shape *shape) {
    int64_t sum = 0;
    for (int s = 0; s < shape->sequence_count; s++)
        sum += keys_seen(shape, &shape->sequences[s], 0, shape->sequences[s].query_count, 1);
    return sum;
}

static int64_t row_count(const struct attention_dense_shape *shape) {
    const struct attention_dense_sequence *last = &shape->sequences[shape->sequence_count - 1];
    return (int64_t)last->query_first + last->query_count;
}

/* fp32 elements of one query-sized array; of the keys, and the values, that are seen. */
static double query_bytes(const struct attention_dense_shape *shape) {
    return 4.0 * (double)row_count(shape) * shape->heads * shape->head_dim;
}

static double key_bytes(const struct attention_dense_shape *shape, double bytes_each) {
    return bytes_each * (double)attention_work_keys(shape) * shape->kv_heads * shape->head_dim;
}

/* Bytes of a token's keys and values, of one KV head. */
static double token_bytes(const struct attention_dense_shape *shape,
                          enum attention_page_type page_type) {
    if (page_type == ATTENTION_PAGE_BF16)
        return 2 * 2.0 * shape->head_dim;
    return (double)attention_page_bytes(page_type, shape->head_dim) / PANEL_COLUMNS;
}

static struct attention_work minimal(const struct attention_dense_shape *shape,
                                     enum attention_page_type page_type) {
    double flops = 4.0 * shape->head_dim * shape->heads * (double)attention_work_pairs(shape);
    double kv =
        token_bytes(shape, page_type) * shape->kv_heads * (double)attention_work_keys(shape);
    return (struct attention_work){.flops = flops, .bytes = 2 * query_bytes(shape) + kv};
}

/* Scores in memory, `times` read or written; keys and values once a query head. */
static double score_bytes(const struct attention_dense_shape *shape, double times) {
    return times * 4 * shape->heads * (double)attention_work_pairs_all(shape);
}

/* Queries, output, keys and values as unfused copies them: widened (2 + 4 bytes), then scaled. */
static double unfused_bytes(const struct attention_dense_shape *shape) {
    double heads = (double)attention_dense_key_values(shape) / shape->kv_heads * shape->heads;
    double queries = query_bytes(shape);
    double widened = queries * 1.5 + 2 * heads * 6, scaled = 2 * queries + 2 * 4 * heads;
    double mask = 4 * (double)attention_work_pairs_all(shape);
    return widened + scaled + mask * (1 + shape->heads) + 2 * queries + 2 * 4 * heads;
}

struct attention_work attention_work_variant(const struct attention_dense_shape *shape,
                                             enum attention_variant variant,
                                             enum attention_page_type page_type) {
    struct attention_work work = minimal(shape, page_type);
    double capped = shape->softcap > 0 ? 2 : 0;
    double pairs = (double)attention_work_pairs_all(shape);
    double heads = 2 * 4 * (double)attention_dense_key_values(shape) / shape->kv_heads;
    if (variant == ATTENTION_TILED) {
        pairs = (double)attention_work_pairs_tiled(shape);
        work.bytes_moved = 2 * query_bytes(shape) + 2 * 4.0 * shape->head_dim * shape->heads *
                                                        (double)sum_tiles(shape, TILE, 1, false);
    } else if (variant == ATTENTION_UNFUSED) {
        work.bytes_moved = unfused_bytes(shape) + score_bytes(shape, 9 + capped);
    } else {
        work.bytes_moved = 2 * query_bytes(shape) + heads * shape->heads +
                           score_bytes(shape, (variant == ATTENTION_NAIVE ? 8 : 10) + capped);
    }
    work.flops_issued = 4.0 * attention_dense_dim(shape->head_dim) * shape->heads * pairs;
    return work;
}

struct attention_work attention_work_paged(const struct attention_dense_shape *shape,
                                           enum attention_page_type page_type) {
    struct attention_work work = minimal(shape, page_type);
    int positions = attention_block_positions(shape->heads / shape->kv_heads);
    double pages = (double)sum_tiles(shape, positions, PANEL_COLUMNS, false) / PANEL_COLUMNS;
    work.flops_issued = 4.0 * attention_page_dim(shape->head_dim) * shape->heads *
                        (double)attention_work_pairs_paged(shape);
    work.bytes_moved =
        2 * query_bytes(shape) +
        pages * shape->kv_heads * (double)attention_page_bytes(page_type, shape->head_dim);
    return work;
}

struct attention_work attention_work_backward(const struct attention_dense_shape *shape,
                                              bool joint) {
    double pairs = (double)attention_work_pairs(shape), rows = (double)row_count(shape);
    double tiles = (double)attention_work_pairs_tiled(shape) / TILE;
    double queries = query_bytes(shape), row = 4.0 * shape->head_dim * shape->heads;
    struct attention_work work = {
        .flops = 10.0 * shape->head_dim * shape->heads * pairs,
        .flops_issued = (joint ? 10.0 : 14.0) * attention_dense_dim(shape->head_dim) *
                        shape->heads * tiles * TILE,
        .bytes = 4 * queries + 4 * key_bytes(shape, 4) + 4 * rows * shape->heads,
    };
    /* delta: O and dO in; then rows of Q and dO a pair of tiles, and dQ in and out; the split
     * passes read keys and values again for every tile of rows and write dQ once. */
    double sides = 2 * row * tiles, dq = joint ? 2 * row * tiles : queries;
    double keys = joint ? 4 * key_bytes(shape, 4)
                        : 4 * key_bytes(shape, 4) + 2 * queries +
                              2 * row * (double)sum_tiles(shape, TILE, TILE, false);
    work.bytes_moved = 2 * queries + sides + dq + keys;
    return work;
}
