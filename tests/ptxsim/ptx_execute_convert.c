/* cvt between all integer and float types. Integers go through int64, floats through double, which
 * holds every f32 and smaller value exactly; s64/u64 to f32 rounds once from the integer. */
#include <float.h>
#include <math.h>

#include "tests/ptxsim/ptx_numbers.h"
#include "tests/ptxsim/ptx_opcodes.h"

static enum ptx_rounding rounding_of(const struct ptx_instruction *in) {
    const uint8_t round = ptx_field(in, PTX_FIELD_ROUND);
    return round == 0 ? PTX_NEAREST : (enum ptx_rounding)(((round - 1) & 7));
}

static uint64_t low_bits(uint64_t value, uint32_t bytes) {
    return bytes >= 8 ? value : value & ((1ull << (bytes * 8)) - 1);
}

static int64_t sign_extend(uint64_t value, uint32_t bytes) {
    const int shift = 64 - (int)bytes * 8;
    return (int64_t)(value << shift) >> shift;
}

static double float_value(enum ptx_type type, uint64_t bits) {
    if (type == PTX_F64) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    return ptx_numbers_value(type, (uint32_t)low_bits(bits, ptx_types_bytes(type)));
}

static double to_integral(double value, enum ptx_rounding rounding) {
    switch (rounding) {
    case PTX_TO_ZERO:
        return trunc(value);
    case PTX_DOWN:
        return floor(value);
    case PTX_UP:
        return ceil(value);
    case PTX_NEAREST:
    case PTX_NEAREST_AWAY:
        break;
    }
    return nearbyint(value);
}

/* NaN gives 0 (the most negative value, or all ones, for 64 bits); the rest is clamped. */
static uint64_t float_to_integer(double value, enum ptx_type to, enum ptx_rounding rounding) {
    const bool is_signed = ptx_types_signed(to);
    const int bits = (int)ptx_types_bytes(to) * 8;
    if (isnan(value))
        return bits == 64 ? 1ull << 63 : 0;
    value = to_integral(value, rounding);
    if (is_signed) {
        const double limit = ldexp(1, bits - 1);
        if (value >= limit)
            return (1ull << (bits - 1)) - 1;
        return value < -limit ? 1ull << (bits - 1) : (uint64_t)(int64_t)value;
    }
    if (value >= ldexp(1, bits))
        return low_bits(~0ull, (uint32_t)bits / 8);
    return value <= 0 ? 0 : (uint64_t)value;
}

/* Saturation of integers narrows to the range of the target. */
static uint64_t integer_to_integer(uint64_t bits, enum ptx_type from, enum ptx_type to, bool sat) {
    const uint32_t from_bytes = ptx_types_bytes(from), to_bytes = ptx_types_bytes(to);
    const bool from_signed = ptx_types_signed(from), to_signed = ptx_types_signed(to);
    const uint64_t value =
        from_signed ? (uint64_t)sign_extend(bits, from_bytes) : low_bits(bits, from_bytes);
    if (!sat)
        return value;
    const bool negative = from_signed && (int64_t)value < 0;
    const uint64_t largest =
        to_signed ? (1ull << (to_bytes * 8 - 1)) - 1 : low_bits(~0ull, to_bytes);
    if (negative && !to_signed)
        return 0;
    if (negative)
        return (int64_t)value < -(int64_t)largest - 1 ? ~largest : value;
    return value > largest ? largest : value;
}

static uint64_t round_to_float(const struct ptx_instruction *in, double value, enum ptx_type to) {
    const uint8_t sat = ptx_field(in, PTX_FIELD_SAT);
    if (sat == PTX_SAT_PLAIN)
        value = value > 0 ? fmin(value, 1) : 0;
    if (ptx_field(in, PTX_FIELD_RELU) && !(value > 0) && !isnan(value))
        value = 0;
    if (to == PTX_F64) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    uint32_t bits = ptx_numbers_round(to, value, rounding_of(in), sat == PTX_SAT_FINITE);
    if (ptx_field(in, PTX_FIELD_FTZ) && to == PTX_F32 && (bits & 0x7f800000) == 0)
        bits &= 0x80000000;
    return bits;
}

/* Odd-rounded double of a 64-bit integer. */
static double integer_value(uint64_t bits, enum ptx_type from) {
    const uint32_t bytes = ptx_types_bytes(from);
    if (ptx_types_signed(from)) {
        const int64_t value = sign_extend(bits, bytes);
        const double high = (double)(value >> 32) * 0x1p32;
        return ptx_numbers_sum(high, (double)(value & 0xffffffff));
    }
    const uint64_t value = low_bits(bits, bytes);
    return ptx_numbers_sum((double)(value >> 32) * 0x1p32, (double)(value & 0xffffffff));
}

static uint64_t convert(const struct ptx_instruction *in, uint64_t bits, enum ptx_type from,
                        enum ptx_type to) {
    const bool sat = ptx_field(in, PTX_FIELD_SAT);
    if (ptx_types_integer(from)) {
        if (ptx_types_integer(to))
            return integer_to_integer(bits, from, to, sat);
        double value = integer_value(bits, from);
        if (to == PTX_F64) /* nearest, where the odd rounding above was not */
            value = ptx_types_signed(from) ? (double)sign_extend(bits, ptx_types_bytes(from))
                                           : (double)low_bits(bits, ptx_types_bytes(from));
        return round_to_float(in, value, to);
    }
    double value = float_value(from, bits);
    if (ptx_field(in, PTX_FIELD_FTZ) && from == PTX_F32 && fabs(value) < FLT_MIN)
        value = copysign(0, value);
    if (ptx_types_integer(to))
        return float_to_integer(value, to, rounding_of(in));
    if (ptx_field(in, PTX_FIELD_ROUND) > PTX_ROUND_INTEGER)
        value = to_integral(value, rounding_of(in));
    return round_to_float(in, value, to);
}

/* A narrower result fills a wider register by its type's sign. */
static void put(struct ptx_warp *w, const struct ptx_instruction *in, int lane, uint64_t bits,
                enum ptx_type to) {
    const uint32_t bytes = ptx_types_bytes(to);
    const uint64_t value =
        ptx_types_signed(to) ? (uint64_t)sign_extend(bits, bytes) : low_bits(bits, bytes);
    ptx_machine_set(w, &in->operands[0], lane, value);
}

static bool cvt(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const enum ptx_type to = (enum ptx_type)in->types[0], from = (enum ptx_type)in->types[1];
    PTX_EACH_LANE(mask, {
        const uint64_t bits = ptx_machine_get(w, &in->operands[1], lane);
        put(w, in, lane, convert(in, bits, from, to), to);
    });
    return true;
}

/* The frequent ones, where the registers have the width of the types. */
#define DIRECT(name, result, source, expression)                                                \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {     \
        if (in->operands[0].bytes != sizeof(result) || in->operands[1].bytes != sizeof(source)) \
            return cvt(w, in, mask);                                                            \
        result *d = ptx_operand(w, in, 0);                                                      \
        const source *a = ptx_operand(w, in, 1);                                                \
        PTX_EACH_LANE(mask, d[lane] = expression);                                              \
        return true;                                                                            \
    }
DIRECT(u64_from_u32, uint64_t, uint32_t, a[lane])
DIRECT(s64_from_s32, int64_t, int32_t, a[lane])
DIRECT(u32_from_u64, uint32_t, uint64_t, (uint32_t)a[lane])
DIRECT(u32_from_u16, uint32_t, uint16_t, a[lane])
DIRECT(u16_from_u32, uint16_t, uint32_t, (uint16_t)a[lane])
DIRECT(f32_from_f16, float, uint16_t, ptx_numbers_f16(a[lane]))
DIRECT(f32_from_s32, float, int32_t, (float)a[lane])
DIRECT(f32_from_bf16, float, uint16_t, ptx_numbers_bf16(a[lane]))

/* Element types of packed formats. */
static enum ptx_type element(enum ptx_type pair) {
    switch ((int)pair) {
    case PTX_F16X2:
        return PTX_F16;
    case PTX_BF16X2:
        return PTX_BF16;
    case PTX_E4M3X2:
        return PTX_E4M3;
    default:
        return PTX_E5M2;
    }
}

/* d = {high: a, low: b} from two f32. */
static bool pack_floats(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const enum ptx_type to = element((enum ptx_type)in->types[0]);
    const int bits = (int)ptx_types_bytes(to) * 8;
    const float *a = ptx_operand(w, in, 1), *b = ptx_operand(w, in, 2);
    PTX_EACH_LANE(mask, {
        const uint64_t high = round_to_float(in, (double)a[lane], to);
        const uint64_t low = round_to_float(in, (double)b[lane], to);
        ptx_machine_set(w, &in->operands[0], lane, high << bits | low);
    });
    return true;
}

/* Pairs to pairs: fp8 from and to f16. */
static bool repack(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const enum ptx_type to = element((enum ptx_type)in->types[0]);
    const enum ptx_type from = element((enum ptx_type)in->types[1]);
    const int to_bits = (int)ptx_types_bytes(to) * 8, from_bits = (int)ptx_types_bytes(from) * 8;
    PTX_EACH_LANE(mask, {
        const uint64_t pair = ptx_machine_get(w, &in->operands[1], lane);
        const uint64_t low = round_to_float(in, float_value(from, pair), to);
        const uint64_t high = round_to_float(in, float_value(from, pair >> from_bits), to);
        ptx_machine_set(w, &in->operands[0], lane, high << to_bits | low);
    });
    return true;
}

enum {
    ANY = PTX_MAY(ROUND) | PTX_MAY(FTZ) | PTX_MAY(SAT) | PTX_MAY(RELU),
};
#define PAIR(to, from) \
    { "cvt." to "." from, "Xx", ANY, cvt, 0, 0, 0 }
#define ALL_FROM(to)                                                                         \
    PAIR(to, "u8"), PAIR(to, "s8"), PAIR(to, "u16"), PAIR(to, "s16"), PAIR(to, "u32"),       \
        PAIR(to, "s32"), PAIR(to, "u64"), PAIR(to, "s64"), PAIR(to, "f16"), PAIR(to, "f32"), \
        PAIR(to, "f64"), {                                                                   \
        "cvt." to ".bf16", "Xx", ANY, cvt, 0, 80, 0                                          \
    }

static const struct ptx_opcode rows[] = {
    {"cvt.u64.u32", "Xx", 0, u64_from_u32, 0, 0, 0},
    {"cvt.s64.s32", "Xx", 0, s64_from_s32, 0, 0, 0},
    {"cvt.u32.u64", "Xx", 0, u32_from_u64, 0, 0, 0},
    {"cvt.u32.u16", "Xx", 0, u32_from_u16, 0, 0, 0},
    {"cvt.u16.u32", "Xx", 0, u16_from_u32, 0, 0, 0},
    {"cvt.f32.f16", "Xx", 0, f32_from_f16, 0, 0, 0},
    {"cvt.rn.f32.s32", "Xx", 0, f32_from_s32, 0, 0, 0},
    {"cvt.f32.bf16", "Xx", 0, f32_from_bf16, 0, 90, 0},
    ALL_FROM("u8"),
    ALL_FROM("s8"),
    ALL_FROM("u16"),
    ALL_FROM("s16"),
    ALL_FROM("u32"),
    ALL_FROM("s32"),
    ALL_FROM("u64"),
    ALL_FROM("s64"),
    ALL_FROM("f16"),
    ALL_FROM("f32"),
    ALL_FROM("f64"),
    {"cvt.bf16.f32", "Hr", ANY, cvt, 0, 80, 0},
    {"cvt.bf16.f16", "Hh", ANY, cvt, 0, 90, 0},
    {"cvt.tf32.f32", "Rr", ANY, cvt, 0, 80, 0},
    {"cvt.f16x2.f32", "Rrr", ANY, pack_floats, 0, 80, 0},
    {"cvt.bf16x2.f32", "Rrr", ANY, pack_floats, 0, 80, 0},
    {"cvt.e4m3x2.f32", "Hrr", ANY, pack_floats, 0, 89, 0},
    {"cvt.e5m2x2.f32", "Hrr", ANY, pack_floats, 0, 89, 0},
    {"cvt.e4m3x2.f16x2", "Hr", ANY, repack, 0, 89, 0},
    {"cvt.e5m2x2.f16x2", "Hr", ANY, repack, 0, 89, 0},
    {"cvt.f16x2.e4m3x2", "Rh", ANY, repack, 0, 89, 0},
    {"cvt.f16x2.e5m2x2", "Rh", ANY, repack, 0, 89, 0},
};

const struct ptx_opcode_list ptx_convert_opcodes = {rows, PTX_COUNT(rows)};
