/* math_scalar.h, 16 lanes wide. The operand order of min and max lets NaN through. */
#ifndef CORE_KERNELS_MATH_AVX512_H
#define CORE_KERNELS_MATH_AVX512_H

#include <immintrin.h>

#include "core/kernels/math_constants.h"

/* Lanes in use of the vector that begins `left` elements before the end. */
static inline __mmask16 math_lanes_avx512(int left) {
    unsigned lanes = left >= 16 ? 0xffffu : (1u << left) - 1;
    return (__mmask16)lanes;
}

static inline __m512 math_scale_avx512(__m512 value, __m512 rounded) {
    __m512i count = _mm512_slli_epi32(_mm512_castps_si512(rounded), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(value), count));
}

/* x ≤ MATH_EXP2_MAX, as softmax has it. */
static inline __m512 math_exp2_avx512(__m512 x) {
    const __m512 magic = _mm512_set1_ps(MATH_ROUND_MAGIC);
    x = _mm512_max_ps(_mm512_set1_ps(MATH_EXP2_MIN), x);
    __m512 rounded = _mm512_add_ps(x, magic);
    __m512 f = _mm512_sub_ps(x, _mm512_sub_ps(rounded, magic));
    __m512 p = _mm512_set1_ps(MATH_EXP2_A5);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(MATH_EXP2_A4));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(MATH_EXP2_A3));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(MATH_EXP2_A2));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(MATH_EXP2_A1));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
    return math_scale_avx512(p, rounded);
}

static inline __m512 math_exp_avx512(__m512 x) {
    const __m512 magic = _mm512_set1_ps(MATH_ROUND_MAGIC);
    x = _mm512_max_ps(_mm512_set1_ps(MATH_EXP_MIN), x);
    x = _mm512_min_ps(_mm512_set1_ps(MATH_EXP_MAX), x);
    __m512 rounded = _mm512_fmadd_ps(x, _mm512_set1_ps(MATH_LOG2E), magic);
    __m512 n = _mm512_sub_ps(rounded, magic);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(MATH_LN2_HIGH), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(MATH_LN2_LOW), r);
    __m512 p = _mm512_set1_ps(MATH_EXP_B6);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(MATH_EXP_B5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(MATH_EXP_B4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(MATH_EXP_B3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(MATH_EXP_B2));
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
    return math_scale_avx512(_mm512_add_ps(p, _mm512_set1_ps(1.0f)), rounded);
}

static inline __m512 math_tanh_avx512(__m512 x) {
    const __m512 one = _mm512_set1_ps(1.0f), two = _mm512_set1_ps(2.0f);
    __m512 size = _mm512_abs_ps(x), z = _mm512_mul_ps(x, x);
    __m512 p = _mm512_set1_ps(MATH_TANH_C4);
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(MATH_TANH_C3));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(MATH_TANH_C2));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(MATH_TANH_C1));
    __m512 small = _mm512_fmadd_ps(x, _mm512_mul_ps(z, p), x);
    __m512 e = math_exp_avx512(_mm512_add_ps(size, size));
    __m512 large = _mm512_sub_ps(one, _mm512_div_ps(two, _mm512_add_ps(e, one)));
    __m512 sign = _mm512_and_ps(x, _mm512_set1_ps(-0.0f));
    __mmask16 is_small = _mm512_cmp_ps_mask(size, _mm512_set1_ps(MATH_TANH_SMALL), _CMP_LE_OQ);
    return _mm512_mask_blend_ps(is_small, _mm512_or_ps(large, sign), small);
}

#endif
