/* Rows and panels of the int8 matmuls on AVX2: rows are quantised to the bytes of the scalar
 * variant, tiles become records of eight vectors of eight columns × four inputs.
 *
 * The tiles' words hold a lane's codes of four columns; a byte transposition within 128 bits and
 * one interleaving of two pairs make them quads. Lane 4l + e of vector 4h + 2f + p then is column
 * 32h + 16(e/2) + 8f + 2(2p + l) + e%2: scales are brought into that order once a group, sums back
 * once a call.
 *
 * Codes of eight bits are left signed when `is_signed`, for products that want them so. */
#ifndef CORE_KERNELS_PANEL_INT8_AVX2_H
#define CORE_KERNELS_PANEL_INT8_AVX2_H

#include "core/kernels/int8_layout.h"
#include "core/kernels/unpack_avx2.h"

enum { PANEL_INT8_LANES = 8, PANEL_INT8_VECTORS = PANEL_COLUMNS / PANEL_INT8_LANES };

/* ---- rows ---- */

ALWAYS_INLINE float panel_int8_largest(__m256 sizes) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(sizes), _mm256_extractf128_ps(sizes, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* The sums of 16 bytes each, in every lane of its half. */
ALWAYS_INLINE __m256i panel_int8_half_sums(__m256i bytes) {
    __m256i sums = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
    sums = _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, _MM_SHUFFLE(1, 0, 3, 2)));
    return _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, _MM_SHUFFLE(2, 3, 0, 1)));
}

/* To nearest even, as lrintf. */
ALWAYS_INLINE __m256i panel_int8_narrow(const __m256 *values, __m256 factors) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i wide[4];
    UNROLL(4)
    for (int v = 0; v < 4; v++)
        wide[v] = _mm256_cvtps_epi32(_mm256_mul_ps(values[v], factors));
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(wide[0], wide[1]),
                                       _mm256_packs_epi32(wide[2], wide[3]));
    return _mm256_permutevar8x32_epi32(bytes, order);
}

static inline void panel_int8_convert_group(const float *in, struct int8_row_group *out) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 values[4], sizes = _mm256_setzero_ps(), check = _mm256_setzero_ps();
    UNROLL(4)
    for (int v = 0; v < 4; v++) {
        values[v] = _mm256_loadu_ps(in + PANEL_INT8_LANES * v);
        sizes = _mm256_max_ps(sizes, _mm256_andnot_ps(sign, values[v]));
        check = _mm256_or_ps(check, _mm256_cmp_ps(values[v], values[v], _CMP_UNORD_Q));
    }
    float scale = panel_int8_largest(sizes) / 127.0f, factor = 1.0f / scale;
    if (_mm256_movemask_ps(check) != 0 || !(scale <= __FLT_MAX__))
        scale = __builtin_nanf("");
    __m256i bytes = _mm256_setzero_si256();
    if (scale > 0 && factor <= __FLT_MAX__)
        bytes = panel_int8_narrow(values, _mm256_set1_ps(factor));
    __m256i sums = panel_int8_half_sums(bytes);
    int low = _mm256_extract_epi32(sums, 0), high = _mm256_extract_epi32(sums, 4);
    _mm256_storeu_si256((void *)out->values, bytes);
    out->scale = scale;
    out->half_sum[0] = scale * (float)low;
    out->half_sum[1] = scale * (float)high;
    out->sum = scale * (float)(low + high);
}

static inline void panel_int8_convert_row(const float *in, int count, void *out) {
    struct int8_row_group *groups = out;
    assert(count % INT8_GROUP == 0);
    for (int i = 0; i < count; i += INT8_GROUP)
        panel_int8_convert_group(in + i, groups++);
}

/* ---- the order of columns ---- */

ALWAYS_INLINE __m256d panel_int8_middle(__m256d columns) {
    return _mm256_permute4x64_pd(columns, _MM_SHUFFLE(3, 1, 2, 0));
}

/* Natural vectors 4h + f and 4h + 2 + f are panel vectors 4h + 2f and 4h + 2f + 1. */
ALWAYS_INLINE void panel_int8_order(const __m256 *natural, __m256 *panel) {
    UNROLL(4)
    for (int i = 0; i < 4; i++) {
        int from = 4 * (i / 2) + i % 2;
        __m256d a = panel_int8_middle(_mm256_castps_pd(natural[from]));
        __m256d b = panel_int8_middle(_mm256_castps_pd(natural[from + 2]));
        panel[2 * i] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
        panel[2 * i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
    }
}

ALWAYS_INLINE void panel_int8_restore(const __m256 *panel, __m256 *natural) {
    UNROLL(4)
    for (int i = 0; i < 4; i++) {
        int to = 4 * (i / 2) + i % 2;
        __m256d a = _mm256_castps_pd(panel[2 * i]), b = _mm256_castps_pd(panel[2 * i + 1]);
        natural[to] = _mm256_castpd_ps(panel_int8_middle(_mm256_unpacklo_pd(a, b)));
        natural[to + 2] = _mm256_castpd_ps(panel_int8_middle(_mm256_unpackhi_pd(a, b)));
    }
}

/* ---- decoding ---- */

/* Four inputs of 64 columns from two pairs. */
ALWAYS_INLINE void panel_int8_quads(enum tile_kind kind, const struct tile_format *format,
                                    const uint8_t *low, const uint8_t *high, int pair,
                                    __m256i *quads) {
    const __m256i transpose = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    UNROLL(2)
    for (int p = 0; p < 2; p++) {
        __m256i first[2], second[2];
        unpack_fields(kind, format, low, high, pair, p, first);
        unpack_fields(kind, format, low, high, pair + 1, p, second);
        UNROLL(2)
        for (int f = 0; f < 2; f++) {
            __m256i a = _mm256_shuffle_epi8(first[f], transpose);
            __m256i b = _mm256_shuffle_epi8(second[f], transpose);
            quads[2 * f + p] = _mm256_unpacklo_epi16(a, b);
            quads[4 + 2 * f + p] = _mm256_unpackhi_epi16(a, b);
        }
    }
}

/* The same from signed bytes, which lie column by column: the lower 128 bits have f = 0, the upper
 * ones f = 1. */
ALWAYS_INLINE void panel_int8_byte_quads(const uint8_t *low, int pair, __m256i *quads) {
    const __m256i *at = (const void *)(low + (size_t)pair * 2 * PANEL_COLUMNS);
    UNROLL(2)
    for (int h = 0; h < 2; h++) {
        __m256i a = _mm256_loadu_si256(at + 2 * h), b = _mm256_loadu_si256(at + 2 * h + 1);
        __m256i c = _mm256_loadu_si256(at + 4 + 2 * h), d = _mm256_loadu_si256(at + 5 + 2 * h);
        UNROLL(2)
        for (int p = 0; p < 2; p++) {
            __m256i first = p == 0 ? _mm256_unpacklo_epi32(a, b) : _mm256_unpackhi_epi32(a, b);
            __m256i second = p == 0 ? _mm256_unpacklo_epi32(c, d) : _mm256_unpackhi_epi32(c, d);
            __m256i lower = _mm256_unpacklo_epi16(first, second);
            __m256i upper = _mm256_unpackhi_epi16(first, second);
            quads[4 * h + p] = _mm256_permute2x128_si256(lower, upper, 0x20);
            quads[4 * h + 2 + p] = _mm256_permute2x128_si256(lower, upper, 0x31);
        }
    }
}

ALWAYS_INLINE void panel_int8_store_quads(enum tile_kind kind, const struct tile_format *format,
                                          const uint8_t *low, const uint8_t *high, int pair,
                                          const bool is_signed, uint8_t *out) {
    const __m256i sign = _mm256_set1_epi8((char)0x80);
    __m256i quads[PANEL_INT8_VECTORS];
    if (kind == TILE_8)
        panel_int8_byte_quads(low, pair, quads);
    else
        panel_int8_quads(kind, format, low, high, pair, quads);
    UNROLL(8)
    for (int v = 0; v < PANEL_INT8_VECTORS; v++) {
        if (is_signed ? kind == TILE_4_CODEBOOK : kind == TILE_8)
            quads[v] = _mm256_xor_si256(quads[v], sign);
        _mm256_store_si256((void *)(out + 32 * v), quads[v]);
    }
}

/* Scales and minima of one group in the panel's order. */
static inline void panel_int8_store_scales(const struct tile_format *format, const uint8_t *chunk,
                                           const struct tile_offsets *at, int group, float *out) {
    __m256 scales[PANEL_INT8_VECTORS], minima[PANEL_INT8_VECTORS], ordered[PANEL_INT8_VECTORS];
    for (int i = 0; i < PANEL_INT8_VECTORS; i++) {
        scales[i] = unpack_load_scale(format, chunk, at, group, i);
        minima[i] =
            unpack_load_min(format, chunk, at, group, i, scales[i], int8_layout_offset(format));
    }
    panel_int8_order(scales, ordered);
    for (int v = 0; v < PANEL_INT8_VECTORS; v++)
        _mm256_store_ps(out + PANEL_INT8_LANES * v, ordered[v]);
    panel_int8_order(minima, ordered);
    for (int v = 0; v < PANEL_INT8_VECTORS; v++)
        _mm256_store_ps(out + PANEL_COLUMNS + PANEL_INT8_LANES * v, ordered[v]);
}

/* Where a tile is read from, record by record. */
struct panel_int8_reader {
    const struct tile_format *format;
    struct tile_offsets at;
    const uint8_t *chunk;
    size_t chunk_bytes;
    int group; /* of the chunk */
};

static inline struct panel_int8_reader panel_int8_begin(const struct tile *tile, int block,
                                                        int k_first) {
    return (struct panel_int8_reader){.format = tile->format,
                                      .at = tile_format_offsets(tile->format),
                                      .chunk = tile_chunk(tile, block, k_first),
                                      .chunk_bytes = tile->chunk_bytes};
}

ALWAYS_INLINE void panel_int8_read_kind(enum tile_kind kind, struct panel_int8_reader *reader,
                                        const bool is_signed, uint8_t *record) {
    const struct tile_format *format = reader->format;
    int pairs = format->group / 2, pair = reader->group * pairs;
    for (int q = 0; q < pairs / 2; q++)
        panel_int8_store_quads(kind, format, reader->chunk + reader->at.low,
                               reader->chunk + reader->at.high, pair + 2 * q, is_signed,
                               record + (size_t)(INT8_QUAD * PANEL_COLUMNS * q));
}

/* The next record, 32-byte aligned. */
ALWAYS_INLINE void panel_int8_read(struct panel_int8_reader *reader, const bool is_signed,
                                   uint8_t *record) {
    const struct tile_format *format = reader->format;
    size_t packed = reader->at.end / (size_t)(format->chunk / format->group);
    unpack_prefetch(reader->chunk + (size_t)reader->group * packed, packed);
#define PANEL_INT8_CASE(KIND)                                  \
    case KIND:                                                 \
        panel_int8_read_kind(KIND, reader, is_signed, record); \
        break;
    switch (format->kind) {
        PANEL_INT8_CASE(TILE_2)
        PANEL_INT8_CASE(TILE_2_1)
        PANEL_INT8_CASE(TILE_4)
        PANEL_INT8_CASE(TILE_4_1)
        PANEL_INT8_CASE(TILE_4_2)
        PANEL_INT8_CASE(TILE_4_CODEBOOK)
        PANEL_INT8_CASE(TILE_8)
    case TILE_F16:
    case TILE_BF16:
    case TILE_F32:
        assert(!"formats without codes have no int8 matmul");
        break;
    }
#undef PANEL_INT8_CASE
    panel_int8_store_scales(format, reader->chunk, &reader->at, reader->group,
                            (float *)(void *)(record + (size_t)format->group * PANEL_COLUMNS));
    if (++reader->group == format->chunk / format->group) {
        reader->group = 0;
        reader->chunk += reader->chunk_bytes;
    }
}

/* Bits of what the products see. */
static inline int panel_int8_bits(const struct tile_format *format) {
    if (format->kind == TILE_4_CODEBOOK)
        return 8;
    return tile_kind_low_bits(format->kind) + tile_kind_high_bits(format->kind);
}

#endif
