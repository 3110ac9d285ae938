/* The loops of attention_dense_scalar.c over vectors. An instruction set's file defines VECTOR (the
 * type), LANES, BLOCK_ROWS and BLOCK_VECTORS (a block of sums that fits the registers) and the
 * vector_* functions, then includes this once. */
#ifndef CORE_KERNELS_ATTENTION_DENSE_VECTOR_H
#define CORE_KERNELS_ATTENTION_DENSE_VECTOR_H

#include <immintrin.h>
#include <math.h>
#include <stddef.h>

#include "core/kernels/attention_dense.h"
#include "core/kernels/math_constants.h"

enum { NARROW_VECTORS = 16 / LANES, TRANSPOSED = 8 };

static inline __attribute__((always_inline)) void
multiply_block(const struct attention_dense_product *product, const int row_count,
               const int vector_count) {
    VECTOR sums[BLOCK_ROWS][BLOCK_VECTORS];
#pragma GCC unroll 6
    for (int r = 0; r < row_count; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < vector_count; v++)
            sums[r][v] =
                product->accumulate
                    ? vector_load(product->out + (size_t)r * product->out_stride + LANES * v)
                    : vector_set(0);
    }
    const float *a = product->a, *b = product->b;
    for (int i = 0; i < product->k; i++) {
        VECTOR columns[BLOCK_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vector_count; v++)
            columns[v] = vector_load(b + LANES * v);
#pragma GCC unroll 6
        for (int r = 0; r < row_count; r++) {
            VECTOR value = vector_set(a[(size_t)r * product->a_row]);
#pragma GCC unroll 4
            for (int v = 0; v < vector_count; v++)
                sums[r][v] = vector_multiply_add(value, columns[v], sums[r][v]);
        }
        a += product->a_step;
        b += product->b_stride;
    }
#pragma GCC unroll 6
    for (int r = 0; r < row_count; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < vector_count; v++)
            vector_store(product->out + (size_t)r * product->out_stride + LANES * v, sums[r][v]);
    }
}

#define BLOCK_CASE(ROWS, VECTORS)               \
    case ROWS:                                  \
        multiply_block(product, ROWS, VECTORS); \
        break;

#define BLOCK_DEFINE(NAME, VECTORS)                                                  \
    static void NAME(const struct attention_dense_product *product, int row_count) { \
        switch (row_count) {                                                         \
            BLOCK_CASE(1, VECTORS)                                                   \
            BLOCK_CASE(2, VECTORS)                                                   \
            BLOCK_CASE(3, VECTORS)                                                   \
            BLOCK_CASE(4, VECTORS)                                                   \
            BLOCK_CASE(5, VECTORS)                                                   \
            BLOCK_CASE(6, VECTORS)                                                   \
        }                                                                            \
    }

BLOCK_DEFINE(multiply_wide, BLOCK_VECTORS)
BLOCK_DEFINE(multiply_narrow, NARROW_VECTORS)

/* All rows of the columns that one block covers. */
static void multiply_strip(struct attention_dense_product product,
                           void (*run)(const struct attention_dense_product *, int)) {
    for (int left = product.rows; left > 0; left -= BLOCK_ROWS) {
        run(&product, left < BLOCK_ROWS ? left : BLOCK_ROWS);
        product.a += BLOCK_ROWS * product.a_row;
        product.out += BLOCK_ROWS * product.out_stride;
    }
}

static void multiply(const struct attention_dense_product *whole) {
    struct attention_dense_product product = *whole;
    for (int column = 0; column < whole->columns;) {
        bool wide = whole->columns - column >= BLOCK_VECTORS * LANES;
        product.b = whole->b + column;
        product.out = whole->out + column;
        multiply_strip(product, wide ? multiply_wide : multiply_narrow);
        column += wide ? BLOCK_VECTORS * LANES : 16;
    }
}

/* 8 rows × 8 columns in registers. */
static void transpose_eight(const float *in, size_t in_stride, float *out) {
    __m256 rows[TRANSPOSED], pairs[TRANSPOSED], fours[TRANSPOSED];
#pragma GCC unroll 8
    for (int r = 0; r < TRANSPOSED; r++)
        rows[r] = _mm256_loadu_ps(in + (size_t)r * in_stride);
#pragma GCC unroll 4
    for (int i = 0; i < TRANSPOSED; i += 2) {
        pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < TRANSPOSED; i += 4) {
        fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
        fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
        fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
        fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < TRANSPOSED / 2; i++) {
        _mm256_storeu_ps(out + i * ATTENTION_DENSE_TILE,
                         _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20));
        _mm256_storeu_ps(out + (i + 4) * ATTENTION_DENSE_TILE,
                         _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31));
    }
}

static void transpose(const float *in, size_t in_stride, int rows, int columns, float *out) {
    int whole = rows / TRANSPOSED * TRANSPOSED;
    for (int c = 0; c < columns; c += TRANSPOSED)
        for (int r = 0; r < whole; r += TRANSPOSED)
            transpose_eight(in + (size_t)r * in_stride + c, in_stride,
                            out + (size_t)c * ATTENTION_DENSE_TILE + r);
    for (int c = 0; c < columns && whole < ATTENTION_DENSE_TILE; c++)
        for (int r = whole; r < ATTENTION_DENSE_TILE; r++)
            out[c * ATTENTION_DENSE_TILE + r] = r < rows ? in[(size_t)r * in_stride + c] : 0;
}

static void scale(float *row, int count, float factor) {
    for (int i = 0; i < count; i += LANES)
        vector_store(row + i, vector_multiply(vector_load(row + i), vector_set(factor)));
}

static float largest(const float *row, int count) {
    VECTOR most = vector_set(-INFINITY);
    for (int i = 0; i < count; i += LANES)
        most = vector_larger(most, vector_load(row + i));
    return vector_largest(most);
}

static inline VECTOR shifted_exponential(const float *row, VECTOR shift) {
    VECTOR relative = vector_subtract(vector_load(row), shift);
    return vector_exp2(vector_multiply(relative, vector_set(MATH_LOG2E)));
}

static float shifted_exponentials(const float *row, int count, float shift, float *out) {
    VECTOR sum = vector_set(0);
    for (int i = 0; i < count; i += LANES) {
        VECTOR values = shifted_exponential(row + i, vector_set(shift));
        vector_store(out + i, values);
        sum = vector_add(sum, values);
    }
    return vector_sum(sum);
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
        for (int i = 0; i < count; i += LANES)
            vector_store(row + i, vector_set(0));
        return 1;
    }
    float factor = most > *max ? exp2_of((*max - most) * MATH_LOG2E) : 1;
    *max = most;
    *sum = *sum * factor + shifted_exponentials(row, count, most, row);
    return factor;
}

static void exponentials(float *row, int count, float log_sum) {
    for (int i = 0; i < count; i += LANES)
        vector_store(row + i, shifted_exponential(row + i, vector_set(log_sum)));
}

static void softmax_gradient(float *gradients, const float *probabilities, int count, float delta) {
    for (int i = 0; i < count; i += LANES) {
        VECTOR relative = vector_subtract(vector_load(gradients + i), vector_set(delta));
        vector_store(gradients + i, vector_multiply(vector_load(probabilities + i), relative));
    }
}

static float dot(const float *a, const float *b, int count) {
    VECTOR sum = vector_set(0);
    for (int i = 0; i < count; i += LANES)
        sum = vector_multiply_add(vector_load(a + i), vector_load(b + i), sum);
    return vector_sum(sum);
}

#endif
