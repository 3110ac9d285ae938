/* Dense attention with AVX2 and FMA: 6 rows × 16 columns of sums in registers. */
#include "core/kernels/kernels_variants.h"
#include "core/kernels/math_avx2.h"

#define VECTOR __m256
#define vector_load _mm256_loadu_ps
#define vector_store _mm256_storeu_ps
#define vector_set _mm256_set1_ps
#define vector_add _mm256_add_ps
#define vector_subtract _mm256_sub_ps
#define vector_multiply _mm256_mul_ps
#define vector_multiply_add _mm256_fmadd_ps
#define vector_larger _mm256_max_ps
#define vector_exp2 math_exp2_avx2

enum { LANES = 8, BLOCK_ROWS = 6, BLOCK_VECTORS = 2 };

static inline float exp2_of(float x) {
    return _mm256_cvtss_f32(math_exp2_avx2(_mm256_set1_ps(x)));
}

static inline float vector_sum(__m256 values) {
    float lanes[8];
    _mm256_storeu_ps(lanes, values);
    float sum = 0;
    for (int i = 0; i < 8; i++)
        sum += lanes[i];
    return sum;
}

static inline float vector_largest(__m256 values) {
    float lanes[8];
    _mm256_storeu_ps(lanes, values);
    float most = lanes[0];
    for (int i = 1; i < 8; i++)
        most = lanes[i] > most ? lanes[i] : most;
    return most;
}

#include "core/kernels/attention_dense_vector.h"

static bool available(const struct cpu_features *features) {
    return features->avx2;
}

const struct attention_dense_kernels attention_dense_avx2 = {
    .name = "avx2",
    .available = available,
    .multiply = multiply,
    .transpose = transpose,
    .scale = scale,
    .softmax = softmax,
    .softmax_tile = softmax_tile,
    .exponentials = exponentials,
    .softmax_gradient = softmax_gradient,
    .dot = dot,
};
