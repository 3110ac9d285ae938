/* Arithmetic on f16 and bf16, single and in pairs: computed in double (rounded to odd) and rounded
 * once to the format. */
#include <float.h>
#include <math.h>

#include "tests/ptxsim/ptx_numbers.h"
#include "tests/ptxsim/ptx_opcodes.h"

typedef double operation(double a, double b, double c);

static double sum(double a, double b, double c) {
    (void)c;
    return ptx_numbers_sum(a, b);
}

static double difference(double a, double b, double c) {
    (void)c;
    return ptx_numbers_sum(a, -b);
}

static double product(double a, double b, double c) {
    (void)c;
    return a * b;
}

static double product_sum(double a, double b, double c) {
    return ptx_numbers_sum(a * b, c);
}

static double minimum(double a, double b, double c) {
    (void)c;
    return a == b && signbit(b) ? b : fmin(a, b);
}

static double maximum(double a, double b, double c) {
    (void)c;
    return a == b && signbit(a) ? b : fmax(a, b);
}

static double absolute(double a, double b, double c) {
    (void)b;
    (void)c;
    return fabs(a);
}

static double negative(double a, double b, double c) {
    (void)b;
    (void)c;
    return -a;
}

static double power(double a, double b, double c) {
    (void)b;
    (void)c;
    return exp2(a);
}

static double tangent(double a, double b, double c) {
    (void)b;
    (void)c;
    return tanh(a);
}

static double flush(enum ptx_type format, double x, bool ftz) {
    const double smallest = format == PTX_F16 ? 0x1p-14 : FLT_MIN;
    return ftz && fabs(x) < smallest ? copysign(0, x) : x;
}

static uint16_t one(const struct ptx_instruction *in, enum ptx_type format, operation *compute,
                    const uint32_t bits[3]) {
    const bool ftz = ptx_field(in, PTX_FIELD_FTZ);
    double x[3];
    for (int i = 0; i < 3; i++)
        x[i] = flush(format, ptx_numbers_value(format, bits[i]), ftz);
    double result = compute(x[0], x[1], x[2]);
    if (ptx_field(in, PTX_FIELD_SAT))
        result = result > 0 ? fmin(result, 1) : 0;
    if (ptx_field(in, PTX_FIELD_RELU) && result < 0)
        result = 0;
    const uint32_t rounded = ptx_numbers_round(format, result, PTX_NEAREST, false);
    if (!ftz)
        return (uint16_t)rounded;
    const double flushed = flush(format, ptx_numbers_value(format, rounded), true);
    return (uint16_t)ptx_numbers_round(format, flushed, PTX_NEAREST, false);
}

static bool run(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask,
                operation *compute) {
    const enum ptx_type type = (enum ptx_type)in->types[0];
    const bool pair = type == PTX_F16X2 || type == PTX_BF16X2;
    const enum ptx_type format = type == PTX_F16 || type == PTX_F16X2 ? PTX_F16 : PTX_BF16;
    PTX_EACH_LANE(mask, {
        uint32_t bits[3] = {0};
        for (int i = 1; i < in->operand_count; i++)
            bits[i - 1] = (uint32_t)ptx_machine_get(w, &in->operands[i], lane);
        const uint32_t low[3] = {bits[0] & 0xffff, bits[1] & 0xffff, bits[2] & 0xffff};
        uint32_t result = one(in, format, compute, low);
        if (pair) {
            const uint32_t high[3] = {bits[0] >> 16, bits[1] >> 16, bits[2] >> 16};
            result |= (uint32_t)one(in, format, compute, high) << 16;
        }
        ptx_machine_set(w, &in->operands[0], lane, result);
    });
    return true;
}

#define HALF(compute)                                                                \
    static bool half_##compute(struct ptx_warp *w, const struct ptx_instruction *in, \
                               uint32_t mask) {                                      \
        return run(w, in, mask, compute);                                            \
    }
HALF(sum)
HALF(difference)
HALF(product)
HALF(product_sum)
HALF(minimum)
HALF(maximum)
HALF(absolute)
HALF(negative)
HALF(power)
HALF(tangent)

enum { MAY = PTX_MAY(ROUND) | PTX_MAY(FTZ) | PTX_MAY(SAT) | PTX_MAY(RELU) };
#define ROWS(type, two, three, four, sm, new_sm)                               \
    {"add." type, three, MAY, half_sum, 0, new_sm, 0},                         \
        {"sub." type, three, MAY, half_difference, 0, new_sm, 0},              \
        {"mul." type, three, MAY, half_product, 0, new_sm, 0},                 \
        {"fma." type, four, MAY, half_product_sum, 0, sm, 0},                  \
        {"min." type, three, MAY, half_minimum, 0, 80, 0},                     \
        {"max." type, three, MAY, half_maximum, 0, 80, 0},                     \
        {"abs." type, two, MAY, half_absolute, 0, sm, 0},                      \
        {"neg." type, two, MAY, half_negative, 0, sm, 0},                      \
        {"ex2.approx." type, two, MAY, half_power, 0, sm < 75 ? 75 : 90, 0}, { \
        "tanh.approx." type, two, MAY, half_tangent, 0, sm < 75 ? 75 : 90, 0   \
    }

static const struct ptx_opcode rows[] = {
    ROWS("f16", "Hh", "Hhh", "Hhhh", 53, 53),
    ROWS("f16x2", "Rr", "Rrr", "Rrrr", 53, 53),
    ROWS("bf16", "Hh", "Hhh", "Hhhh", 80, 90),
    ROWS("bf16x2", "Rr", "Rrr", "Rrrr", 80, 90),
};

const struct ptx_opcode_list ptx_half_opcodes = {rows, PTX_COUNT(rows)};
