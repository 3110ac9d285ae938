/* The register blocks of the int8 matmuls on AVX2. The variants differ in how they form a group's
 * dot products, given as a constant function `dot`, for a few rows and up to half of a record's
 * columns at a time. Sixteen registers have room for those integer sums only: the fp32 sums wait in
 * the first-level cache. */
#ifndef CORE_KERNELS_MULTIPLY_INT8_AVX2_H
#define CORE_KERNELS_MULTIPLY_INT8_AVX2_H

#include "core/kernels/panel_int8_avx2.h"

enum { MULTIPLY_INT8_VECTORS = 4 }; /* of a strip, at most */

/* What a record's products are made for; a constant wherever they are inlined. */
struct multiply_int8_shape {
    int group; /* inputs a record */
    int bits;  /* of a code, at most */
};

struct multiply_int8_block {
    const char *rows;
    size_t row_stride;      /* bytes */
    const uint8_t *records; /* NULL: read them one by one */
    struct panel_int8_reader reader;
    void (*read)(struct panel_int8_reader *reader, uint8_t *record);
    int record_count, group, bits;
    float *out;
    size_t out_stride; /* floats */
    int vectors;       /* of natural columns that `out` has */
    bool accumulate;
};

ALWAYS_INLINE __m256i multiply_int8_broadcast(const int8_t *quad) {
    int bits;
    memcpy(&bits, quad, sizeof bits);
    return _mm256_set1_epi32(bits);
}

/* One record × up to four rows. */
ALWAYS_INLINE void
multiply_int8_record(const struct multiply_int8_block *block, const int row_count,
                     const struct multiply_int8_shape shape, int number, const uint8_t *record,
                     float (*sums)[PANEL_COLUMNS],
                     void (*dot)(const struct int8_step *steps, int row_count, int vector_count,
                                 struct multiply_int8_shape shape, const uint8_t *codes,
                                 __m256i (*dots)[MULTIPLY_INT8_VECTORS])) {
    const int vector_count = row_count < LINEAR_FEW_ROWS ? MULTIPLY_INT8_VECTORS : 2;
    const float *scales = (const void *)(record + (size_t)shape.group * PANEL_COLUMNS);
    struct int8_step steps[LINEAR_FEW_ROWS];
    UNROLL(4)
    for (int r = 0; r < row_count; r++)
        steps[r] =
            int8_layout_step(block->rows + (size_t)r * block->row_stride, shape.group, number);
    for (int first = 0; first < PANEL_INT8_VECTORS; first += vector_count) {
        __m256i dots[LINEAR_FEW_ROWS][MULTIPLY_INT8_VECTORS];
        dot(steps, row_count, vector_count, shape, record + 32 * (size_t)first, dots);
        UNROLL(4)
        for (int r = 0; r < row_count; r++) {
            __m256 scale = _mm256_set1_ps(steps[r].scale), row_sum = _mm256_set1_ps(steps[r].sum);
            UNROLL(4)
            for (int v = 0; v < vector_count; v++) {
                const float *at = scales + PANEL_INT8_LANES * (first + v);
                float *sum = &sums[r][PANEL_INT8_LANES * (first + v)];
                __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(dots[r][v]), _mm256_load_ps(at));
                __m256 total = _mm256_fmadd_ps(scaled, scale, _mm256_load_ps(sum));
                total = _mm256_fmadd_ps(_mm256_load_ps(at + PANEL_COLUMNS), row_sum, total);
                _mm256_store_ps(sum, total);
            }
        }
    }
}

static inline void multiply_int8_load_sums(const struct multiply_int8_block *block, int row_count,
                                           float (*sums)[PANEL_COLUMNS]) {
    for (int r = 0; r < row_count; r++) {
        __m256 natural[PANEL_INT8_VECTORS], ordered[PANEL_INT8_VECTORS];
        const float *out = block->out + (size_t)r * block->out_stride;
        for (int i = 0; i < PANEL_INT8_VECTORS; i++)
            natural[i] = block->accumulate && i < block->vectors
                             ? _mm256_loadu_ps(out + PANEL_INT8_LANES * i)
                             : _mm256_setzero_ps();
        panel_int8_order(natural, ordered);
        for (int v = 0; v < PANEL_INT8_VECTORS; v++)
            _mm256_store_ps(&sums[r][PANEL_INT8_LANES * v], ordered[v]);
    }
}

static inline void multiply_int8_store_sums(const struct multiply_int8_block *block, int row_count,
                                            float (*sums)[PANEL_COLUMNS]) {
    for (int r = 0; r < row_count; r++) {
        __m256 natural[PANEL_INT8_VECTORS], ordered[PANEL_INT8_VECTORS];
        float *out = block->out + (size_t)r * block->out_stride;
        for (int v = 0; v < PANEL_INT8_VECTORS; v++)
            ordered[v] = _mm256_load_ps(&sums[r][PANEL_INT8_LANES * v]);
        panel_int8_restore(ordered, natural);
        for (int i = 0; i < block->vectors; i++)
            _mm256_storeu_ps(out + PANEL_INT8_LANES * i, natural[i]);
    }
}

ALWAYS_INLINE void
multiply_int8_rows(struct multiply_int8_block *block, const int row_count,
                   const struct multiply_int8_shape shape,
                   void (*dot)(const struct int8_step *steps, int row_count, int vector_count,
                               struct multiply_int8_shape shape, const uint8_t *codes,
                               __m256i (*dots)[MULTIPLY_INT8_VECTORS])) {
    _Alignas(64) uint8_t buffer[INT8_GROUP * PANEL_COLUMNS + 2 * PANEL_COLUMNS * sizeof(float)];
    _Alignas(32) float sums[LINEAR_FEW_ROWS][PANEL_COLUMNS];
    multiply_int8_load_sums(block, row_count, sums);
    for (int n = 0; n < block->record_count; n++) {
        const uint8_t *record = buffer;
        if (block->records != NULL)
            record = block->records + (size_t)n * int8_layout_record_bytes(shape.group);
        else
            block->read(&block->reader, buffer);
        multiply_int8_record(block, row_count, shape, n, record, sums, dot);
    }
    multiply_int8_store_sums(block, row_count, sums);
}

/* Code of its own for every shape there is, or, not by_bits, for every group. */
ALWAYS_INLINE void
multiply_int8_shapes(struct multiply_int8_block *block, const int row_count, const bool by_bits,
                     void (*dot)(const struct int8_step *steps, int row_count, int vector_count,
                                 struct multiply_int8_shape shape, const uint8_t *codes,
                                 __m256i (*dots)[MULTIPLY_INT8_VECTORS])) {
    const int any = by_bits ? block->bits : 0;
    assert(block->group == INT8_GROUP || block->bits <= 6);
    if (block->group == INT8_GROUP_MIN && any <= 4)
        multiply_int8_rows(block, row_count, (struct multiply_int8_shape){16, 4}, dot);
    else if (block->group == INT8_GROUP_MIN)
        multiply_int8_rows(block, row_count, (struct multiply_int8_shape){16, 6}, dot);
    else if (any <= 4)
        multiply_int8_rows(block, row_count, (struct multiply_int8_shape){32, 4}, dot);
    else if (any == 5)
        multiply_int8_rows(block, row_count, (struct multiply_int8_shape){32, 5}, dot);
    else
        multiply_int8_rows(block, row_count, (struct multiply_int8_shape){32, 8}, dot);
}

/* `run` takes one to four rows. */
static inline void multiply_int8_panel(struct multiply_int8_block *block, int row_count,
                                       int rows_max,
                                       void (*const *run)(struct multiply_int8_block *block)) {
    for (int left = (row_count + rows_max - 1) / rows_max; left > 0; left--) {
        int count = (row_count + left - 1) / left;
        run[count - 1](block);
        block->rows += (size_t)count * block->row_stride;
        block->out += (size_t)count * block->out_stride;
        row_count -= count;
    }
}

/* The ops of kernels.h from `dot`: blocks of rows_max rows, by_bits and is_signed as above. */
#define MULTIPLY_INT8_ROWS_DEFINE(NAME, ROWS, BY_BITS, DOT) \
    static void NAME(struct multiply_int8_block *block) {   \
        multiply_int8_shapes(block, ROWS, BY_BITS, DOT);    \
    }

#define MULTIPLY_INT8_OPS(DOT, ROWS_MAX, BY_BITS, IS_SIGNED)                                      \
    MULTIPLY_INT8_ROWS_DEFINE(multiply_1, 1, BY_BITS, DOT)                                        \
    MULTIPLY_INT8_ROWS_DEFINE(multiply_2, 2, BY_BITS, DOT)                                        \
    MULTIPLY_INT8_ROWS_DEFINE(multiply_3, 3, BY_BITS, DOT)                                        \
    MULTIPLY_INT8_ROWS_DEFINE(multiply_4, 4, BY_BITS, DOT)                                        \
    static void (*const multiply_by_rows[])(struct multiply_int8_block *) = {                     \
        multiply_1, multiply_2, multiply_3, multiply_4};                                          \
    static void read_record(struct panel_int8_reader *reader, uint8_t *record) {                  \
        panel_int8_read(reader, IS_SIGNED, record);                                               \
    }                                                                                             \
    static void unpack_panel(const struct tile *tile, int block, int k_first, int k_count,        \
                             void *panel) {                                                       \
        struct panel_int8_reader reader = panel_int8_begin(tile, block, k_first);                 \
        struct int8_panel_header *header = panel;                                                 \
        uint8_t *record = (uint8_t *)panel + INT8_HEADER_BYTES;                                   \
        *header = (struct int8_panel_header){tile->format->group, panel_int8_bits(tile->format)}; \
        for (int k = 0; k < k_count; k += header->group) {                                        \
            read_record(&reader, record);                                                         \
            record += int8_layout_record_bytes(header->group);                                    \
        }                                                                                         \
    }                                                                                             \
    static void multiply(const void *rows, size_t row_stride, int row_count, const void *panel,   \
                         int panel_columns, int k, float *out, size_t out_stride,                 \
                         int column_count, bool accumulate) {                                     \
        const struct int8_panel_header *header = panel;                                           \
        assert(panel_columns == PANEL_COLUMNS && k % header->group == 0);                         \
        (void)panel_columns;                                                                      \
        struct multiply_int8_block block = {                                                      \
            .rows = rows,                                                                         \
            .row_stride = row_stride,                                                             \
            .records = (const uint8_t *)panel + INT8_HEADER_BYTES,                                \
            .record_count = k / header->group,                                                    \
            .group = header->group,                                                               \
            .bits = header->bits,                                                                 \
            .out = out,                                                                           \
            .out_stride = out_stride,                                                             \
            .vectors = column_count / PANEL_INT8_LANES,                                           \
            .accumulate = accumulate,                                                             \
        };                                                                                        \
        multiply_int8_panel(&block, row_count, ROWS_MAX, multiply_by_rows);                       \
    }                                                                                             \
    static void multiply_few(const struct tile *tile, int block, const void *rows,                \
                             size_t row_stride, int row_count, float *out, size_t out_stride) {   \
        struct multiply_int8_block whole = {                                                      \
            .rows = rows,                                                                         \
            .row_stride = row_stride,                                                             \
            .reader = panel_int8_begin(tile, block, 0),                                           \
            .read = read_record,                                                                  \
            .record_count = tile->in / tile->format->group,                                       \
            .group = tile->format->group,                                                         \
            .bits = panel_int8_bits(tile->format),                                                \
            .out = out,                                                                           \
            .out_stride = out_stride,                                                             \
            .vectors = PANEL_INT8_VECTORS,                                                        \
        };                                                                                        \
        multiply_by_rows[row_count - 1](&whole);                                                  \
    }

#endif
