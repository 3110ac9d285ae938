/* Linear kernels on AVX-512 in fp32: the path of Intel CPUs before Granite Rapids, whose bf16 dot
 * product is slower than their fused multiply-add, and of CPUs without one. */
#include "core/kernels/multiply_avx512.h"

#include "core/kernels/kernels_variants.h"

static bool available(const struct cpu_features *features) {
    return features->avx512;
}

static void convert_row(const float *in, int count, void *out) {
    memcpy(out, in, (size_t)count * sizeof *in);
}

ALWAYS_INLINE __m512 product(__m512 sum, __m512i row, __m512i panel) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(row), _mm512_castsi512_ps(panel), sum);
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
    multiply_panel(rows, row_stride, row_count, panel, panel_columns, k, out, out_stride,
                   column_count, accumulate, run);
}

/* Two vectors hold 8 + 8 columns of an even and an odd input: part them. */
ALWAYS_INLINE __m512 even_input(const __m512 *values, int i) {
    const __m512i lanes =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(values[2 * i], lanes, values[2 * i + 1]);
}

ALWAYS_INLINE __m512 odd_input(const __m512 *values, int i) {
    const __m512i lanes =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(values[2 * i], lanes, values[2 * i + 1]);
}

ALWAYS_INLINE void store_pair(void *sink, const __m512 *values) {
    float **panel = sink;
    UNROLL(4)
    for (int i = 0; i < 4; i++) {
        _mm512_storeu_ps(*panel + 16 * i, even_input(values, i));
        _mm512_storeu_ps(*panel + PANEL_COLUMNS + 16 * i, odd_input(values, i));
    }
    *panel += 2 * PANEL_COLUMNS;
}

static void unpack_panel(const struct tile *tile, int block, int k_first, int k_count,
                         void *panel) {
    float *next = panel;
    unpack_tile(tile, block, k_first, k_count, &next, store_pair);
}

ALWAYS_INLINE void take_pair(struct multiply_few *few, const __m512 *values, int row_count) {
    __m512i even[MULTIPLY_VECTORS], odd[MULTIPLY_VECTORS];
    UNROLL(4)
    for (int i = 0; i < MULTIPLY_VECTORS; i++) {
        even[i] = _mm512_castps_si512(even_input(values, i));
        odd[i] = _mm512_castps_si512(odd_input(values, i));
    }
    UNROLL(4)
    for (int r = 0; r < row_count; r++) {
        const char *row = few->rows + (size_t)r * few->row_stride;
        __m512i first = multiply_broadcast(row), second = multiply_broadcast(row + sizeof(float));
        UNROLL(4)
        for (int i = 0; i < MULTIPLY_VECTORS; i++)
            few->sums[r][i] = product(product(few->sums[r][i], first, even[i]), second, odd[i]);
    }
    few->rows += 2 * sizeof(float);
}

MULTIPLY_FEW_OP(take_pair)

static uint64_t spin(int rounds, float *sink) {
    return 2 * multiply_spin(rounds, sink, product);
}

const struct linear_kernels linear_avx512 = {
    .name = "avx512",
    .unit = UNIT_F32,
    .available = available,
    .convert_row = convert_row,
    .multiply = multiply,
    .unpack_panel = unpack_panel,
    .few_rows = LINEAR_FEW_ROWS,
    .multiply_few = multiply_few,
    .k_step = 2,
    .chunk = 1024,
    .pass_rows = 6,
    .unpack_rows = 8,
    .rows_bytes = SIZE_MAX,
    .spin = spin,
    .read = multiply_read,
};
