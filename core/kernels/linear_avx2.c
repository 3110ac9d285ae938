/* Linear kernels on AVX2 with FMA, fp32: six rows × 16 columns in twelve sums. Sums are fused in
 * the order of linear_avx512.c, so both give the same bits. The tiles' 16-lane vectors are handled
 * as two halves. */
#include <string.h>

#include "core/kernels/kernels_variants.h"
#include "core/kernels/multiply_avx2.h"
#include "core/kernels/unpack_avx2.h"

enum { WIDTH = MULTIPLY_WIDTH, HALVES = 2 * TILE_VECTORS };

static bool available(const struct cpu_features *features) {
    return features->avx2;
}

static void convert_row(const float *in, int count, void *out) {
    memcpy(out, in, (size_t)count * sizeof *in);
}

/* ---- products ---- */

ALWAYS_INLINE void step_one(const char *row, size_t row_stride, int row_count, const char *panel,
                            __m256 (*sums)[MULTIPLY_VECTORS]) {
    __m256 columns[MULTIPLY_VECTORS];
    UNROLL(2)
    for (int v = 0; v < MULTIPLY_VECTORS; v++)
        columns[v] = _mm256_loadu_ps((const float *)(const void *)panel + WIDTH * v);
    UNROLL(6)
    for (int r = 0; r < row_count; r++) {
        __m256 value = _mm256_broadcast_ss((const void *)(row + (size_t)r * row_stride));
        UNROLL(2)
        for (int v = 0; v < MULTIPLY_VECTORS; v++)
            sums[r][v] = _mm256_fmadd_ps(value, columns[v], sums[r][v]);
    }
}

static void run_block(const struct multiply_block *block, int row_count) {
    multiply_any_rows(block, row_count, MULTIPLY_ROWS, 1, step_one);
}

static void multiply(const void *rows, size_t row_stride, int row_count, const void *panel,
                     int panel_columns, int k, float *out, size_t out_stride, int column_count,
                     bool accumulate) {
    multiply_panel(rows, row_stride, row_count, panel, panel_columns, k, out, out_stride,
                   column_count, accumulate, MULTIPLY_ROWS, run_block);
}

/* ---- decoding ---- */

/* Scale and minimum (with the offset folded in) in lane order: each column twice, four columns a
 * register. */
struct group {
    __m256 scale[HALVES], min[HALVES];
};

ALWAYS_INLINE void spread(__m256 columns, __m256 *lanes) {
    lanes[0] = _mm256_permutevar8x32_ps(columns, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
    lanes[1] = _mm256_permutevar8x32_ps(columns, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7));
}

static void load_group(const struct tile_format *format, const uint8_t *chunk,
                       const struct tile_offsets *at, int index, struct group *group) {
    for (int i = 0; i < TILE_VECTORS; i++) {
        __m256 scale = unpack_load_scale(format, chunk, at, index, i);
        spread(scale, &group->scale[2 * i]);
        spread(unpack_load_min(format, chunk, at, index, i, scale, format->offset),
               &group->min[2 * i]);
    }
}

/* Byte n of every 32-bit lane, widened. */
ALWAYS_INLINE __m256 widen(__m256i fields, int n) {
    const __m128i bytes =
        _mm_add_epi32(_mm_setr_epi32(0, 4, 8, 12), _mm_set1_epi32((int)0x80808000u));
    __m256i control = _mm256_broadcastsi128_si256(_mm_add_epi32(bytes, _mm_set1_epi32(n)));
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(fields, control));
}

/* Two halves hold 4 + 4 columns of an even and an odd input: part them. */
ALWAYS_INLINE void store_pair(__m256 first, __m256 second, float *even_row, float *odd_row) {
    __m256 even = _mm256_shuffle_ps(first, second, 0x88),
           odd = _mm256_shuffle_ps(first, second, 0xdd);
    _mm256_storeu_ps(even_row,
                     _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(even), 0xd8)));
    _mm256_storeu_ps(odd_row, _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(odd), 0xd8)));
}

ALWAYS_INLINE void unpack_pair(enum tile_kind kind, const struct tile_format *format,
                               const uint8_t *low, const uint8_t *high, int pair,
                               const struct group *group, float *panel) {
    __m256i fields[2][2];
    UNROLL(2)
    for (int h = 0; h < 2; h++)
        if (kind != TILE_8)
            unpack_fields(kind, format, low, high, pair, h, fields[h]);
    UNROLL(8)
    for (int i = 0; i < TILE_VECTORS; i++) {
        const uint8_t *codes = low + (pair * TILE_VECTORS + i) * TILE_LANES;
        __m256 halves[2];
        UNROLL(2)
        for (int h = 0; h < 2; h++) {
            __m256 code = kind == TILE_8 ? _mm256_cvtepi32_ps(unpack_bytes(codes + WIDTH * h, true))
                                         : widen(fields[h][i % 2], i / 2);
            halves[h] = _mm256_fmadd_ps(code, group->scale[2 * i + h], group->min[2 * i + h]);
        }
        store_pair(halves[0], halves[1], panel + WIDTH * i, panel + PANEL_COLUMNS + WIDTH * i);
    }
}

ALWAYS_INLINE void unpack_chunk(enum tile_kind kind, const struct tile_format *format,
                                const uint8_t *chunk, float *panel) {
    struct tile_offsets at = tile_format_offsets(format);
    int pairs = format->group / 2;
    for (int g = 0; g < format->chunk / format->group; g++) {
        struct group group;
        load_group(format, chunk, &at, g, &group);
        for (int p = g * pairs; p < (g + 1) * pairs; p++) {
            unpack_pair(kind, format, chunk + at.low, chunk + at.high, p, &group, panel);
            panel += 2 * PANEL_COLUMNS;
        }
    }
}

/* Eight values of a plane of floats, from element `index`. */
ALWAYS_INLINE __m256 load_floats(enum tile_kind kind, const uint8_t *bytes, size_t index) {
    if (kind == TILE_F32)
        return _mm256_loadu_ps((const void *)(bytes + 4 * index));
    if (kind == TILE_F16)
        return unpack_half_floats(bytes + 2 * index);
    __m128i packed = _mm_loadu_si128((const __m128i *)(const void *)(bytes + 2 * index));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(packed), 16));
}

ALWAYS_INLINE void unpack_floats(enum tile_kind kind, const uint8_t *bytes, size_t pairs,
                                 float *panel) {
    for (size_t p = 0; p < pairs; p++)
        for (size_t i = 0; i < TILE_VECTORS; i++) {
            size_t at = (p * TILE_VECTORS + i) * TILE_LANES;
            store_pair(load_floats(kind, bytes, at), load_floats(kind, bytes, at + WIDTH),
                       panel + 2 * p * PANEL_COLUMNS + WIDTH * i,
                       panel + (2 * p + 1) * PANEL_COLUMNS + WIDTH * i);
        }
}

#define UNPACK_CODES(KIND)                                 \
    case KIND:                                             \
        for (int k = 0; k < k_count; k += format->chunk) { \
            unpack_chunk(KIND, format, chunk, out);        \
            chunk += tile->chunk_bytes;                    \
            out += (size_t)format->chunk * PANEL_COLUMNS;  \
        }                                                  \
        break;
#define UNPACK_FLOATS(KIND)                                         \
    case KIND:                                                      \
        unpack_floats(KIND, chunk, ((size_t)k_count + 1) / 2, out); \
        break;

static void unpack_panel(const struct tile *tile, int block, int k_first, int k_count,
                         void *panel) {
    const struct tile_format *format = tile->format;
    const uint8_t *chunk = tile_chunk(tile, block, k_first);
    float *out = panel;
    switch (format->kind) {
        UNPACK_FLOATS(TILE_F16)
        UNPACK_FLOATS(TILE_BF16)
        UNPACK_FLOATS(TILE_F32)
        UNPACK_CODES(TILE_2)
        UNPACK_CODES(TILE_2_1)
        UNPACK_CODES(TILE_4)
        UNPACK_CODES(TILE_4_1)
        UNPACK_CODES(TILE_4_2)
        UNPACK_CODES(TILE_4_CODEBOOK)
        UNPACK_CODES(TILE_8)
    }
}

/* ---- ceilings ---- */

static uint64_t spin(int rounds, float *sink) {
    __m256 sums[12], factor = _mm256_set1_ps(*sink);
    UNROLL(12)
    for (int i = 0; i < 12; i++)
        sums[i] = _mm256_set1_ps((float)i);
    for (int round = 0; round < rounds; round++) {
        UNROLL(12)
        for (int i = 0; i < 12; i++)
            sums[i] = _mm256_fmadd_ps(factor, factor, sums[i]);
        __asm__ volatile("" : "+x"(factor));
    }
    UNROLL(11)
    for (int i = 1; i < 12; i++)
        sums[0] = _mm256_add_ps(sums[0], sums[i]);
    *sink += _mm256_cvtss_f32(sums[0]);
    return (uint64_t)rounds * 12 * WIDTH * 2;
}

static uint64_t read_all(const void *bytes, size_t byte_count) {
    const char *in = bytes;
    __m256i sums[8];
    UNROLL(8)
    for (int i = 0; i < 8; i++)
        sums[i] = _mm256_setzero_si256();
    for (size_t at = 0; at < byte_count; at += 256) {
        UNROLL(8)
        for (int i = 0; i < 8; i++)
            sums[i] = _mm256_xor_si256(
                sums[i], _mm256_loadu_si256((const void *)(in + at + 32 * (size_t)i)));
    }
    UNROLL(7)
    for (int i = 1; i < 8; i++)
        sums[0] = _mm256_xor_si256(sums[0], sums[i]);
    return (uint64_t)_mm256_extract_epi64(sums[0], 0);
}

const struct linear_kernels linear_avx2 = {
    .name = "avx2",
    .unit = UNIT_F32,
    .available = available,
    .convert_row = convert_row,
    .multiply = multiply,
    .unpack_panel = unpack_panel,
    .k_step = 2,
    .chunk = 512,
    .pass_rows = 6,
    .unpack_rows = 8,
    .rows_bytes = SIZE_MAX,
    .spin = spin,
    .read = read_all,
};
