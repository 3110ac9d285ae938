/* Formats as tables of (exponent bits, fraction bits); rounding on integers. */
#include "tests/ptxsim/ptx_numbers.h"

#include <math.h>

struct format {
    int exponent_bits, fraction_bits;
    bool has_infinity;
    uint32_t nan;
    int unused_bits; /* below the fraction: tf32 lives in 32 bits */
};

static struct format format_of(enum ptx_type type) {
    switch ((int)type) {
    case PTX_F16:
        return (struct format){5, 10, true, 0x7fff, 0};
    case PTX_BF16:
        return (struct format){8, 7, true, 0x7fff, 0};
    case PTX_TF32:
        return (struct format){8, 10, true, 0x3ffff, 13};
    case PTX_E4M3:
        return (struct format){4, 3, false, 0x7f, 0};
    case PTX_E5M2:
        return (struct format){5, 2, true, 0x7f, 0};
    default:
        return (struct format){8, 23, true, 0x7fffffff, 0};
    }
}

double ptx_numbers_value(enum ptx_type type, uint32_t bits) {
    const struct format f = format_of(type);
    bits >>= f.unused_bits;
    const uint32_t fraction = bits & ((1u << f.fraction_bits) - 1);
    const int top = (1 << f.exponent_bits) - 1;
    const int exponent = (int)(bits >> f.fraction_bits) & top;
    const bool negative = bits >> (f.exponent_bits + f.fraction_bits) & 1;
    const int bias = top / 2;
    double value;
    if (f.has_infinity && exponent == top)
        value = fraction ? NAN : INFINITY;
    else if (!f.has_infinity && (bits & f.nan) == f.nan)
        value = NAN;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - bias - f.fraction_bits);
    else
        value =
            ldexp(fraction + (double)(1u << f.fraction_bits), exponent - bias - f.fraction_bits);
    return negative ? -value : value;
}

static bool rounds_up(enum ptx_rounding rounding, bool negative, double rest, bool odd) {
    switch (rounding) {
    case PTX_TO_ZERO:
        return false;
    case PTX_DOWN:
        return negative && rest > 0;
    case PTX_UP:
        return !negative && rest > 0;
    case PTX_NEAREST_AWAY:
        return rest >= 0.5;
    case PTX_NEAREST:
        break;
    }
    return rest > 0.5 || (rest == 0.5 && odd);
}

/* The bits of the largest finite value, and what an overflow gives. */
static uint32_t overflow(const struct format *f, enum ptx_rounding rounding, bool negative,
                         bool saturate) {
    const uint32_t top = ((1u << f->exponent_bits) - 1) << f->fraction_bits;
    const uint32_t largest = f->has_infinity ? top - 1 : f->nan - 1;
    if (saturate || rounding == PTX_TO_ZERO || (rounding == PTX_DOWN && !negative) ||
        (rounding == PTX_UP && negative))
        return largest;
    return f->has_infinity ? top : f->nan;
}

uint32_t ptx_numbers_round(enum ptx_type type, double value, enum ptx_rounding rounding,
                           bool saturate) {
    const struct format f = format_of(type);
    if (isnan(value))
        return f.nan << f.unused_bits;
    const bool negative = signbit(value) != 0;
    const uint32_t sign = (uint32_t)negative << (f.exponent_bits + f.fraction_bits);
    const int bias = (1 << (f.exponent_bits - 1)) - 1;
    const uint32_t largest = overflow(&f, PTX_TO_ZERO, negative, true);
    value = fabs(value);
    uint32_t bits;
    if (isinf(value)) {
        bits = saturate ? largest : (f.has_infinity ? largest + 1 : f.nan);
        return (sign | bits) << f.unused_bits;
    }
    int exponent = 0;
    frexp(value, &exponent);
    if (value == 0 || exponent < 2 - bias)
        exponent = 2 - bias;
    const double scaled = ldexp(value, f.fraction_bits + 1 - exponent);
    const double whole = floor(scaled);
    uint64_t digits = (uint64_t)whole;
    digits += rounds_up(rounding, negative, scaled - whole, digits & 1);
    /* Digits carry the leading 1 of normal numbers, which adds one to the exponent field. */
    const uint64_t wide = ((uint64_t)(exponent - 2 + bias) << f.fraction_bits) + digits;
    bits = wide > largest ? overflow(&f, rounding, negative, saturate) : (uint32_t)wide;
    return (sign | bits) << f.unused_bits;
}

static double to_odd(double value, double rest) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (rest == 0 || !isfinite(value) || (bits & 1))
        return value;
    return nextafter(value, rest > 0 ? INFINITY : -INFINITY);
}

double ptx_numbers_sum(double a, double b) {
    const double sum = a + b;
    const double part = sum - a;
    const double rest = (a - (sum - part)) + (b - part);
    return to_odd(sum, isfinite(sum) ? rest : 0);
}

double ptx_numbers_quotient(double a, double b) {
    const double quotient = a / b;
    if (!isfinite(quotient) || b == 0)
        return quotient;
    const double rest = fma(-quotient, b, a);
    return to_odd(quotient, signbit(b) ? -rest : rest);
}

double ptx_numbers_root(double a) {
    const double root = sqrt(a);
    return isfinite(root) ? to_odd(root, fma(-root, root, a)) : root;
}
