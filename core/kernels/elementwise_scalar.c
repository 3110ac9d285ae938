/* Element-wise kernels in plain C: the specification. */
#include <math.h>

#include "core/kernels/kernels_variants.h"
#include "core/kernels/math_scalar.h"

static bool available(const struct cpu_features *features) {
    (void)features;
    return true;
}

static void rms_norm(const float *in, const float *weight, int count, float epsilon, float *out) {
    float sums[16] = {0};
    for (int i = 0; i < count; i++)
        sums[i % 16] += in[i] * in[i];
    float sum = 0;
    for (int i = 0; i < 16; i++)
        sum += sums[i];
    float factor = 1.0f / sqrtf(sum / (float)count + epsilon);
    for (int i = 0; i < count; i++)
        out[i] = in[i] * factor * weight[i];
}

static void silu_mul(const float *gate, const float *up, int count, float *out) {
    for (int i = 0; i < count; i++)
        out[i] = gate[i] / (1.0f + math_exp(-gate[i])) * up[i];
}

static void gelu_tanh_mul(const float *gate, const float *up, int count, float *out) {
    for (int i = 0; i < count; i++) {
        float x = gate[i];
        float u = MATH_GELU_TWO_ROOT * (x + MATH_GELU_CUBE * x * x * x);
        out[i] = x / (1.0f + math_exp(-u)) * up[i];
    }
}

static void add(float *into, const float *from, int count) {
    for (int i = 0; i < count; i++)
        into[i] += from[i];
}

static void softcap(float *values, int count, float cap) {
    for (int i = 0; i < count; i++)
        values[i] = cap * math_tanh(values[i] / cap);
}

static int argmax(const float *values, int count, bool *finite) {
    int best = 0;
    bool numbers = true;
    for (int i = 0; i < count; i++) {
        numbers &= values[i] < INFINITY;
        if (values[i] > values[best])
            best = i;
    }
    *finite = numbers && values[best] > -INFINITY;
    return best;
}

const struct elementwise_kernels elementwise_scalar = {
    .name = "scalar",
    .available = available,
    .rms_norm = rms_norm,
    .silu_mul = silu_mul,
    .gelu_tanh_mul = gelu_tanh_mul,
    .add = add,
    .softcap = softcap,
    .argmax = argmax,
};
