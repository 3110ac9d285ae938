/* Dense attention with AVX-512: 6 rows × 64 columns of sums in registers. */
#include "core/kernels/kernels_variants.h"
#include "core/kernels/math_avx512.h"

#define VECTOR __m512
#define vector_load _mm512_loadu_ps
#define vector_store _mm512_storeu_ps
#define vector_set _mm512_set1_ps
#define vector_add _mm512_add_ps
#define vector_subtract _mm512_sub_ps
#define vector_multiply _mm512_mul_ps
#define vector_multiply_add _mm512_fmadd_ps
#define vector_larger _mm512_max_ps
#define vector_largest _mm512_reduce_max_ps
#define vector_sum _mm512_reduce_add_ps
#define vector_exp2 math_exp2_avx512

enum { LANES = 16, BLOCK_ROWS = 6, BLOCK_VECTORS = 4 };

static inline float exp2_of(float x) {
    return _mm512_cvtss_f32(math_exp2_avx512(_mm512_set1_ps(x)));
}

#include "core/kernels/attention_dense_vector.h"

static bool available(const struct cpu_features *features) {
    return features->avx512;
}

const struct attention_dense_kernels attention_dense_avx512 = {
    .name = "avx512",
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
