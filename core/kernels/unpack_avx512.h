/* Decoding of weight tiles on AVX-512, shared by the fp32 and the bf16 kernels; each includes it
 * under its own compiler flags. A pair of inputs × 64 columns is eight vectors of 16 lanes. Codes
 * of up to five bits become floats by a table in registers (VPERMPS and VPERMI2PS ignore the
 * index's upper bits, so a shift suffices), six bits by a byte shuffle; one fused step scales them.
 */
#ifndef CORE_KERNELS_UNPACK_AVX512_H
#define CORE_KERNELS_UNPACK_AVX512_H

#include <immintrin.h>
#include <string.h>

#include "core/kernels/tile_layout.h"
#include "core/kernels/unroll.h"

/* Scale and minimum (with the offset folded in) in lane order: each column twice. */
struct unpack_group {
    __m512 scale[TILE_VECTORS], min[TILE_VECTORS];
};

ALWAYS_INLINE void unpack_spread(__m512 columns, __m512 *lanes) {
    const __m512i first = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i second =
        _mm512_setr_epi32(8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15);
    lanes[0] = _mm512_permutexvar_ps(first, columns);
    lanes[1] = _mm512_permutexvar_ps(second, columns);
}

ALWAYS_INLINE __m512 unpack_half_floats(const uint8_t *bytes, int index) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(bytes + 32 * index)));
}

ALWAYS_INLINE __m512i unpack_bytes(const uint8_t *bytes, int index, bool is_signed) {
    __m128i packed = _mm_loadu_si128((const __m128i *)(const void *)(bytes + 16 * index));
    return is_signed ? _mm512_cvtepi8_epi32(packed) : _mm512_cvtepu8_epi32(packed);
}

/* Sixteen columns' minimum. */
ALWAYS_INLINE __m512 unpack_load_min(const struct tile_format *format, const uint8_t *chunk,
                                     const struct tile_offsets *at, const uint8_t *group_min, int i,
                                     __m512 scale) {
    if (!format->has_min)
        return _mm512_mul_ps(scale, _mm512_set1_ps((float)format->offset));
    __m512 min = unpack_half_floats(chunk + at->min, i);
    if (!format->two_level)
        return min;
    __m512i factor = _mm512_sub_epi32(_mm512_setzero_si512(), unpack_bytes(group_min, i, false));
    return _mm512_mul_ps(min, _mm512_cvtepi32_ps(factor));
}

ALWAYS_INLINE void unpack_load_group(const struct tile_format *format, const uint8_t *chunk,
                                     const struct tile_offsets *at, int group,
                                     struct unpack_group *out) {
    const uint8_t *group_scale = chunk + at->group_scale + (size_t)group * PANEL_COLUMNS;
    const uint8_t *group_min = chunk + at->group_min + (size_t)group * PANEL_COLUMNS;
    UNROLL(4)
    for (int i = 0; i < 4; i++) {
        __m512 scale = unpack_half_floats(chunk, i);
        if (format->two_level)
            scale = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(unpack_bytes(group_scale, i, true)));
        unpack_spread(scale, &out->scale[2 * i]);
        unpack_spread(unpack_load_min(format, chunk, at, group_min, i, scale), &out->min[2 * i]);
    }
}

/* A pair's words: vector i's code is at bit 8(i/2) + bits × (i%2). */
ALWAYS_INLINE __m512i unpack_word(const uint8_t *plane, int bits, int pair) {
    int pairs_a_word = 4 / bits;
    __m512i word = _mm512_loadu_si512(plane + (size_t)(pair / pairs_a_word) * 64);
    if (pairs_a_word > 1)
        word = _mm512_srl_epi32(word, _mm_cvtsi32_si128(2 * bits * (pair % pairs_a_word)));
    return word;
}

/* What the codes stand for, before the scale; the second table continues the first. */
struct unpack_tables {
    __m512 first, second;
};

ALWAYS_INLINE struct unpack_tables unpack_load_tables(enum tile_kind kind,
                                                      const struct tile_format *format) {
    __m512i codes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    if (kind == TILE_4_CODEBOOK)
        codes = unpack_bytes(format->codebook, 0, false);
    else if (kind == TILE_2) /* two more bits than the code are looked up */
        codes = _mm512_and_si512(codes, _mm512_set1_epi32(3));
    return (struct unpack_tables){
        .first = _mm512_cvtepi32_ps(codes),
        .second = _mm512_cvtepi32_ps(_mm512_add_epi32(codes, _mm512_set1_epi32(16))),
    };
}

/* Codes with a high plane as bytes: even vectors in fields[0], odd ones in fields[1]. `kind` is a
 * constant wherever this is inlined. */
ALWAYS_INLINE void unpack_fields(enum tile_kind kind, const uint8_t *low, const uint8_t *high,
                                 int pair, __m512i *fields) {
    const int low_bits = tile_kind_low_bits(kind), high_bits = tile_kind_high_bits(kind);
    const __m512i low_mask = _mm512_set1_epi8((char)((1 << low_bits) - 1));
    const __m512i high_mask = _mm512_set1_epi8((char)(((1 << high_bits) - 1) << low_bits));
    __m512i word = unpack_word(low, low_bits, pair), bits = unpack_word(high, high_bits, pair);
    __m512i even = _mm512_slli_epi32(bits, (unsigned)low_bits);
    __m512i odd = _mm512_slli_epi32(bits, (unsigned)(low_bits - high_bits));
    fields[0] = _mm512_and_si512(word, low_mask);
    fields[1] = _mm512_and_si512(_mm512_srli_epi32(word, (unsigned)low_bits), low_mask);
    fields[0] = _mm512_ternarylogic_epi32(fields[0], even, high_mask, 0xf8); /* a | (b & c) */
    fields[1] = _mm512_ternarylogic_epi32(fields[1], odd, high_mask, 0xf8);
}

/* Byte n of every 32-bit lane, widened. */
ALWAYS_INLINE __m512 unpack_widen(__m512i fields, int n) {
    const __m128i bytes =
        _mm_add_epi32(_mm_setr_epi32(0, 4, 8, 12), _mm_set1_epi32((int)0x80808000u));
    __m512i control = _mm512_broadcast_i32x4(_mm_add_epi32(bytes, _mm_set1_epi32(n)));
    return _mm512_cvtepi32_ps(_mm512_shuffle_epi8(fields, control));
}

/* The eight vectors of one pair before scales. */
ALWAYS_INLINE void unpack_codes(enum tile_kind kind, const struct unpack_tables *tables,
                                const uint8_t *low, const uint8_t *high, int pair, __m512 *out) {
    if (kind == TILE_8) {
        UNROLL(8)
        for (int i = 0; i < TILE_VECTORS; i++)
            out[i] = _mm512_cvtepi32_ps(unpack_bytes(low, pair * TILE_VECTORS + i, true));
    } else if (tile_kind_high_bits(kind) == 0) {
        const int bits = tile_kind_low_bits(kind);
        __m512i word = unpack_word(low, bits, pair);
        UNROLL(8)
        for (int i = 0; i < TILE_VECTORS; i++) {
            __m512i index = _mm512_srli_epi32(word, (unsigned)(8 * (i / 2) + bits * (i % 2)));
            out[i] = _mm512_permutexvar_ps(index, tables->first);
        }
    } else {
        __m512i fields[2];
        unpack_fields(kind, low, high, pair, fields);
        UNROLL(8)
        for (int i = 0; i < TILE_VECTORS; i++) {
            __m512i index = _mm512_srli_epi32(fields[i % 2], (unsigned)(8 * (i / 2)));
            out[i] = kind == TILE_4_2 ? unpack_widen(fields[i % 2], i / 2)
                     : kind == TILE_4_1
                         ? _mm512_permutex2var_ps(tables->first, index, tables->second)
                         : _mm512_permutexvar_ps(index, tables->first);
        }
    }
}

/* The eight vectors of one pair, finished. */
ALWAYS_INLINE void unpack_values(enum tile_kind kind, const struct unpack_tables *tables,
                                 const uint8_t *low, const uint8_t *high, int pair,
                                 const struct unpack_group *group, __m512 *out) {
    unpack_codes(kind, tables, low, high, pair, out);
    UNROLL(8)
    for (int i = 0; i < TILE_VECTORS; i++)
        out[i] = kind == TILE_8 ? _mm512_mul_ps(out[i], group->scale[i])
                                : _mm512_fmadd_ps(out[i], group->scale[i], group->min[i]);
}

/* Eight vectors of a pair stored as floats. */
ALWAYS_INLINE void unpack_floats(enum tile_kind kind, const uint8_t *bytes, size_t pair,
                                 __m512 *out) {
    size_t element = kind == TILE_F32 ? 4 : 2;
    const uint8_t *in = bytes + pair * 2 * PANEL_COLUMNS * element;
    UNROLL(8)
    for (int i = 0; i < TILE_VECTORS; i++) {
        if (kind == TILE_F32) {
            out[i] = _mm512_loadu_ps(in + 64 * i);
        } else if (kind == TILE_F16) {
            out[i] = unpack_half_floats(in, i);
        } else {
            __m256i packed = _mm256_loadu_si256((const __m256i *)(const void *)(in + 32 * i));
            out[i] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(packed), 16));
        }
    }
}

/* Weights come from memory once a step and the hardware's prefetcher loses them between two chunks:
 * ask for what a pair takes, TILE_PREFETCH_BYTES ahead. Prefetching past the end is harmless. */
ALWAYS_INLINE void unpack_prefetch(const uint8_t *bytes, size_t byte_count) {
    for (size_t at = 0; at < byte_count; at += 64)
        _mm_prefetch((const char *)bytes + TILE_PREFETCH_BYTES + at, _MM_HINT_T0);
}

/* One chunk, pair after pair, in groups of equal scales. */
ALWAYS_INLINE void unpack_chunk(enum tile_kind kind, const struct tile_format *format,
                                const uint8_t *chunk, void *sink,
                                void (*take)(void *sink, const __m512 *values)) {
    struct tile_offsets at = tile_format_offsets(format);
    struct unpack_tables tables = unpack_load_tables(kind, format);
    int pairs = format->group / 2;
    size_t packed = at.end / (size_t)(format->chunk / 2); /* bytes of a pair */
    for (int g = 0; g < format->chunk / format->group; g++) {
        struct unpack_group group;
        unpack_load_group(format, chunk, &at, g, &group);
        for (int p = g * pairs; p < (g + 1) * pairs; p++) {
            __m512 values[TILE_VECTORS];
            unpack_prefetch(chunk + (size_t)p * packed, packed);
            unpack_values(kind, &tables, chunk + at.low, chunk + at.high, p, &group, values);
            take(sink, values);
        }
    }
}

/* Any format: gives the eight vectors of every pair of [k_first, k_first + k_count) to `take`,
 * which is a constant where this is inlined: it stores them to a panel or multiplies them at once.
 */
ALWAYS_INLINE void unpack_tile(const struct tile *tile, int block, int k_first, int k_count,
                               void *sink, void (*take)(void *sink, const __m512 *values)) {
    const struct tile_format *format = tile->format;
    size_t pairs = ((size_t)k_count + 1) / 2;
    const uint8_t *chunk = tile_chunk(tile, block, k_first);
#define UNPACK_FLOATS(KIND)                                                    \
    case KIND:                                                                 \
        for (size_t p = 0; p < pairs; p++) {                                   \
            __m512 values[TILE_VECTORS];                                       \
            unpack_prefetch(chunk + p * tile->chunk_bytes, tile->chunk_bytes); \
            unpack_floats(KIND, chunk, p, values);                             \
            take(sink, values);                                                \
        }                                                                      \
        break;
#define UNPACK_CODES(KIND)                                 \
    case KIND:                                             \
        for (int k = 0; k < k_count; k += format->chunk) { \
            unpack_chunk(KIND, format, chunk, sink, take); \
            chunk += tile->chunk_bytes;                    \
        }                                                  \
        break;
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
#undef UNPACK_FLOATS
#undef UNPACK_CODES
}

#endif
