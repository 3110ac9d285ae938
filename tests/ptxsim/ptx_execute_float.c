/* f32 and f64 arithmetic. Plain f32 operations are the host's IEEE ones; other roundings go through
 * a double rounded to odd, rounded once more. The .approx functions are the correctly rounded
 * results of double arithmetic, so simulated results are stable, not a GPU's bits. NaN results of
 * f32 are canonical (0x7fffffff). */
#include <float.h>
#include <math.h>

#include "tests/ptxsim/ptx_numbers.h"
#include "tests/ptxsim/ptx_opcodes.h"

static inline float flush(float x, bool ftz) {
    return ftz && fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

static inline float canonical(float x) {
    return x != x ? ptx_numbers_f32(0x7fffffff) : x;
}

static float saturate(float x) {
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; /* NaN gives 0 */
}

/* The exact result (rounded to odd) to f32, as the modifiers ask. */
static float finish(const struct ptx_instruction *in, double exact) {
    const uint8_t round = ptx_field(in, PTX_FIELD_ROUND);
    const enum ptx_rounding rounding = round > 1 ? (enum ptx_rounding)(round - 1) : PTX_NEAREST;
    const float x = ptx_numbers_f32(ptx_numbers_round(PTX_F32, exact, rounding, false));
    const float flushed = flush(x, ptx_field(in, PTX_FIELD_FTZ));
    return ptx_field(in, PTX_FIELD_SAT) ? saturate(flushed) : canonical(flushed);
}

static bool is_plain(const struct ptx_instruction *in) {
    return !ptx_field(in, PTX_FIELD_FTZ) && !ptx_field(in, PTX_FIELD_SAT) &&
           ptx_field(in, PTX_FIELD_ROUND) < 2;
}

#define A flush(a[lane], ftz)
#define B flush(b[lane], ftz)
#define C flush(c[lane], ftz)

/* `fast` for plain operations on raw lanes, `exact` a double otherwise. */
#define FLOAT2(name, fast, exact)                                                           \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        float *d = ptx_operand(w, in, 0);                                                   \
        const float *a = ptx_operand(w, in, 1), *b = ptx_operand(w, in, 2);                 \
        const bool ftz = ptx_field(in, PTX_FIELD_FTZ);                                      \
        if (is_plain(in))                                                                   \
            PTX_EACH_LANE(mask, d[lane] = canonical(fast));                                 \
        else                                                                                \
            PTX_EACH_LANE(mask, d[lane] = finish(in, exact));                               \
        return true;                                                                        \
    }
FLOAT2(add_f32, a[lane] + b[lane], ptx_numbers_sum(A, B))
FLOAT2(sub_f32, a[lane] - b[lane], ptx_numbers_sum(A, -B))
FLOAT2(mul_f32, a[lane] * b[lane], (double)A *B)
FLOAT2(div_f32, a[lane] / b[lane], ptx_numbers_quotient(A, B))

static bool fma_f32(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    float *d = ptx_operand(w, in, 0);
    const float *a = ptx_operand(w, in, 1), *b = ptx_operand(w, in, 2), *c = ptx_operand(w, in, 3);
    const bool ftz = ptx_field(in, PTX_FIELD_FTZ);
    if (is_plain(in))
        PTX_EACH_LANE(mask, d[lane] = canonical(fmaf(a[lane], b[lane], c[lane])));
    else
        PTX_EACH_LANE(mask, d[lane] = finish(in, ptx_numbers_sum((double)A * B, C)));
    return true;
}

/* min and max: a NaN loses unless both are (.NaN has its own rows); -0 < +0. */
static inline float lesser(float a, float b) {
    if (a != a || b != b)
        return canonical(a != a ? b : a);
    return a < b || (a == b && signbit(a)) ? a : b;
}

static inline float greater(float a, float b) {
    return -lesser(-a, -b);
}

#define FLOAT2_SIMPLE(name, expression)                                                     \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        float *d = ptx_operand(w, in, 0);                                                   \
        const float *a = ptx_operand(w, in, 1), *b = ptx_operand(w, in, 2);                 \
        const bool ftz = ptx_field(in, PTX_FIELD_FTZ);                                      \
        PTX_EACH_LANE(mask, d[lane] = expression);                                          \
        return true;                                                                        \
    }
FLOAT2_SIMPLE(min_f32, lesser(A, B))
FLOAT2_SIMPLE(max_f32, canonical(greater(A, B)))
FLOAT2_SIMPLE(min_nan_f32, canonical(A != A || B != B ? NAN : lesser(A, B)))
FLOAT2_SIMPLE(max_nan_f32, canonical(A != A || B != B ? NAN : greater(A, B)))

#define FLOAT1(name, expression)                                                            \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        float *d = ptx_operand(w, in, 0);                                                   \
        const float *a = ptx_operand(w, in, 1);                                             \
        const bool ftz = ptx_field(in, PTX_FIELD_FTZ);                                      \
        PTX_EACH_LANE(mask, d[lane] = expression);                                          \
        return true;                                                                        \
    }
FLOAT1(abs_f32, fabsf(A))
FLOAT1(neg_f32, -A)
FLOAT1(rcp_f32, finish(in, ptx_numbers_quotient(1.0, A)))
FLOAT1(sqrt_f32, finish(in, ptx_numbers_root(A)))
FLOAT1(rsqrt_f32, finish(in, 1.0 / sqrt(A)))
FLOAT1(sin_f32, finish(in, sin(A)))
FLOAT1(cos_f32, finish(in, cos(A)))
FLOAT1(ex2_f32, finish(in, exp2(A)))
FLOAT1(lg2_f32, finish(in, log2(A)))
FLOAT1(tanh_f32, finish(in, tanh(A)))

static bool copysign_f32(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    uint32_t *d = ptx_operand(w, in, 0);
    const uint32_t *a = ptx_operand(w, in, 1), *b = ptx_operand(w, in, 2);
    PTX_EACH_LANE(mask, d[lane] = (b[lane] & 0x7fffffff) | (a[lane] & 0x80000000));
    return true;
}

/* ---- f64, nearest only ---- */
#define DOUBLE(name, expression)                                                            \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        double *d = ptx_operand(w, in, 0);                                                  \
        const double *a = ptx_operand(w, in, 1);                                            \
        const double *b = ptx_operand(w, in, in->operand_count > 2 ? 2 : 1);                \
        const double *c = ptx_operand(w, in, in->operand_count > 3 ? 3 : 1);                \
        (void)b;                                                                            \
        (void)c;                                                                            \
        PTX_EACH_LANE(mask, d[lane] = expression);                                          \
        return true;                                                                        \
    }
DOUBLE(add_f64, a[lane] + b[lane])
DOUBLE(sub_f64, a[lane] - b[lane])
DOUBLE(mul_f64, a[lane] * b[lane])
DOUBLE(div_f64, a[lane] / b[lane])
DOUBLE(fma_f64, fma(a[lane], b[lane], c[lane]))
DOUBLE(min_f64, fmin(a[lane], b[lane]))
DOUBLE(max_f64, fmax(a[lane], b[lane]))
DOUBLE(abs_f64, fabs(a[lane]))
DOUBLE(neg_f64, -a[lane])
DOUBLE(rcp_f64, 1.0 / a[lane])
DOUBLE(sqrt_f64, sqrt(a[lane]))

/* ---- comparisons ---- */
static inline bool compare(uint8_t code, double a, double b) {
    const bool unordered = a != a || b != b;
    switch (code & 15) {
    case PTX_COMPARE_NUM:
        return !unordered;
    case PTX_COMPARE_NAN:
        return unordered;
    case PTX_COMPARE_EQ:
        return unordered ? code & PTX_COMPARE_UNORDERED : a == b;
    case PTX_COMPARE_NE:
        return unordered ? code & PTX_COMPARE_UNORDERED : a != b;
    case PTX_COMPARE_LT:
        return unordered ? code & PTX_COMPARE_UNORDERED : a < b;
    case PTX_COMPARE_LE:
        return unordered ? code & PTX_COMPARE_UNORDERED : a <= b;
    case PTX_COMPARE_GT:
        return unordered ? code & PTX_COMPARE_UNORDERED : a > b;
    default:
        return unordered ? code & PTX_COMPARE_UNORDERED : a >= b;
    }
}

#define SET_FLOAT(name, type, value_a, value_b)                                             \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        const int first = in->write_count;                                                  \
        const type *a = ptx_operand(w, in, first), *b = ptx_operand(w, in, first + 1);      \
        const bool ftz = ptx_field(in, PTX_FIELD_FTZ);                                      \
        const uint8_t code = ptx_field(in, PTX_FIELD_COMPARE);                              \
        uint32_t result = 0;                                                                \
        (void)ftz;                                                                          \
        PTX_EACH_LANE(mask, result |= (uint32_t)compare(code, value_a, value_b) << lane);   \
        return ptx_machine_set_predicates(w, in, result, mask);                             \
    }
SET_FLOAT(setp_f32, float, A, B)
SET_FLOAT(setp_f64, double, a[lane], b[lane])
SET_FLOAT(setp_f16, uint16_t, ptx_numbers_f16(a[lane]), ptx_numbers_f16(b[lane]))
SET_FLOAT(setp_bf16, uint16_t, ptx_numbers_bf16(a[lane]), ptx_numbers_bf16(b[lane]))

static bool has_property(uint8_t kind, double x, double smallest) {
    switch (kind) {
    case PTX_KIND_FINITE:
        return isfinite(x);
    case PTX_KIND_INFINITE:
        return isinf(x);
    case PTX_KIND_NUMBER:
        return !isnan(x);
    case PTX_KIND_NOTANUMBER:
        return isnan(x);
    case PTX_KIND_NORMAL:
        return isfinite(x) && fabs(x) >= smallest;
    default:
        return x != 0 && fabs(x) < smallest;
    }
}

static bool testp(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const bool wide = in->types[0] == PTX_F64;
    const void *a = ptx_operand(w, in, 1);
    uint32_t result = 0;
    PTX_EACH_LANE(mask, {
        const double x = wide ? ((const double *)a)[lane] : (double)((const float *)a)[lane];
        const bool is = has_property(ptx_field(in, PTX_FIELD_KIND), x, wide ? DBL_MIN : FLT_MIN);
        result |= (uint32_t)is << lane;
    });
    ptx_set_predicate(w, &in->operands[0], result, mask);
    return true;
}

enum {
    FTZ = PTX_MAY(FTZ),
    ROUNDED = PTX_MAY(FTZ) | PTX_MAY(SAT) | PTX_MAY(ROUND),
    APPROXIMATE = PTX_MAY(FTZ) | PTX_MAY(APPROX) | PTX_MAY(ROUND),
    COMPARED = PTX_MAY(COMPARE) | PTX_MAY(OP) | PTX_MAY(FTZ),
};

static const struct ptx_opcode rows[] = {
    {"add.f32", "Rrr", ROUNDED, add_f32, 0, 0, 0},
    {"sub.f32", "Rrr", ROUNDED, sub_f32, 0, 0, 0},
    {"mul.f32", "Rrr", ROUNDED, mul_f32, 0, 0, 0},
    {"fma.f32", "Rrrr", ROUNDED, fma_f32, 0, 0, 0},
    {"mad.f32", "Rrrr", ROUNDED, fma_f32, 0, 0, 0},
    {"div.f32", "Rrr", APPROXIMATE, div_f32, 0, 0, 0},
    {"min.f32", "Rrr", FTZ, min_f32, 0, 0, 0},
    {"max.f32", "Rrr", FTZ, max_f32, 0, 0, 0},
    {"min.NaN.f32", "Rrr", FTZ, min_nan_f32, 0, 80, 0},
    {"max.NaN.f32", "Rrr", FTZ, max_nan_f32, 0, 80, 0},
    {"abs.f32", "Rr", FTZ, abs_f32, 0, 0, 0},
    {"neg.f32", "Rr", FTZ, neg_f32, 0, 0, 0},
    {"rcp.f32", "Rr", APPROXIMATE, rcp_f32, 0, 0, 0},
    {"sqrt.f32", "Rr", APPROXIMATE, sqrt_f32, 0, 0, 0},
    {"rsqrt.approx.f32", "Rr", FTZ, rsqrt_f32, 0, 0, 0},
    {"sin.approx.f32", "Rr", FTZ, sin_f32, 0, 0, 0},
    {"cos.approx.f32", "Rr", FTZ, cos_f32, 0, 0, 0},
    {"ex2.approx.f32", "Rr", FTZ, ex2_f32, 0, 0, 0},
    {"lg2.approx.f32", "Rr", FTZ, lg2_f32, 0, 0, 0},
    {"tanh.approx.f32", "Rr", 0, tanh_f32, 0, 75, 0},
    {"copysign.f32", "Rrr", 0, copysign_f32, 0, 0, 0},
    {"add.f64", "Lll", 0, add_f64, 0, 0, 0},
    {"add.rn.f64", "Lll", 0, add_f64, 0, 0, 0},
    {"sub.f64", "Lll", 0, sub_f64, 0, 0, 0},
    {"sub.rn.f64", "Lll", 0, sub_f64, 0, 0, 0},
    {"mul.f64", "Lll", 0, mul_f64, 0, 0, 0},
    {"mul.rn.f64", "Lll", 0, mul_f64, 0, 0, 0},
    {"div.rn.f64", "Lll", 0, div_f64, 0, 0, 0},
    {"fma.rn.f64", "Llll", 0, fma_f64, 0, 0, 0},
    {"min.f64", "Lll", 0, min_f64, 0, 0, 0},
    {"max.f64", "Lll", 0, max_f64, 0, 0, 0},
    {"abs.f64", "Ll", 0, abs_f64, 0, 0, 0},
    {"neg.f64", "Ll", 0, neg_f64, 0, 0, 0},
    {"rcp.rn.f64", "Ll", 0, rcp_f64, 0, 0, 0},
    {"sqrt.rn.f64", "Ll", 0, sqrt_f64, 0, 0, 0},
    {"setp.f32", "Qrr?p", COMPARED, setp_f32, 0, 0, 0},
    {"setp.f64", "Qll?p", COMPARED, setp_f64, 0, 0, 0},
    {"setp.f16", "Qhh?p", COMPARED, setp_f16, 0, 53, 0},
    {"setp.bf16", "Qhh?p", COMPARED, setp_bf16, 0, 90, 0},
    {"testp.f32", "Pr", PTX_MAY(KIND), testp, 0, 0, 0},
    {"testp.f64", "Pl", PTX_MAY(KIND), testp, 0, 0, 0},
};

const struct ptx_opcode_list ptx_float_opcodes = {rows, PTX_COUNT(rows)};
