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
    struct multiply_block block = {
        .rows = rows,
        .row_stride = row_stride,
        .panel = panel,
        .panel_stride = (size_t)panel_columns * sizeof(float),
        .steps = k,
        .out = out,
        .out_stride = out_stride,
        .accumulate = accumulate,
    };
    multiply_columns(block, row_count, column_count, run);
}

/* Two vectors hold 8 + 8 columns of an even and an odd input: part them. */
ALWAYS_INLINE void store_pair(const __m512 *values, uint8_t *panel) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    UNROLL(4)
    for (int i = 0; i < 4; i++) {
        __m512 low = values[2 * i], high = values[2 * i + 1];
        _mm512_storeu_ps(panel + 64 * i, _mm512_permutex2var_ps(low, even, high));
        _mm512_storeu_ps(panel + 256 + 64 * i, _mm512_permutex2var_ps(low, odd, high));
    }
}

static void unpack_panel(const struct tile *tile, int block, int k_first, int k_count,
                         void *panel) {
    unpack_tile(tile, block, k_first, k_count, panel, 2 * PANEL_COLUMNS * sizeof(float),
                store_pair);
}

static uint64_t spin(int rounds, float *sink) {
    return 2 * multiply_spin(rounds, sink, product);
}

static uint64_t read_all(const void *bytes, size_t byte_count) {
    return multiply_read(bytes, byte_count);
}

const struct linear_kernels linear_avx512 = {
    .name = "avx512",
    .unit = UNIT_F32,
    .available = available,
    .convert_row = convert_row,
    .multiply = multiply,
    .unpack_panel = unpack_panel,
    .spin = spin,
    .read = read_all,
};
