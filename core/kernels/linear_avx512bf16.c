/* Linear kernels on AVX-512 with VDPBF16PS: inputs rounded to bf16, fp32 sums, twice the rate of
 * fp32 on Zen 4 and later. */
#include "core/kernels/kernels_variants.h"
#include "core/kernels/multiply_avx512.h"
#include "core/kernels/panel_bf16_avx512.h"

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

static void multiply(const void *rows, size_t row_stride, int row_count, const void *panel,
                     int panel_columns, int k, float *out, size_t out_stride, int column_count,
                     bool accumulate) {
    static void (*const run[])(const struct multiply_block *, int) = {multiply_16, multiply_32,
                                                                      multiply_48, multiply_64};
    multiply_panel(rows, row_stride, row_count, panel, panel_columns, k / 2, out, out_stride,
                   column_count, accumulate, run);
}

ALWAYS_INLINE void take_pair(struct multiply_few *few, const __m512 *values, int row_count) {
    __m512i columns[MULTIPLY_VECTORS];
    UNROLL(4)
    for (int i = 0; i < MULTIPLY_VECTORS; i++)
        columns[i] = panel_bf16_rounded(values, i);
    UNROLL(4)
    for (int r = 0; r < row_count; r++) {
        __m512i row = multiply_broadcast(few->rows + (size_t)r * few->row_stride);
        UNROLL(4)
        for (int i = 0; i < MULTIPLY_VECTORS; i++)
            few->sums[r][i] = product(few->sums[r][i], row, columns[i]);
    }
    few->rows += 2 * sizeof(uint16_t);
}

MULTIPLY_FEW_OP(take_pair)

static uint64_t spin(int rounds, float *sink) {
    return 4 * multiply_spin(rounds, sink, product);
}

const struct linear_kernels linear_avx512bf16 = {
    .name = "avx512-bf16",
    .unit = UNIT_BF16,
    .available = available,
    .convert_row = panel_bf16_convert_row,
    .multiply = multiply,
    .unpack_panel = panel_bf16_unpack,
    .few_rows = LINEAR_FEW_ROWS,
    .multiply_few = multiply_few,
    .k_step = 2,
    .chunk = 2048,
    .pass_rows = 6,
    .unpack_rows = 8,
    .rows_bytes = SIZE_MAX,
    .spin = spin,
    .read = multiply_read,
};
