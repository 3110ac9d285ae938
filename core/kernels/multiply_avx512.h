/* The register blocks of the AVX-512 matmuls. Rows and panels are seen as 32-bit elements (a float,
 * or a pair of bf16), so fp32 and bf16 differ only in the product of two vectors, given as a
 * constant function. Six rows × 64 columns keep 24 sums in registers: 10 loads feed 24 products.
 * Fewer rows and columns are the same code with smaller constants; every output is one sum over
 * ascending k in all of them. */
#ifndef CORE_KERNELS_MULTIPLY_AVX512_H
#define CORE_KERNELS_MULTIPLY_AVX512_H

#include "core/kernels/unpack_avx512.h"

enum { MULTIPLY_ROWS = 6, MULTIPLY_VECTORS = 4 };

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

ALWAYS_INLINE __m512i multiply_broadcast(const char *element) {
    int bits;
    memcpy(&bits, element, sizeof bits);
    return _mm512_set1_epi32(bits);
}

ALWAYS_INLINE void multiply_rows(const struct multiply_block *block, const int row_count,
                                 const int vector_count,
                                 __m512 (*product)(__m512 sum, __m512i row, __m512i panel)) {
    __m512 sums[MULTIPLY_ROWS][MULTIPLY_VECTORS];
    UNROLL(6)
    for (int r = 0; r < row_count; r++) {
        UNROLL(4)
        for (int v = 0; v < vector_count; v++)
            sums[r][v] = block->accumulate
                             ? _mm512_loadu_ps(block->out + (size_t)r * block->out_stride + 16 * v)
                             : _mm512_setzero_ps();
    }
    const char *row = block->rows, *panel = block->panel;
    for (int step = block->steps; step > 0; step--) {
        __m512i columns[MULTIPLY_VECTORS];
        UNROLL(4)
        for (int v = 0; v < vector_count; v++)
            columns[v] = _mm512_loadu_si512(panel + 64 * v);
        UNROLL(6)
        for (int r = 0; r < row_count; r++) {
            __m512i broadcast = multiply_broadcast(row + (size_t)r * block->row_stride);
            UNROLL(4)
            for (int v = 0; v < vector_count; v++)
                sums[r][v] = product(sums[r][v], broadcast, columns[v]);
        }
        row += sizeof(float);
        panel += block->panel_stride;
    }
    UNROLL(6)
    for (int r = 0; r < row_count; r++) {
        UNROLL(4)
        for (int v = 0; v < vector_count; v++)
            _mm512_storeu_ps(block->out + (size_t)r * block->out_stride + 16 * v, sums[r][v]);
    }
}

#define MULTIPLY_CASE(ROWS, VECTORS, PRODUCT)         \
    case ROWS:                                        \
        multiply_rows(block, ROWS, VECTORS, PRODUCT); \
        break;

/* One function a column count: void NAME(const struct multiply_block *block, int row_count). */
#define MULTIPLY_DEFINE(NAME, VECTORS, PRODUCT)                           \
    static void NAME(const struct multiply_block *block, int row_count) { \
        switch (row_count) {                                              \
            MULTIPLY_CASE(1, VECTORS, PRODUCT)                            \
            MULTIPLY_CASE(2, VECTORS, PRODUCT)                            \
            MULTIPLY_CASE(3, VECTORS, PRODUCT)                            \
            MULTIPLY_CASE(4, VECTORS, PRODUCT)                            \
            MULTIPLY_CASE(5, VECTORS, PRODUCT)                            \
            MULTIPLY_CASE(6, VECTORS, PRODUCT)                            \
        }                                                                 \
    }

/* All rows of one strip of columns, in blocks of equal size: 7 rows are 4 + 3, not 6 + 1. */
ALWAYS_INLINE void multiply_strip(struct multiply_block block, int row_count,
                                  void (*run)(const struct multiply_block *block, int row_count)) {
    int left = (row_count + MULTIPLY_ROWS - 1) / MULTIPLY_ROWS;
    for (; left > 0; left--) {
        int rows = (row_count + left - 1) / left;
        run(&block, rows);
        block.rows += (size_t)rows * block.row_stride;
        block.out += (size_t)rows * block.out_stride;
        row_count -= rows;
    }
}

/* All columns: strips of 64, then one of what is left; `run[v - 1]` takes v vectors. */
ALWAYS_INLINE void multiply_columns(struct multiply_block block, int row_count, int column_count,
                                    void (*const *run)(const struct multiply_block *, int)) {
    while (column_count > 0) {
        int vectors = column_count / TILE_LANES;
        if (vectors > MULTIPLY_VECTORS)
            vectors = MULTIPLY_VECTORS;
        multiply_strip(block, row_count, run[vectors - 1]);
        block.panel += vectors * 64;
        block.out += vectors * TILE_LANES;
        column_count -= vectors * TILE_LANES;
    }
}

/* The op `multiply` of kernels.h in `steps` steps of 32 bits a row; run as of multiply_columns. */
ALWAYS_INLINE void multiply_panel(const void *rows, size_t row_stride, int row_count,
                                  const void *panel, int panel_columns, int steps, float *out,
                                  size_t out_stride, int column_count, bool accumulate,
                                  void (*const *run)(const struct multiply_block *, int)) {
    const struct multiply_block block = {
        .rows = rows,
        .row_stride = row_stride,
        .panel = panel,
        .panel_stride = (size_t)panel_columns * sizeof(float),
        .steps = steps,
        .out = out,
        .out_stride = out_stride,
        .accumulate = accumulate,
    };
    multiply_columns(block, row_count, column_count, run);
}

/* A few rows straight from the decoder: the sums of 64 columns stay in registers over the whole k
 * and no panel is written. The same products in the same order as multiply_rows, so the same bits.
 */
struct multiply_few {
    const char *rows;
    size_t row_stride; /* bytes */
    __m512 sums[LINEAR_FEW_ROWS][MULTIPLY_VECTORS];
};

ALWAYS_INLINE void multiply_few_store(const struct multiply_few *few, int row_count, float *out,
                                      size_t out_stride) {
    UNROLL(4)
    for (int r = 0; r < row_count; r++) {
        UNROLL(4)
        for (int v = 0; v < MULTIPLY_VECTORS; v++)
            _mm512_storeu_ps(out + (size_t)r * out_stride + 16 * v, few->sums[r][v]);
    }
}

/* Defines NAME for a constant number of rows; TAKE(sink, values, rows) consumes one pair. */
#define MULTIPLY_FEW_DEFINE(NAME, ROWS, TAKE)                                                 \
    ALWAYS_INLINE void NAME##_take(void *sink, const __m512 *values) {                        \
        TAKE(sink, values, ROWS);                                                             \
    }                                                                                         \
    static void NAME(const struct tile *tile, int block, const void *rows, size_t row_stride, \
                     float *out, size_t out_stride) {                                         \
        struct multiply_few few = {.rows = rows, .row_stride = row_stride};                   \
        unpack_tile(tile, block, 0, tile->in, &few, NAME##_take);                             \
        multiply_few_store(&few, ROWS, out, out_stride);                                      \
    }

/* The op `multiply_few` of kernels.h. */
#define MULTIPLY_FEW_OP(TAKE)                                                                   \
    MULTIPLY_FEW_DEFINE(multiply_few_1, 1, TAKE)                                                \
    MULTIPLY_FEW_DEFINE(multiply_few_2, 2, TAKE)                                                \
    MULTIPLY_FEW_DEFINE(multiply_few_3, 3, TAKE)                                                \
    MULTIPLY_FEW_DEFINE(multiply_few_4, 4, TAKE)                                                \
    static void multiply_few(const struct tile *tile, int block, const void *rows,              \
                             size_t row_stride, int row_count, float *out, size_t out_stride) { \
        static void (*const run[])(const struct tile *, int, const void *, size_t, float *,     \
                                   size_t) = {multiply_few_1, multiply_few_2, multiply_few_3,   \
                                              multiply_few_4};                                  \
        run[row_count - 1](tile, block, rows, row_stride, out, out_stride);                     \
    }

/* Ceiling of the unit: 24 sums in registers, no memory. Returns the products done per lane of 16.
 */
ALWAYS_INLINE uint64_t multiply_spin(int rounds, float *sink,
                                     __m512 (*product)(__m512 sum, __m512i row, __m512i panel)) {
    __m512 sums[24];
    __m512i factor = _mm512_castps_si512(_mm512_set1_ps(*sink));
    UNROLL(24)
    for (int i = 0; i < 24; i++)
        sums[i] = _mm512_set1_ps((float)i);
    for (int round = 0; round < rounds; round++) {
        UNROLL(24)
        for (int i = 0; i < 24; i++)
            sums[i] = product(sums[i], factor, factor);
        __asm__ volatile("" : "+v"(factor));
    }
    __m512 total = sums[0];
    UNROLL(23)
    for (int i = 1; i < 24; i++)
        total = _mm512_add_ps(total, sums[i]);
    *sink += _mm512_reduce_add_ps(total);
    return (uint64_t)rounds * 24 * TILE_LANES;
}

/* The op `read` of kernels.h. */
static inline uint64_t multiply_read(const void *bytes, size_t byte_count) {
    const char *in = bytes;
    __m512i sums[8];
    UNROLL(8)
    for (int i = 0; i < 8; i++)
        sums[i] = _mm512_setzero_si512();
    for (size_t at = 0; at < byte_count; at += 512) {
        UNROLL(8)
        for (int i = 0; i < 8; i++)
            sums[i] = _mm512_xor_si512(sums[i], _mm512_loadu_si512(in + at + 64 * (size_t)i));
    }
    UNROLL(7)
    for (int i = 1; i < 8; i++)
        sums[0] = _mm512_xor_si512(sums[0], sums[i]);
    return (uint64_t)_mm512_reduce_add_epi64(sums[0]);
}

#endif
