/* The table itself, names for the ids it has not, and the half-precision conversions. Conversions
 * work on bits, so they hold in threads that flush denormals. */
#include "core/weights/quant_type.h"

#include <stdio.h>

#include "core/weights/quant_iq4.h"
#include "core/weights/quant_k.h"
#include "core/weights/quant_simple.h"

static const struct quant_type types[] = {
    {QUANT_F32, "F32", 1, 4, quant_simple_f32},
    {QUANT_F16, "F16", 1, 2, quant_simple_f16},
    {QUANT_Q4_0, "Q4_0", 32, 18, quant_simple_q4_0},
    {QUANT_Q4_1, "Q4_1", 32, 20, quant_simple_q4_1},
    {QUANT_Q5_0, "Q5_0", 32, 22, quant_simple_q5_0},
    {QUANT_Q5_1, "Q5_1", 32, 24, quant_simple_q5_1},
    {QUANT_Q8_0, "Q8_0", 32, 34, quant_simple_q8_0},
    {QUANT_Q2_K, "Q2_K", 256, 84, quant_k_q2},
    {QUANT_Q3_K, "Q3_K", 256, 110, quant_k_q3},
    {QUANT_Q4_K, "Q4_K", 256, 144, quant_k_q4},
    {QUANT_Q5_K, "Q5_K", 256, 176, quant_k_q5},
    {QUANT_Q6_K, "Q6_K", 256, 210, quant_k_q6},
    {QUANT_IQ4_NL, "IQ4_NL", 32, 18, quant_iq4_nl},
    {QUANT_IQ4_XS, "IQ4_XS", 256, 136, quant_iq4_xs},
    {QUANT_BF16, "BF16", 1, 2, quant_simple_bf16},
};

/* Ids that exist elsewhere, so that a refusal can name them. */
static const struct foreign_type {
    uint32_t id;
    const char *name;
} foreign_types[] = {
    {4, "Q4_2 (removed)"},
    {5, "Q4_3 (removed)"},
    {9, "Q8_1"},
    {15, "Q8_K"},
    {16, "IQ2_XXS"},
    {17, "IQ2_XS"},
    {18, "IQ3_XXS"},
    {19, "IQ1_S"},
    {21, "IQ3_S"},
    {22, "IQ2_S"},
    {24, "I8"},
    {25, "I16"},
    {26, "I32"},
    {27, "I64"},
    {28, "F64"},
    {29, "IQ1_M"},
    {31, "Q4_0_4_4 (removed)"},
    {32, "Q4_0_4_8 (removed)"},
    {33, "Q4_0_8_8 (removed)"},
    {34, "TQ1_0"},
    {35, "TQ2_0"},
    {36, "IQ4_NL_4_4 (removed)"},
    {37, "IQ4_NL_4_8 (removed)"},
    {38, "IQ4_NL_8_8 (removed)"},
    {39, "MXFP4"},
    {40, "NVFP4"},
    {41, "Q1_0"},
    {42, "Q2_0"},
};

enum {
    TYPE_COUNT = sizeof types / sizeof types[0],
    FOREIGN_COUNT = sizeof foreign_types / sizeof foreign_types[0]
};

const struct quant_type *quant_type_find(uint32_t gguf_id) {
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if ((uint32_t)types[i].id == gguf_id)
            return &types[i];
    return NULL;
}

const char *quant_type_foreign_name(uint32_t gguf_id, char *buffer, size_t buffer_bytes) {
    const struct quant_type *type = quant_type_find(gguf_id);
    if (type)
        return type->name;
    for (size_t i = 0; i < FOREIGN_COUNT; i++)
        if (foreign_types[i].id == gguf_id)
            return foreign_types[i].name;
    snprintf(buffer, buffer_bytes, "type %u", gguf_id);
    return buffer;
}

size_t quant_type_count(void) {
    return TYPE_COUNT;
}

const struct quant_type *quant_type_at(size_t index) {
    return index < TYPE_COUNT ? &types[index] : NULL;
}

union float_bits {
    float f;
    uint32_t u;
};

float quant_type_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 31u;
    uint32_t mantissa = half & 0x3ffu;
    union float_bits value = {.u = sign};
    if (exponent == 31) {
        value.u |= 0x7f800000u | mantissa << 13;
    } else if (exponent != 0) {
        value.u |= (exponent + 112) << 23 | mantissa << 13;
    } else if (mantissa != 0) {
        /* Denormal half: shift the leading one to where fp32 keeps its hidden bit. */
        uint32_t shift = (uint32_t)__builtin_clz(mantissa) - 21;
        value.u |= (113 - shift) << 23 | (mantissa << shift & 0x3ffu) << 13;
    }
    return value.f;
}

/* `bits` shifted right by `shift` ≥ 1, rounded to nearest even. */
static uint32_t shift_rounded(uint32_t bits, uint32_t shift) {
    uint32_t half_less_one = (1u << (shift - 1)) - 1;
    return (bits + half_less_one + (bits >> shift & 1u)) >> shift;
}

uint16_t quant_type_f32_to_f16(float value) {
    union float_bits bits = {.f = value};
    uint16_t sign = (uint16_t)(bits.u >> 16 & 0x8000u);
    uint32_t magnitude = bits.u & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu)); /* NaN stays NaN */
    if (magnitude >= 0x47800000u)
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude >=
        0x38800000u) /* a carry out of the mantissa moves up the exponent, as it should */
        return (uint16_t)(sign | shift_rounded(magnitude - 0x38000000u, 13));
    if (magnitude < 0x33000000u) /* below half of the smallest denormal */
        return sign;
    uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    return (uint16_t)(sign | shift_rounded(mantissa, 126 - (magnitude >> 23)));
}
