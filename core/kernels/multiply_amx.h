/* The register blocks of the AMX matmuls, the same for weights and for KV pages: rows of bf16 times
 * a panel of bf16 pairs, both read as they lie. 32 rows × 32 columns keep four tiles of sums: each
 * step of 32 inputs is four loads and four products. Up to 16 rows take 64 columns at a time
 * instead, which again is four sums, enough to hide a product's latency.
 *
 * A product adds to each sum the fp32 sum of 16 even plus that of 16 odd inputs, whatever else is
 * in the tile; what is left of k behind whole steps is a shorter step. So a row's bits depend on
 * where steps begin, at multiples of 32 from the start, and not on rows, columns or blocks. */
#ifndef CORE_KERNELS_MULTIPLY_AMX_H
#define CORE_KERNELS_MULTIPLY_AMX_H

#include <stdbool.h>

#include "core/kernels/tiles_amx.h"
#include "core/kernels/unroll.h"

enum {
    MULTIPLY_AMX_STEP = 2 * TILES_AMX_PAIRS, /* inputs */
    MULTIPLY_AMX_ROWS = 2 * TILES_AMX_ROWS,
    MULTIPLY_AMX_COLUMNS = 2 * TILES_AMX_COLUMNS,
    MULTIPLY_AMX_COLUMNS_FEW_ROWS = 4 * TILES_AMX_COLUMNS,
    /* Steps of a strip of the panel that stay in 48 KiB of L1, with as many of 32 rows passing by.
     */
    MULTIPLY_AMX_STRIP_STEPS = 10,
};

struct multiply_amx {
    const char *rows;
    size_t row_stride; /* bytes, as all strides here */
    const char *panel;
    size_t panel_stride; /* from one pair of inputs to the next */
    int steps;
    char *out;
    size_t out_stride;
    bool accumulate;
};

/* Two tiles of rows × `tiles` (1 or 2) of columns. */
ALWAYS_INLINE void multiply_amx_many(const struct multiply_amx *block, const int tiles) {
    const size_t row_stride = block->row_stride, panel_stride = block->panel_stride;
    const size_t out_stride = block->out_stride;
    const char *first = block->rows, *second = first + TILES_AMX_ROWS * row_stride;
    const char *panel = block->panel;
    char *out_first = block->out, *out_second = out_first + TILES_AMX_ROWS * out_stride;
    tiles_amx_zero(0);
    tiles_amx_zero(1);
    tiles_amx_zero(2);
    tiles_amx_zero(3);
    if (block->accumulate) {
        tiles_amx_load(0, out_first, out_stride);
        tiles_amx_load(2, out_second, out_stride);
    }
    if (block->accumulate && tiles > 1) {
        tiles_amx_load(1, out_first + 64, out_stride);
        tiles_amx_load(3, out_second + 64, out_stride);
    }
    for (int step = block->steps; step > 0; step--) {
        tiles_amx_load(4, first, row_stride);
        tiles_amx_load(6, panel, panel_stride);
        tiles_amx_product(0, 4, 6);
        if (tiles > 1) {
            tiles_amx_load(7, panel + 64, panel_stride);
            tiles_amx_product(1, 4, 7);
        }
        tiles_amx_load(5, second, row_stride);
        tiles_amx_product(2, 5, 6);
        if (tiles > 1)
            tiles_amx_product(3, 5, 7);
        first += TILES_AMX_ROW_BYTES, second += TILES_AMX_ROW_BYTES;
        panel += TILES_AMX_PAIRS * panel_stride;
    }
    tiles_amx_store(0, out_first, out_stride);
    tiles_amx_store(2, out_second, out_stride);
    if (tiles > 1) {
        tiles_amx_store(1, out_first + 64, out_stride);
        tiles_amx_store(3, out_second + 64, out_stride);
    }
}

/* One tile of rows × `tiles` (1 to 4) of columns. */
ALWAYS_INLINE void multiply_amx_few(const struct multiply_amx *block, const int tiles) {
    const size_t row_stride = block->row_stride, panel_stride = block->panel_stride;
    const size_t out_stride = block->out_stride;
    const char *rows = block->rows, *panel = block->panel;
    char *out = block->out;
    tiles_amx_zero(0);
    tiles_amx_zero(1);
    tiles_amx_zero(2);
    tiles_amx_zero(3);
    if (block->accumulate) {
        tiles_amx_load(0, out, out_stride);
        if (tiles > 1)
            tiles_amx_load(1, out + 64, out_stride);
        if (tiles > 2)
            tiles_amx_load(2, out + 128, out_stride);
        if (tiles > 3)
            tiles_amx_load(3, out + 192, out_stride);
    }
    for (int step = block->steps; step > 0; step--) {
        tiles_amx_load(4, rows, row_stride);
        tiles_amx_load(6, panel, panel_stride);
        tiles_amx_product(0, 4, 6);
        if (tiles > 1) {
            tiles_amx_load(7, panel + 64, panel_stride);
            tiles_amx_product(1, 4, 7);
        }
        if (tiles > 2) {
            tiles_amx_load(6, panel + 128, panel_stride);
            tiles_amx_product(2, 4, 6);
        }
        if (tiles > 3) {
            tiles_amx_load(7, panel + 192, panel_stride);
            tiles_amx_product(3, 4, 7);
        }
        rows += TILES_AMX_ROW_BYTES;
        panel += TILES_AMX_PAIRS * panel_stride;
    }
    tiles_amx_store(0, out, out_stride);
    if (tiles > 1)
        tiles_amx_store(1, out + 64, out_stride);
    if (tiles > 2)
        tiles_amx_store(2, out + 128, out_stride);
    if (tiles > 3)
        tiles_amx_store(3, out + 192, out_stride);
}

/* One function a number of column tiles, not inlined: then the loop keeps all it needs in
 * registers.
 */
#define MULTIPLY_AMX_DEFINE(NAME, BLOCK, TILES)                                    \
    static __attribute__((noinline)) void NAME(const struct multiply_amx *block) { \
        BLOCK(block, TILES);                                                       \
    }

MULTIPLY_AMX_DEFINE(multiply_amx_many_1, multiply_amx_many, 1)
MULTIPLY_AMX_DEFINE(multiply_amx_many_2, multiply_amx_many, 2)
MULTIPLY_AMX_DEFINE(multiply_amx_few_1, multiply_amx_few, 1)
MULTIPLY_AMX_DEFINE(multiply_amx_few_2, multiply_amx_few, 2)
MULTIPLY_AMX_DEFINE(multiply_amx_few_3, multiply_amx_few, 3)
MULTIPLY_AMX_DEFINE(multiply_amx_few_4, multiply_amx_few, 4)

static inline struct multiply_amx multiply_amx_rows_from(struct multiply_amx block, int first) {
    block.rows += (size_t)first * block.row_stride;
    block.out += (size_t)first * block.out_stride;
    return block;
}

static inline struct multiply_amx multiply_amx_columns_from(struct multiply_amx block, int first) {
    block.panel += (size_t)first * 2 * sizeof(uint16_t);
    block.out += (size_t)first * sizeof(float);
    return block;
}

/* All columns; a strip of the panel serves all rows before the next one. The registers are shaped
 * for each block of 32 rows that begins below row_count. */
static inline void multiply_amx_many_rows(struct multiply_amx block, int row_count,
                                          int column_count) {
    for (int column = 0; column < column_count; column += MULTIPLY_AMX_COLUMNS) {
        struct multiply_amx strip = multiply_amx_columns_from(block, column);
        bool whole = column_count - column >= MULTIPLY_AMX_COLUMNS;
        for (int row = 0; row < row_count; row += MULTIPLY_AMX_ROWS) {
            struct multiply_amx part = multiply_amx_rows_from(strip, row);
            if (whole)
                multiply_amx_many_2(&part);
            else
                multiply_amx_many_1(&part);
        }
    }
}

static inline void multiply_amx_few_rows(struct multiply_amx block, int column_count) {
    static void (*const run[])(const struct multiply_amx *) = {
        multiply_amx_few_1, multiply_amx_few_2, multiply_amx_few_3, multiply_amx_few_4};
    for (int column = 0; column < column_count; column += MULTIPLY_AMX_COLUMNS_FEW_ROWS) {
        struct multiply_amx part = multiply_amx_columns_from(block, column);
        int tiles = (column_count - column) / TILES_AMX_COLUMNS;
        run[tiles < 4 ? tiles - 1 : 3](&part);
    }
}

/* All rows and columns in steps of `pairs` pairs of inputs. */
static inline void multiply_amx_steps(struct multiply_amx block, int row_count, int column_count,
                                      int pairs) {
    int rest = row_count % MULTIPLY_AMX_ROWS, whole = row_count - rest;
    if (whole > 0) {
        tiles_amx_shape(TILES_AMX_ROWS, TILES_AMX_ROWS, pairs);
        multiply_amx_many_rows(block, whole, column_count);
    }
    block = multiply_amx_rows_from(block, whole);
    if (rest > TILES_AMX_ROWS) {
        tiles_amx_shape(TILES_AMX_ROWS, rest - TILES_AMX_ROWS, pairs);
        multiply_amx_many_rows(block, rest, column_count);
    } else if (rest > 0) {
        tiles_amx_shape(rest, rest, pairs);
        multiply_amx_few_rows(block, column_count);
    }
}

/* Many rows, in parts of k that keep a strip in the first-level cache; then they read the other
 * operand alone from the second. */
static inline void multiply_amx_parts(struct multiply_amx block, int row_count, int column_count) {
    int steps = block.steps, parts = 1;
    if (row_count > MULTIPLY_AMX_ROWS && steps > 0)
        parts = (steps + MULTIPLY_AMX_STRIP_STEPS - 1) / MULTIPLY_AMX_STRIP_STEPS;
    for (int part = 0; part < parts; part++) {
        int first = steps * part / parts;
        block.steps = steps * (part + 1) / parts - first;
        multiply_amx_steps(block, row_count, column_count, TILES_AMX_PAIRS);
        block.rows += (size_t)block.steps * TILES_AMX_ROW_BYTES;
        block.panel += (size_t)block.steps * TILES_AMX_PAIRS * block.panel_stride;
        block.accumulate = true;
    }
}

/* The ops `multiply` and `multiply_pairs` of kernels.h. What is left of k comes after all whole
 * steps, because another shape empties the sums: they take the way over `out`, which is exact. */
static inline void multiply_amx_panel(const void *rows, size_t row_stride, int row_count,
                                      const void *panel, int panel_columns, int k, float *out,
                                      size_t out_stride, int column_count, bool accumulate) {
    struct multiply_amx block = {
        .rows = rows,
        .row_stride = row_stride,
        .panel = panel,
        .panel_stride = (size_t)panel_columns * 2 * sizeof(uint16_t),
        .steps = k / MULTIPLY_AMX_STEP,
        .out = (char *)out,
        .out_stride = out_stride * sizeof(float),
        .accumulate = accumulate,
    };
    int rest = k % MULTIPLY_AMX_STEP / 2;
    tiles_amx_ready();
    if (block.steps > 0 || rest == 0)
        multiply_amx_parts(block, row_count, column_count);
    if (rest == 0)
        return;
    block.rows += (size_t)block.steps * TILES_AMX_ROW_BYTES;
    block.panel += (size_t)block.steps * TILES_AMX_PAIRS * block.panel_stride;
    block.accumulate = accumulate || block.steps > 0;
    block.steps = 1;
    multiply_amx_steps(block, row_count, column_count, rest);
}

#endif
