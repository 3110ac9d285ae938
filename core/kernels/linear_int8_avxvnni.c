/* The int8 matmul on AVX2 with AVX-VNNI's VPDPBUSD: unsigned codes of eight columns against four
 * signed activations a lane, three rows × 32 columns in twelve sums. The bits are those of
 * linear_int8_avx512vnni.c. */
#include "core/kernels/kernels_variants.h"
#include "core/kernels/multiply_int8_avx2.h"

enum { BLOCK_ROWS = 3, SPIN_SUMS = 12 };

static bool available(const struct cpu_features *features) {
    return features->avx2 && features->avx_vnni;
}

static void convert_row(const float *in, int count, void *out) {
    panel_int8_convert_row(in, count, out);
}

/* As _mm256_dpbusd_avx_epi32, which gcc 12 surrounds with moves of its sums. */
ALWAYS_INLINE void add_products(__m256i *sums, __m256i codes, __m256i values) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(*sums) : "x"(codes), "x"(values));
}

ALWAYS_INLINE void dot(const struct int8_step *steps, const int row_count, const int vector_count,
                       const struct multiply_int8_shape shape, const uint8_t *codes,
                       __m256i (*dots)[MULTIPLY_INT8_VECTORS]) {
    UNROLL(4)
    for (int r = 0; r < row_count; r++) {
        UNROLL(4)
        for (int v = 0; v < vector_count; v++)
            dots[r][v] = _mm256_setzero_si256();
    }
    UNROLL(8)
    for (int q = 0; q < shape.group / INT8_QUAD; q++, codes += INT8_QUAD * PANEL_COLUMNS) {
        __m256i values[LINEAR_FEW_ROWS];
        UNROLL(4)
        for (int r = 0; r < row_count; r++)
            values[r] = multiply_int8_broadcast(steps[r].values + INT8_QUAD * q);
        UNROLL(4)
        for (int v = 0; v < vector_count; v++) {
            __m256i columns = _mm256_load_si256((const void *)(codes + 32 * v));
            UNROLL(4)
            for (int r = 0; r < row_count; r++)
                add_products(&dots[r][v], columns, values[r]);
        }
    }
}

MULTIPLY_INT8_OPS(dot, BLOCK_ROWS, false, false)

static uint64_t spin(int rounds, float *sink) {
    __m256i sums[SPIN_SUMS], factor = _mm256_castps_si256(_mm256_set1_ps(*sink));
    UNROLL(12)
    for (int i = 0; i < SPIN_SUMS; i++)
        sums[i] = _mm256_set1_epi32(i);
    for (int round = 0; round < rounds; round++) {
        UNROLL(12)
        for (int i = 0; i < SPIN_SUMS; i++)
            add_products(&sums[i], factor, factor);
        __asm__ volatile("" : "+x"(factor));
    }
    UNROLL(11)
    for (int i = 1; i < SPIN_SUMS; i++)
        sums[0] = _mm256_add_epi32(sums[0], sums[i]);
    *sink += (float)_mm256_extract_epi32(sums[0], 0);
    return (uint64_t)rounds * SPIN_SUMS * PANEL_INT8_LANES * 2 * INT8_QUAD;
}

static uint64_t read_all(const void *bytes, size_t byte_count) {
    return linear_avx2.read(bytes, byte_count);
}

const struct linear_kernels linear_int8_avxvnni = {
    .name = "avx-vnni",
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
