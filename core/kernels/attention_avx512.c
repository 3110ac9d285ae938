/* Attention kernels with AVX-512 in fp32. A pair of bf16 keys or values is widened in registers,
 * even then odd, and serves all rows of a block. */
#include <string.h>

#include "core/kernels/attention_softmax_avx512.h"
#include "core/kernels/kernels_variants.h"

enum { BLOCK_ROWS = 5, BLOCK_VECTORS = 4 };

static bool available(const struct cpu_features *features) {
    return features->avx512;
}

static void convert_query(const float *in, int count, float factor, void *out) {
    memcpy(out, in, (size_t)count * sizeof *in);
    scale_row_avx512(out, count, factor);
}

struct block {
    const char *rows;
    size_t row_stride; /* bytes */
    const uint16_t *panel;
    size_t panel_stride; /* elements from one pair to the next */
    int k;
    float *out;
    size_t out_stride;
    bool accumulate;
};

static inline __attribute__((always_inline)) void
multiply_rows(const struct block *block, const int row_count, const int vector_count) {
    const __m512i high = _mm512_set1_epi32((int)0xffff0000u);
    __m512 sums[BLOCK_ROWS][BLOCK_VECTORS];
#pragma GCC unroll 5
    for (int r = 0; r < row_count; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < vector_count; v++)
            sums[r][v] = block->accumulate
                             ? _mm512_loadu_ps(block->out + (size_t)r * block->out_stride + 16 * v)
                             : _mm512_setzero_ps();
    }
    const uint16_t *panel = block->panel;
    for (int i = 0; i < block->k; i += 2) {
        const char *row = block->rows + (size_t)i * sizeof(float);
        __m512i pairs[BLOCK_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vector_count; v++)
            pairs[v] = _mm512_loadu_si512(panel + 32 * v);
#pragma GCC unroll 5
        for (int r = 0; r < row_count; r++) {
            float value;
            memcpy(&value, row + (size_t)r * block->row_stride, sizeof value);
            __m512 broadcast = _mm512_set1_ps(value);
#pragma GCC unroll 4
            for (int v = 0; v < vector_count; v++)
                sums[r][v] = _mm512_fmadd_ps(
                    broadcast, _mm512_castsi512_ps(_mm512_slli_epi32(pairs[v], 16)), sums[r][v]);
        }
#pragma GCC unroll 5
        for (int r = 0; r < row_count; r++) {
            float value;
            memcpy(&value, row + (size_t)r * block->row_stride + sizeof value, sizeof value);
            __m512 broadcast = _mm512_set1_ps(value);
#pragma GCC unroll 4
            for (int v = 0; v < vector_count; v++)
                sums[r][v] = _mm512_fmadd_ps(
                    broadcast, _mm512_castsi512_ps(_mm512_and_si512(pairs[v], high)), sums[r][v]);
        }
        panel += block->panel_stride;
    }
#pragma GCC unroll 5
    for (int r = 0; r < row_count; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < vector_count; v++)
            _mm512_storeu_ps(block->out + (size_t)r * block->out_stride + 16 * v, sums[r][v]);
    }
}

#define BLOCK_CASE(ROWS, VECTORS)            \
    case ROWS:                               \
        multiply_rows(block, ROWS, VECTORS); \
        break;

/* One function a column count. */
#define BLOCK_DEFINE(NAME, VECTORS)                              \
    static void NAME(const struct block *block, int row_count) { \
        switch (row_count) {                                     \
            BLOCK_CASE(1, VECTORS)                               \
            BLOCK_CASE(2, VECTORS)                               \
            BLOCK_CASE(3, VECTORS)                               \
            BLOCK_CASE(4, VECTORS)                               \
            BLOCK_CASE(5, VECTORS)                               \
        }                                                        \
    }

BLOCK_DEFINE(multiply_16, 1)
BLOCK_DEFINE(multiply_32, 2)
BLOCK_DEFINE(multiply_48, 3)
BLOCK_DEFINE(multiply_64, 4)

static void multiply_strip(struct block block, int row_count,
                           void (*run)(const struct block *block, int row_count)) {
    for (; row_count > 0; row_count -= BLOCK_ROWS) {
        run(&block, row_count < BLOCK_ROWS ? row_count : BLOCK_ROWS);
        block.rows += BLOCK_ROWS * block.row_stride;
        block.out += BLOCK_ROWS * block.out_stride;
    }
}

static void multiply_pairs(const void *rows, size_t row_stride, int row_count,
                           const uint16_t *panel, int panel_columns, int k, float *out,
                           size_t out_stride, int column_count, bool accumulate) {
    static void (*const run[])(const struct block *, int) = {multiply_16, multiply_32, multiply_48,
                                                             multiply_64};
    struct block block = {
        .rows = rows,
        .row_stride = row_stride,
        .panel = panel,
        .panel_stride = 2 * (size_t)panel_columns,
        .k = k,
        .out = out,
        .out_stride = out_stride,
        .accumulate = accumulate,
    };
    while (column_count > 0) {
        int vectors = column_count >= 64 ? BLOCK_VECTORS : column_count / 16;
        multiply_strip(block, row_count, run[vectors - 1]);
        block.panel += 32 * vectors;
        block.out += 16 * vectors;
        column_count -= 16 * vectors;
    }
}

static void softmax_page(const float *scores, int row_count, void *probabilities, float *row_max,
                         float *row_sum, float *factors) {
    float *out = probabilities;
    for (int r = 0; r < row_count; r++) {
        __m512 relative[4];
        factors[r] = softmax_relative_avx512(scores, row_max + r, row_sum, relative);
        __m512 sum = _mm512_loadu_ps(row_sum);
        for (int i = 0; i < 4; i++) {
            __m512 values = math_exp2_avx512(relative[i]);
            _mm512_storeu_ps(out + 16 * i, values);
            sum = _mm512_add_ps(sum, values);
        }
        _mm512_storeu_ps(row_sum, sum);
        scores += PANEL_COLUMNS, out += PANEL_COLUMNS, row_sum += SOFTMAX_LANES;
    }
}

/* To nearest even; the scales' NaN has no low bits to carry. */
static inline __attribute__((always_inline)) __m256i round_bf16(__m512 values) {
    __m512i bits = _mm512_castps_si512(values);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

static inline __attribute__((always_inline)) void store_bf16(__m512 first, __m512 second,
                                                             uint16_t *out) {
    _mm256_storeu_si256((void *)out, round_bf16(first));
    _mm256_storeu_si256((void *)(out + 16), round_bf16(second));
}

static void expand_keys(const int8_t *in, const float *scales, int head_dim, uint16_t *out) {
    expand_keys_avx512(in, scales, head_dim, out, store_bf16);
}

static void expand_values(const int8_t *in, const float *scales, int head_dim, uint16_t *out) {
    expand_values_avx512(in, scales, head_dim, out, store_bf16);
}

const struct attention_kernels attention_avx512 = {
    .name = "avx512",
    .unit = UNIT_F32,
    .available = available,
    .sub_rows = 24,
    .convert_query = convert_query,
    .multiply_pairs = multiply_pairs,
    .softmax_page = softmax_page,
    .scale_row = scale_row_avx512,
    .blend_row = blend_row_avx512,
    .expand_keys = expand_keys,
    .expand_values = expand_values,
};
