/* Decoding of weight tiles on AVX2, shared by the fp32 and the int8 kernels. The tiles' 16-lane
 * vectors are handled as two halves. `kind` is a constant wherever these are inlined. */
#ifndef CORE_KERNELS_UNPACK_AVX2_H
#define CORE_KERNELS_UNPACK_AVX2_H

#include <immintrin.h>

#include "core/kernels/tile_layout.h"
#include "core/kernels/unroll.h"

ALWAYS_INLINE __m256i unpack_bytes(const uint8_t *bytes, bool is_signed) {
    __m128i packed = _mm_loadl_epi64((const __m128i *)(const void *)bytes);
    return is_signed ? _mm256_cvtepi8_epi32(packed) : _mm256_cvtepu8_epi32(packed);
}

ALWAYS_INLINE __m256 unpack_half_floats(const uint8_t *bytes) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)bytes));
}

/* Eight columns' scale of one group, columns 8i to 8i + 7. */
ALWAYS_INLINE __m256 unpack_load_scale(const struct tile_format *format, const uint8_t *chunk,
                                       const struct tile_offsets *at, int group, int i) {
    __m256 scale = unpack_half_floats(chunk + 16 * (size_t)i);
    if (!format->two_level)
        return scale;
    const uint8_t *factors = chunk + at->group_scale + (size_t)(group * PANEL_COLUMNS + 8 * i);
    return _mm256_mul_ps(scale, _mm256_cvtepi32_ps(unpack_bytes(factors, true)));
}

/* Their minimum; without one, what `offset` comes to. */
ALWAYS_INLINE __m256 unpack_load_min(const struct tile_format *format, const uint8_t *chunk,
                                     const struct tile_offsets *at, int group, int i, __m256 scale,
                                     int offset) {
    if (!format->has_min)
        return _mm256_mul_ps(scale, _mm256_set1_ps((float)offset));
    __m256 min = unpack_half_floats(chunk + at->min + 16 * (size_t)i);
    if (!format->two_level)
        return min;
    __m256i factor =
        unpack_bytes(chunk + at->group_min + (size_t)(group * PANEL_COLUMNS + 8 * i), false);
    return _mm256_mul_ps(min, _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_setzero_si256(), factor)));
}

/* Half of a pair's words: vector i's code is at bit 8(i/2) + bits × (i%2). */
ALWAYS_INLINE __m256i unpack_word(const uint8_t *plane, int bits, int pair, int half) {
    int pairs_a_word = 4 / bits;
    const uint8_t *at = plane + (size_t)(pair / pairs_a_word) * 64 + 32 * (size_t)half;
    __m256i word = _mm256_loadu_si256((const __m256i *)(const void *)at);
    if (pairs_a_word > 1)
        word = _mm256_srl_epi32(word, _mm_cvtsi32_si128(2 * bits * (pair % pairs_a_word)));
    return word;
}

/* Codes of half a pair as bytes: even vectors in fields[0], odd ones in fields[1]. */
ALWAYS_INLINE void unpack_fields(enum tile_kind kind, const struct tile_format *format,
                                 const uint8_t *low, const uint8_t *high, int pair, int half,
                                 __m256i *fields) {
    const int low_bits = tile_kind_low_bits(kind), high_bits = tile_kind_high_bits(kind);
    const __m256i low_mask = _mm256_set1_epi8((char)((1 << low_bits) - 1));
    __m256i word = unpack_word(low, low_bits, pair, half);
    fields[0] = _mm256_and_si256(word, low_mask);
    fields[1] = _mm256_and_si256(_mm256_srli_epi32(word, low_bits), low_mask);
    if (kind == TILE_4_CODEBOOK) {
        __m128i entries = _mm_loadu_si128((const __m128i *)(const void *)format->codebook);
        __m256i codebook = _mm256_broadcastsi128_si256(entries);
        fields[0] = _mm256_shuffle_epi8(codebook, fields[0]);
        fields[1] = _mm256_shuffle_epi8(codebook, fields[1]);
    }
    if (high_bits > 0) {
        const __m256i mask = _mm256_set1_epi8((char)(((1 << high_bits) - 1) << low_bits));
        __m256i bits = unpack_word(high, high_bits, pair, half);
        __m256i even = _mm256_and_si256(_mm256_slli_epi32(bits, low_bits), mask);
        __m256i odd = _mm256_and_si256(_mm256_slli_epi32(bits, low_bits - high_bits), mask);
        fields[0] = _mm256_or_si256(fields[0], even);
        fields[1] = _mm256_or_si256(fields[1], odd);
    }
}

/* Weights come from memory once a step and the hardware's prefetcher loses them between two chunks:
 * ask for what is decoded next, TILE_PREFETCH_BYTES ahead. Past the end it is harmless. */
ALWAYS_INLINE void unpack_prefetch(const uint8_t *bytes, size_t byte_count) {
    for (size_t at = 0; at < byte_count; at += 64)
        _mm_prefetch((const char *)bytes + TILE_PREFETCH_BYTES + at, _MM_HINT_T0);
}

#endif
