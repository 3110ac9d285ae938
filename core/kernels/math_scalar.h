/* exp2, exp and tanh for one float: the specification of the vector versions. NaN goes through. */
#ifndef CORE_KERNELS_MATH_SCALAR_H
#define CORE_KERNELS_MATH_SCALAR_H

#include <stdint.h>

#include "core/kernels/math_constants.h"

/* value × 2^n, n being the low bits of a float that MATH_ROUND_MAGIC was added to. */
static inline float math_scale(float value, float rounded) {
    union {
        float f;
        uint32_t u;
    } bits = {.f = value}, count = {.f = rounded};
    bits.u += count.u << 23;
    return bits.f;
}

static inline float math_exp2(float x) {
    x = x < MATH_EXP2_MIN ? MATH_EXP2_MIN : x;
    x = x > MATH_EXP2_MAX ? MATH_EXP2_MAX : x;
    float rounded = x + MATH_ROUND_MAGIC;
    float f = x - (rounded - MATH_ROUND_MAGIC);
    float p = MATH_EXP2_A5;
    p = p * f + MATH_EXP2_A4;
    p = p * f + MATH_EXP2_A3;
    p = p * f + MATH_EXP2_A2;
    p = p * f + MATH_EXP2_A1;
    p = p * f + 1.0f;
    return math_scale(p, rounded);
}

static inline float math_exp(float x) {
    x = x < MATH_EXP_MIN ? MATH_EXP_MIN : x;
    x = x > MATH_EXP_MAX ? MATH_EXP_MAX : x;
    float rounded = x * MATH_LOG2E + MATH_ROUND_MAGIC;
    float n = rounded - MATH_ROUND_MAGIC;
    float r = (x - n * MATH_LN2_HIGH) - n * MATH_LN2_LOW;
    float p = MATH_EXP_B6;
    p = p * r + MATH_EXP_B5;
    p = p * r + MATH_EXP_B4;
    p = p * r + MATH_EXP_B3;
    p = p * r + MATH_EXP_B2;
    p = p * (r * r) + r;
    return math_scale(p + 1.0f, rounded);
}

static inline float math_tanh(float x) {
    float size = x < 0 ? -x : x;
    if (size <= MATH_TANH_SMALL) {
        float z = x * x;
        float p = MATH_TANH_C4;
        p = p * z + MATH_TANH_C3;
        p = p * z + MATH_TANH_C2;
        p = p * z + MATH_TANH_C1;
        return x + x * (z * p);
    }
    float y = 1.0f - 2.0f / (math_exp(2 * size) + 1.0f);
    return x < 0 ? -y : y;
}

#endif
