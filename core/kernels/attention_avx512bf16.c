/* Attention kernels with AVX-512 and its bf16 dot product. Rows are bf16; a page's parts are panels
 * of the very order that the linear kernels read, so the products are theirs. */
#include "core/kernels/attention_softmax_avx512.h"
#include "core/kernels/kernels_variants.h"
#include "core/kernels/multiply_avx512.h"

static bool available(const struct cpu_features *features) {
    return features->avx512 && features->avx512_bf16 && features->avx512_bf16_fast;
}

static void convert_query(const float *in, int count, float factor, void *out) {
    __m512 factors = _mm512_set1_ps(factor);
    uint16_t *row = out;
    for (int i = 0; i < count; i += 16) {
        __mmask16 used = math_lanes_avx512(count - i);
        __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(used, in + i), factors);
        _mm256_mask_storeu_epi16(row + i, used, (__m256i)_mm512_cvtneps_pbh(scaled));
    }
}

ALWAYS_INLINE __m512 product(__m512 sum, __m512i row, __m512i panel) {
    return _mm512_dpbf16_ps(sum, (__m512bh)row, (__m512bh)panel);
}

MULTIPLY_DEFINE(multiply_16, 1, product)
MULTIPLY_DEFINE(multiply_32, 2, product)
MULTIPLY_DEFINE(multiply_48, 3, product)
MULTIPLY_DEFINE(multiply_64, 4, product)

static void multiply_pairs(const void *rows, size_t row_stride, int row_count,
                           const uint16_t *panel, int panel_columns, int k, float *out,
                           size_t out_stride, int column_count, bool accumulate) {
    static void (*const run[])(const struct multiply_block *, int) = {multiply_16, multiply_32,
                                                                      multiply_48, multiply_64};
    struct multiply_block block = {
        .rows = rows,
        .row_stride = row_stride,
        .panel = (const void *)panel,
        .panel_stride = 2 * (size_t)panel_columns * sizeof(uint16_t),
        .steps = k / 2,
        .out = out,
        .out_stride = out_stride,
        .accumulate = accumulate,
    };
    multiply_columns(block, row_count, column_count, run);
}

/* The sums add what was stored: the bf16 values, even and odd ones widened. */
static void softmax_page(const float *scores, int row_count, void *probabilities, float *row_max,
                         float *row_sum, float *factors) {
    const __m512i high = _mm512_set1_epi32((int)0xffff0000u);
    uint16_t *out = probabilities;
    for (int r = 0; r < row_count; r++) {
        __m512 relative[4];
        factors[r] = softmax_relative_avx512(scores, row_max + r, row_sum, relative);
        __m512 sum = _mm512_loadu_ps(row_sum);
        for (int i = 0; i < 4; i += 2) {
            __m512i pairs = (__m512i)_mm512_cvtne2ps_pbh(math_exp2_avx512(relative[i + 1]),
                                                         math_exp2_avx512(relative[i]));
            _mm512_storeu_si512(out + 16 * i, pairs);
            __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
            __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(pairs, high));
            sum = _mm512_add_ps(sum, _mm512_add_ps(even, odd));
        }
        _mm512_storeu_ps(row_sum, sum);
        scores += PANEL_COLUMNS, out += PANEL_COLUMNS, row_sum += SOFTMAX_LANES;
    }
}

ALWAYS_INLINE void store_bf16(__m512 first, __m512 second, uint16_t *out) {
    _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

static void expand_keys(const int8_t *in, const float *scales, int head_dim, uint16_t *out) {
    expand_keys_avx512(in, scales, head_dim, out, store_bf16);
}

static void expand_values(const int8_t *in, const float *scales, int head_dim, uint16_t *out) {
    expand_values_avx512(in, scales, head_dim, out, store_bf16);
}

const struct attention_kernels attention_avx512bf16 = {
    .name = "avx512-bf16",
    .unit = UNIT_BF16,
    .available = available,
    .convert_query = convert_query,
    .multiply_pairs = multiply_pairs,
    .softmax_page = softmax_page,
    .scale_row = scale_row_avx512,
    .blend_row = blend_row_avx512,
    .expand_keys = expand_keys,
    .expand_values = expand_values,
};
