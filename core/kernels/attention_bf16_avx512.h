/* Queries, probabilities and expanded int8 pages in bf16, for the AVX-512 and the AMX variants of
 * attention: all but the products. */
#ifndef CORE_KERNELS_ATTENTION_BF16_AVX512_H
#define CORE_KERNELS_ATTENTION_BF16_AVX512_H

#include "core/kernels/attention_softmax_avx512.h"

static inline void attention_bf16_convert_query(const float *in, int count, float factor,
                                                void *out) {
    __m512 factors = _mm512_set1_ps(factor);
    uint16_t *row = out;
    for (int i = 0; i < count; i += 16) {
        __mmask16 used = math_lanes_avx512(count - i);
        __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(used, in + i), factors);
        _mm256_mask_storeu_epi16(row + i, used, (__m256i)_mm512_cvtneps_pbh(scaled));
    }
}

/* The sums add what was stored: the bf16 values, even and odd ones widened. */
static inline void attention_bf16_softmax_page(const float *scores, int row_count,
                                               void *probabilities, float *row_max, float *row_sum,
                                               float *factors) {
    const __m512i high = _mm512_set1_epi32((int)0xffff0000u);
    uint16_t *out = probabilities;
    for (int r = 0; r < row_count; r++) {
        __m512 relative[4];
        factors[r] = softmax_relative_avx512(scores, row_max + r, row_sum, relative);
        __m512 sum = _mm512_loadu_ps(row_sum);
        for (int i = 0; i < 4; i += 2) {
            __m512i pairs = (__m512i)_mm512_cvtne2ps_pbh(math_exp2_avx512(relative[i + 1]),
                                                         math_exp2_avx512(relative[i]));
            _mm512_storeu_si512(out + 16 * i, pairs);
            __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
            __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(pairs, high));
            sum = _mm512_add_ps(sum, _mm512_add_ps(even, odd));
        }
        _mm512_storeu_ps(row_sum, sum);
        scores += PANEL_COLUMNS, out += PANEL_COLUMNS, row_sum += SOFTMAX_LANES;
    }
}

static inline __attribute__((always_inline)) void attention_bf16_store(__m512 first, __m512 second,
                                                                       uint16_t *out) {
    _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

static inline void attention_bf16_expand_keys(const int8_t *in, const float *scales, int head_dim,
                                              uint16_t *out) {
    expand_keys_avx512(in, scales, head_dim, out, attention_bf16_store);
}

static inline void attention_bf16_expand_values(const int8_t *in, const float *scales, int head_dim,
                                                uint16_t *out) {
    expand_values_avx512(in, scales, head_dim, out, attention_bf16_store);
}

#endif
