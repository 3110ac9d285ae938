/* The int8 matmul on AVX2 alone: VPMADDUBSW adds two products in 16 bits, where they may saturate.
 * Codes of up to six bits leave room for more: as many quads are summed there as fit, 8 of 4 bits
 * (8 × 2 × 15 × 127), 4 of 5 bits, 2 of 6 bits, and widened then. Codes of eight bits are taken
 * signed, as their size times the activation under their sign (2 × 128 × 127 fits); what the shift
 * to unsigned would have added, 128 × the sum of the activations, is where the sums begin. All of
 * it is exact, so the bits are those of linear_int8_avx512vnni.c. */
#include "core/kernels/kernels_variants.h"
#include "core/kernels/multiply_int8_avx2.h"

enum { BLOCK_ROWS = 4, SPIN_SUMS = 12 };

static bool available(const struct cpu_features *features) {
    return features->avx2;
}

static void convert_row(const float *in, int count, void *out) {
    panel_int8_convert_row(in, count, out);
}

ALWAYS_INLINE __m256i widen(__m256i sums) {
    return _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
}

/* 128 × the sum of a row's 32 activations. */
ALWAYS_INLINE __m256i shifted_sum(const int8_t *values) {
    __m256i halves = panel_int8_half_sums(_mm256_loadu_si256((const void *)values));
    __m256i sum = _mm256_add_epi32(halves, _mm256_permute2x128_si256(halves, halves, 1));
    return _mm256_slli_epi32(sum, 7);
}

ALWAYS_INLINE void dot_signed(const struct int8_step *steps, const int row_count,
                              const int vector_count, const uint8_t *codes,
                              __m256i (*dots)[MULTIPLY_INT8_VECTORS]) {
    UNROLL(4)
    for (int r = 0; r < row_count; r++) {
        __m256i sum = shifted_sum(steps[r].values);
        UNROLL(4)
        for (int v = 0; v < vector_count; v++)
            dots[r][v] = sum;
    }
    for (int q = 0; q < INT8_GROUP / INT8_QUAD; q++, codes += INT8_QUAD * PANEL_COLUMNS) {
        UNROLL(4)
        for (int v = 0; v < vector_count; v++) {
            __m256i columns = _mm256_load_si256((const void *)(codes + 32 * v));
            __m256i sizes = _mm256_abs_epi8(columns);
            UNROLL(4)
            for (int r = 0; r < row_count; r++) {
                __m256i values = multiply_int8_broadcast(steps[r].values + INT8_QUAD * q);
                __m256i pairs = _mm256_maddubs_epi16(sizes, _mm256_sign_epi8(values, columns));
                dots[r][v] = _mm256_add_epi32(dots[r][v], widen(pairs));
            }
        }
    }
}

/* `span` quads summed in 16 bits. */
ALWAYS_INLINE void dot_span(const struct int8_step *steps, const int row_count,
                            const int vector_count, const int span, int first, const uint8_t *codes,
                            __m256i (*sums)[MULTIPLY_INT8_VECTORS]) {
    UNROLL(8)
    for (int q = 0; q < span; q++, codes += INT8_QUAD * PANEL_COLUMNS) {
        __m256i columns[MULTIPLY_INT8_VECTORS];
        UNROLL(4)
        for (int v = 0; v < vector_count; v++)
            columns[v] = _mm256_load_si256((const void *)(codes + 32 * v));
        UNROLL(4)
        for (int r = 0; r < row_count; r++) {
            __m256i values = multiply_int8_broadcast(steps[r].values + INT8_QUAD * (first + q));
            UNROLL(4)
            for (int v = 0; v < vector_count; v++) {
                __m256i pairs = _mm256_maddubs_epi16(columns[v], values);
                sums[r][v] = q == 0 ? pairs : _mm256_add_epi16(sums[r][v], pairs);
            }
        }
    }
}

ALWAYS_INLINE void dot(const struct int8_step *steps, const int row_count, const int vector_count,
                       const struct multiply_int8_shape shape, const uint8_t *codes,
                       __m256i (*dots)[MULTIPLY_INT8_VECTORS]) {
    const int quads = shape.group / INT8_QUAD, room = shape.bits <= 4 ? 8 : shape.bits == 5 ? 4 : 2;
    const int span = quads < room ? quads : room;
    if (shape.bits > 6) {
        dot_signed(steps, row_count, vector_count, codes, dots);
        return;
    }
    UNROLL(4)
    for (int first = 0; first < quads; first += span) {
        __m256i sums[LINEAR_FEW_ROWS][MULTIPLY_INT8_VECTORS];
        dot_span(steps, row_count, vector_count, span, first,
                 codes + (size_t)(INT8_QUAD * PANEL_COLUMNS * first), sums);
        UNROLL(4)
        for (int r = 0; r < row_count; r++) {
            UNROLL(4)
            for (int v = 0; v < vector_count; v++)
                dots[r][v] = first == 0 ? widen(sums[r][v])
                                        : _mm256_add_epi32(dots[r][v], widen(sums[r][v]));
        }
    }
}

MULTIPLY_INT8_OPS(dot, BLOCK_ROWS, true, true)

/* The products of 4-bit codes but for their widening. */
static uint64_t spin(int rounds, float *sink) {
    __m256i sums[SPIN_SUMS], factor = _mm256_castps_si256(_mm256_set1_ps(*sink));
    UNROLL(12)
    for (int i = 0; i < SPIN_SUMS; i++)
        sums[i] = _mm256_set1_epi16((short)i);
    for (int round = 0; round < rounds; round++) {
        UNROLL(12)
        for (int i = 0; i < SPIN_SUMS; i++) {
            __asm__ volatile("" : "+x"(factor));
            sums[i] = _mm256_add_epi16(sums[i], _mm256_maddubs_epi16(factor, factor));
        }
    }
    UNROLL(11)
    for (int i = 1; i < SPIN_SUMS; i++)
        sums[0] = _mm256_add_epi16(sums[0], sums[i]);
    *sink += (float)_mm256_extract_epi16(sums[0], 0);
    return (uint64_t)rounds * SPIN_SUMS * PANEL_INT8_LANES * 2 * INT8_QUAD;
}

static uint64_t read_all(const void *bytes, size_t byte_count) {
    return linear_avx2.read(bytes, byte_count);
}

const struct linear_kernels linear_int8_avx2 = {
    .name = "avx2",
    .unit = UNIT_INT8,
    .available = available,
    .convert_row = convert_row,
    .multiply = multiply,
    .unpack_panel = unpack_panel,
    .few_rows = LINEAR_FEW_ROWS,
    .multiply_few = multiply_few,
    .k_step = INT8_GROUP,
    .chunk = 256,
    .pass_rows = BLOCK_ROWS,
    .unpack_rows = 8,
    .rows_bytes = SIZE_MAX,
    .spin = spin,
    .read = read_all,
};
