/* The linear op's variants, best first, and the walk of one column block: unpack a chunk of weights
 * into a panel that stays in cache, multiply all rows by it, next chunk. Chunks accumulate in
 * ascending k, so neither the chunk nor the number of rows changes a bit. */
#include <assert.h>
#include <string.h>

#include "core/kernels/int8_layout.h"
#include "core/kernels/kernels.h"
#include "core/kernels/kernels_variants.h"
#include "core/kernels/tile.h"
#include "core/kernels/tile_layout.h"

enum {
    CHUNK_FEW_ROWS = 256, /* the panel is read once or twice: keep it in L1 */
    FEW_PASSES = 2,
    EDGE_ROWS = 16, /* rows at a time through a buffer when a block is not full */
    CACHE_LINE = 64,
    PART_ROWS_MAX = 512,
    PART_ROWS_MIN = 32,
};

static const struct linear_kernels *const variants[] = {
#if defined(__x86_64__)
    &linear_amx,    &linear_avx512bf16, &linear_avx512, &linear_avx2,
#endif
    &linear_scalar,
};

static const struct linear_kernels *const int8_variants[] = {
#if defined(__x86_64__)
    &linear_int8_avx512vnni,
    &linear_int8_avxvnni,
    &linear_int8_avx2,
#endif
    &linear_int8_scalar,
};

size_t linear_variant_count(void) {
    return sizeof variants / sizeof variants[0];
}

const struct linear_kernels *linear_variant_at(size_t index) {
    assert(index < linear_variant_count());
    return variants[index];
}

size_t linear_int8_variant_count(void) {
    return sizeof int8_variants / sizeof int8_variants[0];
}

const struct linear_kernels *linear_int8_variant_at(size_t index) {
    assert(index < linear_int8_variant_count());
    return int8_variants[index];
}

size_t linear_row_bytes(enum unit unit, int k) {
    if (unit == UNIT_INT8)
        return ((size_t)k + INT8_GROUP - 1) / INT8_GROUP * sizeof(struct int8_row_group);
    size_t even = ((size_t)k + 1) / 2 * 2;
    return even * (unit == UNIT_BF16 ? sizeof(uint16_t) : sizeof(float));
}

bool linear_has_int8(const struct tile_set *set) {
    for (int i = 0; i < set->part_count; i++)
        if (!tile_format_has_int8(set->tiles[i].format))
            return false;
    return true;
}

/* An odd number of lines. */
size_t linear_row_stride(enum unit unit, int k) {
    size_t lines = (linear_row_bytes(unit, k) + CACHE_LINE - 1) / CACHE_LINE;
    return (lines | 1) * CACHE_LINE;
}

static int clamp(size_t value, int low, int high) {
    return value < (size_t)low ? low : value > (size_t)high ? high : (int)value;
}

int linear_row_parts(const struct linear_kernels *kernels, int k, int row_count, int block_count,
                     int worker_count) {
    int rows_max = clamp(kernels->rows_bytes / linear_row_bytes(kernels->unit, k),
                         2 * PART_ROWS_MIN, PART_ROWS_MAX);
    int best = 1;
    int64_t best_cost = INT64_MAX;
    for (int parts = 1; parts == 1 || row_count / parts >= PART_ROWS_MIN; parts++) {
        int rows = (row_count + parts - 1) / parts;
        int64_t rounds = ((int64_t)block_count * parts + worker_count - 1) / worker_count;
        int64_t cost = rounds * (rows + kernels->unpack_rows);
        if (rows <= rows_max && cost < best_cost)
            best = parts, best_cost = cost;
    }
    return best;
}

/* Whole passes but for the last part. */
int linear_row_first(const struct linear_kernels *kernels, int row_count, int part_count,
                     int part) {
    if (part == part_count)
        return row_count;
    int first = (int)((int64_t)row_count * part / part_count);
    return first / kernels->pass_rows * kernels->pass_rows;
}

int linear_k_chunk(const struct linear_kernels *kernels, int row_count) {
    return row_count <= FEW_PASSES * kernels->pass_rows ? CHUNK_FEW_ROWS : kernels->chunk;
}

size_t linear_panel_bytes(const struct linear_kernels *kernels) {
    if (kernels->unit == UNIT_INT8)
        return INT8_HEADER_BYTES +
               (size_t)(kernels->chunk / INT8_GROUP_MIN) * int8_layout_record_bytes(INT8_GROUP_MIN);
    return linear_row_bytes(kernels->unit, kernels->chunk) * PANEL_COLUMNS;
}

static const void *row_at(const struct linear_task *task, int row, size_t offset) {
    return (const char *)task->rows + (size_t)row * task->row_stride + offset;
}

static void copy_columns(const float *from, size_t from_stride, float *to, size_t to_stride,
                         int row_count, int column_count) {
    for (int r = 0; r < row_count; r++)
        memcpy(to + (size_t)r * to_stride, from + (size_t)r * from_stride,
               (size_t)column_count * sizeof(float));
}

static void multiply_few(const struct linear_kernels *kernels, const struct tile_block *block,
                         const struct linear_task *task) {
    float buffer[LINEAR_FEW_ROWS_MAX][PANEL_COLUMNS];
    float *out = task->out + block->out_first;
    if (block->out_count == PANEL_COLUMNS) {
        kernels->multiply_few(block->tile, block->block, task->rows, task->row_stride,
                              task->row_count, out, task->out_stride);
        return;
    }
    kernels->multiply_few(block->tile, block->block, task->rows, task->row_stride, task->row_count,
                          buffer[0], PANEL_COLUMNS);
    copy_columns(buffer[0], PANEL_COLUMNS, out, task->out_stride, task->row_count,
                 block->out_count);
}

/* One chunk of a block with fewer real columns than a panel: whole vectors in a buffer, real
 * columns out.
 */
static void multiply_edge(const struct linear_kernels *kernels, const struct tile_block *block,
                          const struct linear_task *task, int k_first, int k) {
    float buffer[EDGE_ROWS][PANEL_COLUMNS] = {{0}};
    int columns = (block->out_count + 15) / 16 * 16;
    size_t offset = linear_row_bytes(kernels->unit, k_first);
    for (int first = 0; first < task->row_count; first += EDGE_ROWS) {
        int count = task->row_count - first < EDGE_ROWS ? task->row_count - first : EDGE_ROWS;
        float *out = task->out + (size_t)first * task->out_stride + block->out_first;
        if (k_first > 0)
            copy_columns(out, task->out_stride, buffer[0], PANEL_COLUMNS, count, block->out_count);
        kernels->multiply(row_at(task, first, offset), task->row_stride, count, task->panel,
                          PANEL_COLUMNS, k, buffer[0], PANEL_COLUMNS, columns, k_first > 0);
        copy_columns(buffer[0], PANEL_COLUMNS, out, task->out_stride, count, block->out_count);
    }
}

void linear_multiply_block(const struct linear_kernels *kernels, const struct tile_block *block,
                           const struct linear_task *task) {
    if (task->row_count <= kernels->few_rows) {
        multiply_few(kernels, block, task);
        return;
    }
    int in = block->tile->in, chunk = linear_k_chunk(kernels, task->row_count);
    assert(chunk % kernels->k_step == 0);
    for (int first = 0; first < in; first += chunk) {
        int count = in - first < chunk ? in - first : chunk, even = (count + 1) / 2 * 2;
        kernels->unpack_panel(block->tile, block->block, first, count, task->panel);
        if (block->out_count < PANEL_COLUMNS)
            multiply_edge(kernels, block, task, first, even);
        else
            kernels->multiply(row_at(task, 0, linear_row_bytes(kernels->unit, first)),
                              task->row_stride, task->row_count, task->panel, PANEL_COLUMNS, even,
                              task->out + block->out_first, task->out_stride, PANEL_COLUMNS,
                              first > 0);
    }
}
