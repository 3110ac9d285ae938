/* Attention kernels with AVX-512 and its bf16 dot product. Rows are bf16; a page's parts are panels
 * of the very order that the linear kernels read, so the products are theirs. */
#include "core/kernels/attention_bf16_avx512.h"
#include "core/kernels/kernels_variants.h"
#include "core/kernels/multiply_avx512.h"

static bool available(const struct cpu_features *features) {
    return features->avx512 && features->avx512_bf16 && features->avx512_bf16_fast;
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

const struct attention_kernels attention_avx512bf16 = {
    .name = "avx512-bf16",
    .unit = UNIT_BF16,
    .available = available,
    .sub_rows = 24,
    .convert_query = attention_bf16_convert_query,
    .multiply_pairs = multiply_pairs,
    .softmax_page = attention_bf16_softmax_page,
    .scale_row = scale_row_avx512,
    .blend_row = blend_row_avx512,
    .expand_keys = attention_bf16_expand_keys,
    .expand_values = attention_bf16_expand_values,
};
