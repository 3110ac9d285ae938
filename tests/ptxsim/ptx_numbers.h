/* Small float formats, and rounding of exact values in any direction. */
#ifndef TESTS_PTXSIM_PTX_NUMBERS_H
#define TESTS_PTXSIM_PTX_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/ptxsim/ptx_types.h"

enum ptx_rounding { PTX_NEAREST, PTX_TO_ZERO, PTX_DOWN, PTX_UP, PTX_NEAREST_AWAY };

/* The value of a format's bits. Formats: f16, bf16, f32, tf32, e4m3, e5m2. */
double ptx_numbers_value(enum ptx_type format, uint32_t bits);

/* Round to a format. `saturate` clamps to the largest finite value (satfinite). NaN is canonical.
 */
uint32_t ptx_numbers_round(enum ptx_type format, double value, enum ptx_rounding rounding,
                           bool saturate);

/* a + b and a / b, square root, a * b + c, rounded to odd in double: rounding that once more to
 * any format of at most 50 bits is the correct rounding of the exact result. The product of two
 * floats is exact in double. */
double ptx_numbers_sum(double a, double b);
double ptx_numbers_quotient(double a, double b);
double ptx_numbers_root(double a);

static inline float ptx_numbers_f32(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t ptx_numbers_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Branch-free, for the loops of matrix products. */
static inline float ptx_numbers_f16(uint16_t half) {
    const uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
    const float scaled = ptx_numbers_f32(magnitude) * 0x1p112f; /* also right for subnormals */
    const uint32_t special = (half & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    return ptx_numbers_f32(ptx_numbers_bits(scaled) | special | sign);
}

static inline float ptx_numbers_bf16(uint16_t bits) {
    return ptx_numbers_f32((uint32_t)bits << 16);
}

#endif
