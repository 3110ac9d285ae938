/* Decoding of weight tiles on AVX-512, shared by the fp32 and the bf16 kernels; each includes it
 * under its own compiler flags. A pair of inputs × 64 columns is eight vectors of 16 lanes; codes
 * become floats by a table held in a register (VPERMPS ignores the index's upper bits, so fields
 * need no mask). */
#ifndef CORE_KERNELS_UNPACK_AVX512_H
#define CORE_KERNELS_UNPACK_AVX512_H

#include <immintrin.h>
#include <string.h>

#include "core/kernels/tile_layout.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL(n) _Pragma("clang loop unroll(full)")
#else
#define UNROLL_TEXT(text) _Pragma(#text)
#define UNROLL(n) UNROLL_TEXT(GCC unroll n)
#endif

/* Scale and minimum in lane order: each column twice. */
struct unpack_group {
    __m512 scale[TILE_VECTORS], min[TILE_VECTORS];
};

struct unpack_tables {
    __m512 low, high;
};

ALWAYS_INLINE struct unpack_tables unpack_load_tables(const struct tile_format *format) {
    return (struct unpack_tables){_mm512_loadu_ps(format->low_table),
                                  _mm512_loadu_ps(format->high_table)};
}

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
        if (!format->has_min)
            continue;
        __m512 min = unpack_half_floats(chunk + at->min, i);
        if (format->two_level) {
            __m512i factor =
                _mm512_sub_epi32(_mm512_setzero_si512(), unpack_bytes(group_min, i, false));
            min = _mm512_mul_ps(min, _mm512_cvtepi32_ps(factor));
        }
        unpack_spread(min, &out->min[2 * i]);
    }
}

ALWAYS_INLINE __m512i unpack_plane_word(const uint8_t *plane, int bits, int pair) {
    int pairs_a_word = 4 / bits;
    __m512i word = _mm512_loadu_si512(plane + (size_t)(pair / pairs_a_word) * 64);
    if (bits == 2)
        word = _mm512_srl_epi32(word, _mm_cvtsi32_si128(16 * (pair % 2)));
    return word;
}

ALWAYS_INLINE __m512 unpack_look_up(__m512 table, __m512i word, int shift) {
    return _mm512_permutexvar_ps(_mm512_srli_epi32(word, (unsigned)shift), table);
}

/* The eight vectors of one pair, before scales. `kind` is a constant wherever this is inlined. */
ALWAYS_INLINE void unpack_codes(enum tile_kind kind, const struct unpack_tables *tables,
                                const uint8_t *low, const uint8_t *high, int pair, __m512 *out) {
    if (kind == TILE_8) {
        UNROLL(8)
        for (int i = 0; i < TILE_VECTORS; i++)
            out[i] = _mm512_cvtepi32_ps(unpack_bytes(low, pair * TILE_VECTORS + i, true));
        return;
    }
    int bits = kind == TILE_2 || kind == TILE_2_1 ? 2 : 4;
    __m512i word = unpack_plane_word(low, bits, pair);
    UNROLL(8)
    for (int i = 0; i < TILE_VECTORS; i++)
        out[i] = unpack_look_up(tables->low, word, bits * i);
    if (kind == TILE_4_2) {
        __m512i high_word = unpack_plane_word(high, 2, pair);
        UNROLL(8)
        for (int i = 0; i < TILE_VECTORS; i++)
            out[i] = _mm512_add_ps(out[i], unpack_look_up(tables->high, high_word, 2 * i));
    } else if (kind == TILE_2_1 || kind == TILE_4_1) {
        __m512 step = _mm512_permutexvar_ps(_mm512_set1_epi32(1), tables->high);
        uint16_t masks[TILE_VECTORS];
        memcpy(masks, high + (size_t)pair * sizeof masks, sizeof masks);
        UNROLL(8)
        for (int i = 0; i < TILE_VECTORS; i++)
            out[i] = _mm512_mask_add_ps(out[i], masks[i], out[i], step);
    }
}

/* The eight vectors of one pair, finished. */
ALWAYS_INLINE void unpack_values(enum tile_kind kind, bool has_min,
                                 const struct unpack_tables *tables, const uint8_t *low,
                                 const uint8_t *high, int pair, const struct unpack_group *group,
                                 __m512 *out) {
    unpack_codes(kind, tables, low, high, pair, out);
    UNROLL(8)
    for (int i = 0; i < TILE_VECTORS; i++)
        out[i] = has_min ? _mm512_fmadd_ps(out[i], group->scale[i], group->min[i])
                         : _mm512_mul_ps(out[i], group->scale[i]);
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
ALWAYS_INLINE void unpack_chunk(enum tile_kind kind, bool has_min, const struct tile_format *format,
                                const uint8_t *chunk, void *sink,
                                void (*take)(void *sink, const __m512 *values)) {
    struct tile_offsets at = tile_format_offsets(format);
    struct unpack_tables tables = unpack_load_tables(format);
    int pairs = format->group / 2;
    size_t packed = at.end / (size_t)(format->chunk / 2); /* bytes of a pair */
    for (int g = 0; g < format->chunk / format->group; g++) {
        struct unpack_group group;
        unpack_load_group(format, chunk, &at, g, &group);
        for (int p = g * pairs; p < (g + 1) * pairs; p++) {
            __m512 values[TILE_VECTORS];
            unpack_prefetch(chunk + (size_t)p * packed, packed);
            unpack_values(kind, has_min, &tables, chunk + at.low, chunk + at.high, p, &group,
                          values);
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
#define UNPACK_CODES(KIND, HAS_MIN)                             \
    for (int k = 0; k < k_count; k += format->chunk) {          \
        unpack_chunk(KIND, HAS_MIN, format, chunk, sink, take); \
        chunk += tile->chunk_bytes;                             \
    }
#define UNPACK_EITHER(KIND)           \
    case KIND:                        \
        if (format->has_min) {        \
            UNPACK_CODES(KIND, true)  \
        } else {                      \
            UNPACK_CODES(KIND, false) \
        }                             \
        break;
    switch (format->kind) {
        UNPACK_FLOATS(TILE_F16)
        UNPACK_FLOATS(TILE_BF16)
        UNPACK_FLOATS(TILE_F32)
        UNPACK_EITHER(TILE_2)
        UNPACK_EITHER(TILE_2_1)
        UNPACK_EITHER(TILE_4)
        UNPACK_EITHER(TILE_4_1)
        UNPACK_EITHER(TILE_4_2)
        UNPACK_EITHER(TILE_8)
    }
#undef UNPACK_FLOATS
#undef UNPACK_CODES
#undef UNPACK_EITHER
}

#endif
