/* Element-wise kernels with AVX2 and FMA; the last vector is loaded and stored under a mask. */
#include <immintrin.h>
#include <math.h>

#include "core/kernels/kernels_variants.h"
#include "core/kernels/math_avx2.h"

enum { LANES = 8 };

static bool available(const struct cpu_features *features) {
    return features->avx2;
}

/* All ones in the lanes in use of the vector that begins `left` elements before the end. */
static inline __m256i used_lanes(int left) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(left), lanes);
}

static float sum_of_lanes(__m256 values) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static float sum_of_squares(const float *in, int count) {
    __m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                      _mm256_setzero_ps()};
    for (int i = 0; i < count; i += LANES) {
        __m256 x = _mm256_maskload_ps(in + i, used_lanes(count - i));
        sums[i / LANES % 4] = _mm256_fmadd_ps(x, x, sums[i / LANES % 4]);
    }
    return sum_of_lanes(
        _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
}

static void rms_norm(const float *in, const float *weight, int count, float epsilon, float *out) {
    float mean = sum_of_squares(in, count) / (float)count;
    __m256 factor = _mm256_set1_ps(1.0f / sqrtf(mean + epsilon));
    for (int i = 0; i < count; i += LANES) {
        __m256i used = used_lanes(count - i);
        __m256 scaled = _mm256_mul_ps(_mm256_maskload_ps(in + i, used), factor);
        __m256 weights = _mm256_maskload_ps(weight + i, used);
        _mm256_maskstore_ps(out + i, used, _mm256_mul_ps(scaled, weights));
    }
}

/* x / (1 + e^(-u)) */
static inline __m256 times_sigmoid(__m256 x, __m256 u) {
    __m256 one = _mm256_set1_ps(1.0f);
    __m256 e = math_exp_avx2(_mm256_sub_ps(_mm256_setzero_ps(), u));
    return _mm256_div_ps(x, _mm256_add_ps(one, e));
}

static void silu_mul(const float *gate, const float *up, int count, float *out) {
    for (int i = 0; i < count; i += LANES) {
        __m256i used = used_lanes(count - i);
        __m256 x = _mm256_maskload_ps(gate + i, used), y = _mm256_maskload_ps(up + i, used);
        _mm256_maskstore_ps(out + i, used, _mm256_mul_ps(times_sigmoid(x, x), y));
    }
}

static void gelu_tanh_mul(const float *gate, const float *up, int count, float *out) {
    const __m256 root = _mm256_set1_ps(MATH_GELU_TWO_ROOT), cube = _mm256_set1_ps(MATH_GELU_CUBE);
    for (int i = 0; i < count; i += LANES) {
        __m256i used = used_lanes(count - i);
        __m256 x = _mm256_maskload_ps(gate + i, used), y = _mm256_maskload_ps(up + i, used);
        __m256 cubed = _mm256_mul_ps(_mm256_mul_ps(_mm256_mul_ps(cube, x), x), x);
        __m256 u = _mm256_mul_ps(root, _mm256_add_ps(x, cubed));
        _mm256_maskstore_ps(out + i, used, _mm256_mul_ps(times_sigmoid(x, u), y));
    }
}

static void add(float *into, const float *from, int count) {
    for (int i = 0; i < count; i += LANES) {
        __m256i used = used_lanes(count - i);
        __m256 x = _mm256_maskload_ps(into + i, used), y = _mm256_maskload_ps(from + i, used);
        _mm256_maskstore_ps(into + i, used, _mm256_add_ps(x, y));
    }
}

static void softcap(float *values, int count, float cap) {
    const __m256 caps = _mm256_set1_ps(cap);
    for (int i = 0; i < count; i += LANES) {
        __m256i used = used_lanes(count - i);
        __m256 x = _mm256_div_ps(_mm256_maskload_ps(values + i, used), caps);
        _mm256_maskstore_ps(values + i, used, _mm256_mul_ps(caps, math_tanh_avx2(x)));
    }
}

static float largest_lane(__m256 values) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* The largest value and whether all are below +Inf (a NaN is not), then its first place. */
static int argmax(const float *values, int count, bool *finite) {
    const __m256 low = _mm256_set1_ps(-INFINITY);
    const __m256 infinite = _mm256_set1_ps(INFINITY);
    __m256 most = low, bad = _mm256_setzero_ps();
    for (int i = 0; i < count; i += LANES) {
        __m256i used = used_lanes(count - i);
        __m256 x = _mm256_maskload_ps(values + i, used);
        bad = _mm256_or_ps(bad, _mm256_cmp_ps(x, infinite, _CMP_NLT_UQ));
        most = _mm256_max_ps(_mm256_blendv_ps(low, x, _mm256_castsi256_ps(used)), most);
    }
    __m256 largest = _mm256_set1_ps(largest_lane(most));
    *finite = _mm256_movemask_ps(bad) == 0 && _mm256_cvtss_f32(largest) > -INFINITY;
    for (int i = 0; i < count; i += LANES) {
        __m256i used = used_lanes(count - i);
        __m256 equal = _mm256_cmp_ps(_mm256_maskload_ps(values + i, used), largest, _CMP_EQ_OQ);
        int found = _mm256_movemask_ps(_mm256_and_ps(equal, _mm256_castsi256_ps(used)));
        if (found)
            return i + __builtin_ctz((unsigned)found);
    }
    return 0;
}

const struct elementwise_kernels elementwise_avx2 = {
    .name = "avx2",
    .available = available,
    .rms_norm = rms_norm,
    .silu_mul = silu_mul,
    .gelu_tanh_mul = gelu_tanh_mul,
    .add = add,
    .softcap = softcap,
    .argmax = argmax,
};
