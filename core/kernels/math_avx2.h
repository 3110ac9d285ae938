/* math_scalar.h, 8 lanes wide. The operand order of min and max lets NaN through. */
#ifndef CORE_KERNELS_MATH_AVX2_H
#define CORE_KERNELS_MATH_AVX2_H

#include <immintrin.h>

#include "core/kernels/math_constants.h"

static inline __m256 math_scale_avx2(__m256 value, __m256 rounded) {
    __m256i count = _mm256_slli_epi32(_mm256_castps_si256(rounded), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(value), count));
}

/* x ≤ MATH_EXP2_MAX, as softmax has it. */
static inline __m256 math_exp2_avx2(__m256 x) {
    const __m256 magic = _mm256_set1_ps(MATH_ROUND_MAGIC);
    x = _mm256_max_ps(_mm256_set1_ps(MATH_EXP2_MIN), x);
    __m256 rounded = _mm256_add_ps(x, magic);
    __m256 f = _mm256_sub_ps(x, _mm256_sub_ps(rounded, magic));
    __m256 p = _mm256_set1_ps(MATH_EXP2_A5);
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(MATH_EXP2_A4));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(MATH_EXP2_A3));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(MATH_EXP2_A2));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(MATH_EXP2_A1));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.0f));
    return math_scale_avx2(p, rounded);
}

static inline __m256 math_exp_avx2(__m256 x) {
    const __m256 magic = _mm256_set1_ps(MATH_ROUND_MAGIC);
    x = _mm256_max_ps(_mm256_set1_ps(MATH_EXP_MIN), x);
    x = _mm256_min_ps(_mm256_set1_ps(MATH_EXP_MAX), x);
    __m256 rounded = _mm256_fmadd_ps(x, _mm256_set1_ps(MATH_LOG2E), magic);
    __m256 n = _mm256_sub_ps(rounded, magic);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(MATH_LN2_HIGH), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(MATH_LN2_LOW), r);
    __m256 p = _mm256_set1_ps(MATH_EXP_B6);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(MATH_EXP_B5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(MATH_EXP_B4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(MATH_EXP_B3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(MATH_EXP_B2));
    p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
    return math_scale_avx2(_mm256_add_ps(p, _mm256_set1_ps(1.0f)), rounded);
}

static inline __m256 math_tanh_avx2(__m256 x) {
    const __m256 one = _mm256_set1_ps(1.0f), two = _mm256_set1_ps(2.0f);
    __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x), z = _mm256_mul_ps(x, x);
    __m256 p = _mm256_set1_ps(MATH_TANH_C4);
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(MATH_TANH_C3));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(MATH_TANH_C2));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(MATH_TANH_C1));
    __m256 small = _mm256_fmadd_ps(x, _mm256_mul_ps(z, p), x);
    __m256 e = math_exp_avx2(_mm256_add_ps(size, size));
    __m256 large = _mm256_sub_ps(one, _mm256_div_ps(two, _mm256_add_ps(e, one)));
    __m256 sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0f));
    __m256 is_small = _mm256_cmp_ps(size, _mm256_set1_ps(MATH_TANH_SMALL), _CMP_LE_OQ);
    return _mm256_blendv_ps(_mm256_or_ps(large, sign), small, is_small);
}

#endif
