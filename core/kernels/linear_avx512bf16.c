/* Linear kernels on AVX-512 with VDPBF16PS: inputs rounded to bf16, fp32 sums, twice the rate of
 * fp32 on Zen 4 and later. A bf16 panel is half the size and its order is that of the tiles, so a
 * pair of inputs × 64 columns is decoded, rounded and stored without a shuffle. */
#include "core/kernels/multiply_avx512.h"

#include "core/kernels/kernels_variants.h"

static bool available(const struct cpu_features *features) {
    return features->avx512 && features->avx512_bf16 && features->avx512_bf16_fast;
}

static void convert_row(const float *in, int count, void *out) {
    uint16_t *halves = out;
    for (int i = 0; i < count; i += TILE_LANES) {
        int rest = count - i;
        __mmask16 mask = (__mmask16)(rest < TILE_LANES ? (1u << rest) - 1 : 0xffffu);
        __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, in + i));
        _mm256_mask_storeu_epi16(halves + i, mask, (__m256i)rounded);
    }
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
    struct multiply_block block = {
        .rows = rows,
        .row_stride = row_stride,
        .panel = panel,
        .panel_stride = 2 * (size_t)panel_columns * sizeof(uint16_t),
        .steps = k / 2,
        .out = out,
        .out_stride = out_stride,
        .accumulate = accumulate,
    };
    multiply_columns(block, row_count, column_count, run);
}

ALWAYS_INLINE void store_pair(const __m512 *values, uint8_t *panel) {
    UNROLL(4)
    for (int i = 0; i < 4; i++)
        _mm512_storeu_si512(panel + 64 * i,
                            (__m512i)_mm512_cvtne2ps_pbh(values[2 * i + 1], values[2 * i]));
}

static void unpack_panel(const struct tile *tile, int block, int k_first, int k_count,
                         void *panel) {
    const size_t pair_bytes = 2 * PANEL_COLUMNS * sizeof(uint16_t);
    if (tile->format->kind == TILE_BF16)
        memcpy(panel, tile_chunk(tile, block, k_first), ((size_t)k_count + 1) / 2 * pair_bytes);
    else
        unpack_tile(tile, block, k_first, k_count, panel, pair_bytes, store_pair);
}

static uint64_t spin(int rounds, float *sink) {
    return 4 * multiply_spin(rounds, sink, product);
}

static uint64_t read_all(const void *bytes, size_t byte_count) {
    return multiply_read(bytes, byte_count);
}

const struct linear_kernels linear_avx512bf16 = {
    .name = "avx512-bf16",
    .unit = UNIT_BF16,
    .available = available,
    .convert_row = convert_row,
    .multiply = multiply,
    .unpack_panel = unpack_panel,
    .spin = spin,
    .read = read_all,
};
