/* Element-wise kernels with AVX-512; the last vector is masked. */
#include <math.h>

#include "core/kernels/kernels_variants.h"
#include "core/kernels/math_avx512.h"

enum { LANES = 16 };

static bool available(const struct cpu_features *features) {
    return features->avx512;
}

static float sum_of_squares(const float *in, int count) {
    __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (int i = 0; i < count; i += LANES) {
        __m512 x = _mm512_maskz_loadu_ps(math_lanes_avx512(count - i), in + i);
        sums[i / LANES % 2] = _mm512_fmadd_ps(x, x, sums[i / LANES % 2]);
    }
    return _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]));
}

static void rms_norm(const float *in, const float *weight, int count, float epsilon, float *out) {
    float mean = sum_of_squares(in, count) / (float)count;
    __m512 factor = _mm512_set1_ps(1.0f / sqrtf(mean + epsilon));
    for (int i = 0; i < count; i += LANES) {
        __mmask16 used = math_lanes_avx512(count - i);
        __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(used, in + i), factor);
        __m512 weights = _mm512_maskz_loadu_ps(used, weight + i);
        _mm512_mask_storeu_ps(out + i, used, _mm512_mul_ps(scaled, weights));
    }
}

/* x / (1 + e^(-u)) */
static inline __m512 times_sigmoid(__m512 x, __m512 u) {
    __m512 one = _mm512_set1_ps(1.0f);
    __m512 e = math_exp_avx512(_mm512_sub_ps(_mm512_setzero_ps(), u));
    return _mm512_div_ps(x, _mm512_add_ps(one, e));
}

static void silu_mul(const float *gate, const float *up, int count, float *out) {
    for (int i = 0; i < count; i += LANES) {
        __mmask16 used = math_lanes_avx512(count - i);
        __m512 x = _mm512_maskz_loadu_ps(used, gate + i);
        __m512 y = _mm512_maskz_loadu_ps(used, up + i);
        _mm512_mask_storeu_ps(out + i, used, _mm512_mul_ps(times_sigmoid(x, x), y));
    }
}

static void gelu_tanh_mul(const float *gate, const float *up, int count, float *out) {
    const __m512 root = _mm512_set1_ps(MATH_GELU_TWO_ROOT), cube = _mm512_set1_ps(MATH_GELU_CUBE);
    for (int i = 0; i < count; i += LANES) {
        __mmask16 used = math_lanes_avx512(count - i);
        __m512 x = _mm512_maskz_loadu_ps(used, gate + i);
        __m512 y = _mm512_maskz_loadu_ps(used, up + i);
        __m512 cubed = _mm512_mul_ps(_mm512_mul_ps(_mm512_mul_ps(cube, x), x), x);
        __m512 u = _mm512_mul_ps(root, _mm512_add_ps(x, cubed));
        _mm512_mask_storeu_ps(out + i, used, _mm512_mul_ps(times_sigmoid(x, u), y));
    }
}

static void add(float *into, const float *from, int count) {
    for (int i = 0; i < count; i += LANES) {
        __mmask16 used = math_lanes_avx512(count - i);
        __m512 x = _mm512_maskz_loadu_ps(used, into + i);
        __m512 y = _mm512_maskz_loadu_ps(used, from + i);
        _mm512_mask_storeu_ps(into + i, used, _mm512_add_ps(x, y));
    }
}

static void softcap(float *values, int count, float cap) {
    const __m512 caps = _mm512_set1_ps(cap);
    for (int i = 0; i < count; i += LANES) {
        __mmask16 used = math_lanes_avx512(count - i);
        __m512 x = _mm512_div_ps(_mm512_maskz_loadu_ps(used, values + i), caps);
        _mm512_mask_storeu_ps(values + i, used, _mm512_mul_ps(caps, math_tanh_avx512(x)));
    }
}

/* The largest value and whether all are below +Inf (a NaN is not), then its first place. */
static int argmax(const float *values, int count, bool *finite) {
    const __m512 low = _mm512_set1_ps(-INFINITY);
    const __m512 infinite = _mm512_set1_ps(INFINITY);
    __m512 most = low;
    __mmask16 bad = 0;
    for (int i = 0; i < count; i += LANES) {
        __mmask16 used = math_lanes_avx512(count - i);
        __m512 x = _mm512_maskz_loadu_ps(used, values + i);
        bad |= _mm512_cmp_ps_mask(x, infinite, _CMP_NLT_UQ);
        most = _mm512_max_ps(_mm512_mask_blend_ps(used, low, x), most);
    }
    __m512 largest = _mm512_set1_ps(_mm512_reduce_max_ps(most));
    *finite = bad == 0 && _mm512_cvtss_f32(largest) > -INFINITY;
    for (int i = 0; i < count; i += LANES) {
        __mmask16 used = math_lanes_avx512(count - i);
        __m512 x = _mm512_maskz_loadu_ps(used, values + i);
        __mmask16 found = _mm512_mask_cmp_ps_mask(used, x, largest, _CMP_EQ_OQ);
        if (found)
            return i + __builtin_ctz(found);
    }
    return 0;
}

const struct elementwise_kernels elementwise_avx512 = {
    .name = "avx512",
    .available = available,
    .rms_norm = rms_norm,
    .silu_mul = silu_mul,
    .gelu_tanh_mul = gelu_tanh_mul,
    .add = add,
    .softcap = softcap,
    .argmax = argmax,
};
