/* What the two AVX-512 variants of attention share: all but the products and the rounding. */
#ifndef CORE_KERNELS_ATTENTION_SOFTMAX_AVX512_H
#define CORE_KERNELS_ATTENTION_SOFTMAX_AVX512_H

#include <stdint.h>

#include "core/kernels/kernels.h"
#include "core/kernels/math_avx512.h"

/* A row's scores at a page, relative to its maximum, which is moved first when need be: then the
 * earlier sums are scaled. Returns the factor for the row's output. */
static inline float softmax_relative_avx512(const float *scores, float *row_max, float *row_sum,
                                            __m512 relative[4]) {
    __m512 reference = _mm512_set1_ps(*row_max);
    for (int i = 0; i < 4; i++)
        relative[i] = _mm512_loadu_ps(scores + 16 * i);
    __m512 most = _mm512_max_ps(_mm512_max_ps(relative[0], relative[1]),
                                _mm512_max_ps(relative[2], relative[3]));
    float factor = 1;
    __m512 limit = _mm512_add_ps(reference, _mm512_set1_ps(8.0f));
    if (_mm512_cmp_ps_mask(most, limit, _CMP_GT_OQ)) {
        *row_max = _mm512_reduce_max_ps(most);
        __m512 moved = _mm512_set1_ps(*row_max);
        __m512 scale = math_exp2_avx512(_mm512_sub_ps(reference, moved));
        _mm512_storeu_ps(row_sum, _mm512_mul_ps(_mm512_loadu_ps(row_sum), scale));
        factor = _mm512_cvtss_f32(scale);
        reference = moved;
    }
    for (int i = 0; i < 4; i++)
        relative[i] = _mm512_sub_ps(relative[i], reference);
    return factor;
}

static inline void scale_row_avx512(float *out, int count, float factor) {
    __m512 factors = _mm512_set1_ps(factor);
    int i = 0;
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_loadu_ps(out + i), factors));
    if (i < count) {
        __mmask16 rest = math_lanes_avx512(count - i);
        __m512 values = _mm512_maskz_loadu_ps(rest, out + i);
        _mm512_mask_storeu_ps(out + i, rest, _mm512_mul_ps(values, factors));
    }
}

static inline void blend_row_avx512(float *into, float into_factor, const float *from,
                                    float from_factor, int count) {
    __m512 into_factors = _mm512_set1_ps(into_factor), from_factors = _mm512_set1_ps(from_factor);
    for (int i = 0; i < count; i += 16) {
        __mmask16 used = math_lanes_avx512(count - i);
        __m512 kept = _mm512_mul_ps(_mm512_maskz_loadu_ps(used, into + i), into_factors);
        __m512 added = _mm512_maskz_loadu_ps(used, from + i);
        _mm512_mask_storeu_ps(into + i, used, _mm512_fmadd_ps(added, from_factors, kept));
    }
}

/* 16 bytes × 16 scales. */
static inline __m512 scaled_bytes_avx512(const int8_t *in, __m512 scales) {
    __m512i wide = _mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)in));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(wide), scales);
}

/* Both expansions: `store` writes 32 values as bf16. */
static inline __attribute__((always_inline)) void
expand_keys_avx512(const int8_t *in, const float *scales, int head_dim, uint16_t *out,
                   void (*store)(__m512 first, __m512 second, uint16_t *out)) {
    const __m512i low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    for (int part = 0; part < PANEL_COLUMNS / 16; part++) {
        __m512 sixteen = _mm512_loadu_ps(scales + 16 * part);
        __m512 first = _mm512_permutexvar_ps(low, sixteen);
        __m512 second = _mm512_permutexvar_ps(high, sixteen);
        for (int pair = 0; pair < head_dim / 2; pair++) {
            size_t at = (size_t)pair * PANEL_COLUMNS * 2 + (size_t)part * 32;
            store(scaled_bytes_avx512(in + at, first), scaled_bytes_avx512(in + at + 16, second),
                  out + at);
        }
    }
}

static inline __attribute__((always_inline)) void
expand_values_avx512(const int8_t *in, const float *scales, int head_dim, uint16_t *out,
                     void (*store)(__m512 first, __m512 second, uint16_t *out)) {
    for (int pair = 0; pair < PANEL_COLUMNS / 2; pair++) {
        __m512 even = _mm512_set1_ps(scales[2 * pair]), odd = _mm512_set1_ps(scales[2 * pair + 1]);
        __m512 both = _mm512_mask_blend_ps(0xaaaa, even, odd);
        for (int i = 0; i < 2 * head_dim; i += 32) {
            size_t at = (size_t)pair * 2 * (size_t)head_dim + (size_t)i;
            store(scaled_bytes_avx512(in + at, both), scaled_bytes_avx512(in + at + 16, both),
                  out + at);
        }
    }
}

#endif
