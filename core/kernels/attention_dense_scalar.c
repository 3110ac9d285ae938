/* The loops of dense attention in plain C: what the other variants must compute. */
#include <math.h>

#include "core/kernels/kernels_variants.h"
#include "core/kernels/math_scalar.h"

static bool available(const struct cpu_features *features) {
    (void)features;
    return true;
}

static void multiply(const struct attention_dense_product *product) {
    for (int r = 0; r < product->rows; r++) {
        float *out = product->out + (size_t)r * product->out_stride;
        for (int c = 0; c < product->columns && !product->accumulate; c++)
            out[c] = 0;
        for (int i = 0; i < product->k; i++) {
            float a = product->a[(size_t)r * product->a_row + (size_t)i * product->a_step];
            const float *b = product->b + (size_t)i * product->b_stride;
            for (int c = 0; c < product->columns; c++)
                out[c] += a * b[c];
        }
    }
}

static void transpose(const float *in, size_t in_stride, int rows, int columns, float *out) {
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < ATTENTION_DENSE_TILE; r++)
            out[c * ATTENTION_DENSE_TILE + r] = r < rows ? in[(size_t)r * in_stride + c] : 0;
}

static void scale(float *row, int count, float factor) {
    for (int i = 0; i < count; i++)
        row[i] *= factor;
}

static float largest(const float *row, int count) {
    float most = -INFINITY;
    for (int i = 0; i < count; i++)
        most = row[i] > most ? row[i] : most;
    return most;
}

/* out[i] = e^(row[i] - shift); returns their sum. */
static float shifted_exponentials(const float *row, int count, float shift, float *out) {
    float sum = 0;
    for (int i = 0; i < count; i++) {
        out[i] = math_exp2((row[i] - shift) * MATH_LOG2E);
        sum += out[i];
    }
    return sum;
}

static float softmax(const float *row, int count, float *out) {
    float most = largest(row, count);
    float sum = shifted_exponentials(row, count, most, out);
    scale(out, count, 1 / sum);
    return most + logf(sum);
}

static float softmax_tile(float *row, int count, float *max, float *sum) {
    float most = largest(row, count);
    if (most < *max)
        most = *max;
    if (most == -INFINITY) { /* nothing seen yet */
        for (int i = 0; i < count; i++)
            row[i] = 0;
        return 1;
    }
    float factor = math_exp2((*max - most) * MATH_LOG2E);
    *max = most;
    *sum = *sum * factor + shifted_exponentials(row, count, most, row);
    return factor;
}

static void exponentials(float *row, int count, float log_sum) {
    shifted_exponentials(row, count, log_sum, row);
}

static void softmax_gradient(float *gradients, const float *probabilities, int count, float delta) {
    for (int i = 0; i < count; i++)
        gradients[i] = probabilities[i] * (gradients[i] - delta);
}

static float dot(const float *a, const float *b, int count) {
    float sum = 0;
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

const struct attention_dense_kernels attention_dense_scalar = {
    .name = "scalar",
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
