/* The register blocks of the AVX2 matmuls: a few rows × 16 columns, two sums a row in registers
 * over the whole k. The weights' and the attention's differ in what one step multiplies, given as a
 * constant function, in the floats of a row it takes, and in how many rows leave room for that.
 * Panels are seen as 32-bit elements: a float, or a pair of bf16. Every output is one sum over
 * ascending k, whatever the block. */
#ifndef CORE_KERNELS_MULTIPLY_AVX2_H
#define CORE_KERNELS_MULTIPLY_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/kernels/unroll.h"

enum { MULTIPLY_ROWS = 6, MULTIPLY_VECTORS = 2, MULTIPLY_WIDTH = 8 };

struct multiply_block {
    const char *rows;
    size_t row_stride; /* bytes */
    const char *panel;
    size_t panel_stride; /* bytes from one step to the next */
    int steps;
    float *out;
    size_t out_stride; /* floats */
    bool accumulate;
};

/* `step` adds the products of `step_floats` of each row and 16 columns to the sums. */
ALWAYS_INLINE void
multiply_rows(const struct multiply_block *block, const int row_count, const size_t step_floats,
              void (*step)(const char *row, size_t row_stride, int row_count, const char *panel,
                           __m256 (*sums)[MULTIPLY_VECTORS])) {
    __m256 sums[MULTIPLY_ROWS][MULTIPLY_VECTORS];
    UNROLL(6)
    for (int r = 0; r < row_count; r++) {
        const float *out = block->out + (size_t)r * block->out_stride;
        UNROLL(2)
        for (int v = 0; v < MULTIPLY_VECTORS; v++)
            sums[r][v] =
                block->accumulate ? _mm256_loadu_ps(out + MULTIPLY_WIDTH * v) : _mm256_setzero_ps();
    }
    const char *row = block->rows, *panel = block->panel;
    for (int left = block->steps; left > 0; left--) {
        step(row, block->row_stride, row_count, panel, sums);
        row += step_floats * sizeof(float);
        panel += block->panel_stride;
    }
    UNROLL(6)
    for (int r = 0; r < row_count; r++) {
        float *out = block->out + (size_t)r * block->out_stride;
        UNROLL(2)
        for (int v = 0; v < MULTIPLY_VECTORS; v++)
            _mm256_storeu_ps(out + MULTIPLY_WIDTH * v, sums[r][v]);
    }
}

/* A block of at most rows_max rows, each number of them code of its own. */
ALWAYS_INLINE void multiply_any_rows(const struct multiply_block *block, int row_count,
                                     const int rows_max, const size_t step_floats,
                                     void (*step)(const char *row, size_t row_stride, int row_count,
                                                  const char *panel,
                                                  __m256 (*sums)[MULTIPLY_VECTORS])) {
    if (row_count == rows_max) {
        multiply_rows(block, rows_max, step_floats, step);
        return;
    }
    switch (row_count) {
    case 1:
        multiply_rows(block, 1, step_floats, step);
        break;
    case 2:
        multiply_rows(block, 2, step_floats, step);
        break;
    case 3:
        multiply_rows(block, 3, step_floats, step);
        break;
    case 4:
        multiply_rows(block, 4, step_floats, step);
        break;
    case 5:
        multiply_rows(block, 5, step_floats, step);
        break;
    }
}

/* All rows of one strip of columns, in blocks of equal size: of at most six rows, 7 are 4 + 3 and
 * not 6 + 1. */
ALWAYS_INLINE void multiply_strip(struct multiply_block block, int row_count, const int rows_max,
                                  void (*run)(const struct multiply_block *block, int row_count)) {
    for (int left = (row_count + rows_max - 1) / rows_max; left > 0; left--) {
        int rows = (row_count + left - 1) / left;
        run(&block, rows);
        block.rows += (size_t)rows * block.row_stride;
        block.out += (size_t)rows * block.out_stride;
        row_count -= rows;
    }
}

/* The ops `multiply` and `multiply_pairs` of kernels.h in `steps` steps; `run` takes up to rows_max
 * rows. */
ALWAYS_INLINE void multiply_panel(const void *rows, size_t row_stride, int row_count,
                                  const void *panel, int panel_columns, int steps, float *out,
                                  size_t out_stride, int column_count, bool accumulate,
                                  const int rows_max,
                                  void (*run)(const struct multiply_block *block, int row_count)) {
    struct multiply_block block = {
        .rows = rows,
        .row_stride = row_stride,
        .panel_stride = (size_t)panel_columns * sizeof(float),
        .steps = steps,
        .out_stride = out_stride,
        .accumulate = accumulate,
    };
    for (int c = 0; c < column_count; c += MULTIPLY_VECTORS * MULTIPLY_WIDTH) {
        block.panel = (const char *)panel + (size_t)c * sizeof(float);
        block.out = out + c;
        multiply_strip(block, row_count, rows_max, run);
    }
}

#endif
