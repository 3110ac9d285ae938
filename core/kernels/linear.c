/* The linear op's variants, best first, and the walk of one column block: unpack a chunk of weights
 * into a panel that stays in cache, multiply all rows by it, next chunk. Chunks accumulate in
 * ascending k, so neither the chunk nor the number of rows changes a bit. */
#include <assert.h>
#include <string.h>

#include "core/kernels/kernels.h"
#include "core/kernels/kernels_variants.h"
#include "core/kernels/tile.h"
#include "core/kernels/tile_layout.h"

enum {
    CHUNK = 512,          /* inputs: 64 KB of bf16 panel, 128 KB of fp32 */
    CHUNK_FEW_ROWS = 256, /* the panel is read once or twice: keep it in L1 */
    FEW_ROWS = 12,
    EDGE_ROWS = 16, /* rows at a time through a buffer when a block is not full */
};

static const struct linear_kernels *const variants[] = {
#if defined(__x86_64__)
    &linear_avx512bf16,
    &linear_avx512,
    &linear_avx2,
#endif
    &linear_scalar,
};

size_t linear_variant_count(void) {
    return sizeof variants / sizeof variants[0];
}

const struct linear_kernels *linear_variant_at(size_t index) {
    assert(index < linear_variant_count());
    return variants[index];
}

size_t linear_row_bytes(enum unit unit, int k) {
    size_t even = ((size_t)k + 1) / 2 * 2;
    return even * (unit == UNIT_BF16 ? sizeof(uint16_t) : sizeof(float));
}

int linear_k_chunk(const struct linear_kernels *kernels, int row_count) {
    (void)kernels;
    return row_count <= FEW_ROWS ? CHUNK_FEW_ROWS : CHUNK;
}

size_t linear_panel_bytes(const struct linear_kernels *kernels) {
    return linear_row_bytes(kernels->unit, CHUNK) * PANEL_COLUMNS;
}

/* A block with fewer real columns than a panel: whole vectors into a buffer, real columns out. */
static void multiply_edge(const struct linear_kernels *kernels, const struct linear_task *task,
                          const void *rows, int k, float *out, int out_count, bool accumulate) {
    float buffer[EDGE_ROWS][PANEL_COLUMNS];
    int columns = (out_count + 15) / 16 * 16;
    for (int first = 0; first < task->row_count; first += EDGE_ROWS) {
        int count = task->row_count - first < EDGE_ROWS ? task->row_count - first : EDGE_ROWS;
        float *out_rows = out + (size_t)first * task->out_stride;
        memset(buffer, 0, sizeof buffer);
        for (int r = 0; accumulate && r < count; r++)
            memcpy(buffer[r], out_rows + (size_t)r * task->out_stride,
                   (size_t)out_count * sizeof(float));
        kernels->multiply((const char *)rows + (size_t)first * task->row_stride, task->row_stride,
                          count, task->panel, PANEL_COLUMNS, k, buffer[0], PANEL_COLUMNS, columns,
                          accumulate);
        for (int r = 0; r < count; r++)
            memcpy(out_rows + (size_t)r * task->out_stride, buffer[r],
                   (size_t)out_count * sizeof(float));
    }
}

void linear_multiply_block(const struct linear_kernels *kernels, const struct tile_block *block,
                           const struct linear_task *task) {
    int in = block->tile->in;
    int chunk = linear_k_chunk(kernels, task->row_count);
    float *out = task->out + block->out_first;
    for (int first = 0; first < in; first += chunk) {
        int count = in - first < chunk ? in - first : chunk;
        const void *rows = (const char *)task->rows + linear_row_bytes(kernels->unit, first);
        kernels->unpack_panel(block->tile, block->block, first, count, task->panel);
        int even = (count + 1) / 2 * 2;
        if (block->out_count == PANEL_COLUMNS)
            kernels->multiply(rows, task->row_stride, task->row_count, task->panel, PANEL_COLUMNS,
                              even, out, task->out_stride, PANEL_COLUMNS, first > 0);
        else
            multiply_edge(kernels, task, rows, even, out, block->out_count, first > 0);
    }
}
