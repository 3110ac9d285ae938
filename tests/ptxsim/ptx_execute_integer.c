/* Integer and bit instructions. */
#include "tests/ptxsim/ptx_opcodes.h"

#define UNARY(name, result, source, expression)                                             \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        result *d = ptx_operand(w, in, 0);                                                  \
        const source *a = ptx_operand(w, in, 1);                                            \
        PTX_EACH_LANE(mask, d[lane] = (result)(expression));                                \
        return true;                                                                        \
    }
#define BINARY(name, result, source, second, expression)                                    \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        result *d = ptx_operand(w, in, 0);                                                  \
        const source *a = ptx_operand(w, in, 1);                                            \
        const second *b = ptx_operand(w, in, 2);                                            \
        PTX_EACH_LANE(mask, d[lane] = (result)(expression));                                \
        return true;                                                                        \
    }
#define TERNARY(name, result, source, third, expression)                                    \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        result *d = ptx_operand(w, in, 0);                                                  \
        const source *a = ptx_operand(w, in, 1);                                            \
        const source *b = ptx_operand(w, in, 2);                                            \
        const third *c = ptx_operand(w, in, 3);                                             \
        PTX_EACH_LANE(mask, d[lane] = (result)(expression));                                \
        return true;                                                                        \
    }

#define A a[lane]
#define B b[lane]
#define C c[lane]

/* What is the same for signed and unsigned, computed unsigned. */
#define WIDTH(bits, type, unsigned_type)                                            \
    BINARY(add##bits, type, type, type, (unsigned_type)A + (unsigned_type)B)        \
    BINARY(sub##bits, type, type, type, (unsigned_type)A - (unsigned_type)B)        \
    BINARY(mul_lo##bits, type, type, type, (unsigned_type)A *(unsigned_type)B)      \
    TERNARY(mad_lo##bits, type, type, type, (unsigned_type)A *(unsigned_type)B + C) \
    BINARY(and##bits, type, type, type, A &B)                                       \
    BINARY(or ##bits, type, type, type, A | B)                                      \
    BINARY(xor##bits, type, type, type, A ^ B)                                      \
    UNARY(not ##bits, type, type, ~A)                                               \
    UNARY(cnot##bits, type, type, A == 0)                                           \
    UNARY(neg##bits, type, type, 0 - (unsigned_type)A)                              \
    BINARY(shl##bits, type, type, uint32_t, B >= (bits) ? 0 : (unsigned_type)A << (B & 63))
WIDTH(16, uint16_t, uint32_t)
WIDTH(32, uint32_t, uint32_t)
WIDTH(64, uint64_t, uint64_t)

#define SIGNED(suffix, type, bits)                        \
    BINARY(min_##suffix, type, type, type, A < B ? A : B) \
    BINARY(max_##suffix, type, type, type, A > B ? A : B)
SIGNED(s16, int16_t, 16)
SIGNED(u16, uint16_t, 16)
SIGNED(s32, int32_t, 32)
SIGNED(u32, uint32_t, 32)
SIGNED(s64, int64_t, 64)
SIGNED(u64, uint64_t, 64)

/* Shifts, quotients and absolute values. Dividing by 0 gives all ones, as hardware does; the most
 * negative value by -1 wraps. */
#define UNSIGNED_ONLY(suffix, type, bits)                                       \
    BINARY(shr_##suffix, type, type, uint32_t, B >= (bits) ? 0 : A >> (B & 63)) \
    BINARY(div_##suffix, type, type, type, B == 0 ? (type) ~(type)0 : A / B)    \
    BINARY(rem_##suffix, type, type, type, B == 0 ? A : A % B)
UNSIGNED_ONLY(u16, uint16_t, 16)
UNSIGNED_ONLY(u32, uint32_t, 32)
UNSIGNED_ONLY(u64, uint64_t, 64)
#define SIGNED_ONLY(suffix, type, unsigned_type, bits)                            \
    BINARY(shr_##suffix, type, type, uint32_t, A >> (B >= (bits) ? (bits)-1 : B)) \
    BINARY(div_##suffix, type, type, type,                                        \
           B == 0 ? (type)-1 : (B == -1 ? (type)(0 - (unsigned_type)A) : A / B))  \
    BINARY(rem_##suffix, type, type, type, B == 0 ? A : (B == -1 ? 0 : A % B))    \
    UNARY(abs_##suffix, type, type, A < 0 ? (type)(0 - (unsigned_type)A) : A)
SIGNED_ONLY(s16, int16_t, uint16_t, 16)
SIGNED_ONLY(s32, int32_t, uint32_t, 32)
SIGNED_ONLY(s64, int64_t, uint64_t, 64)

#define WIDE(suffix, narrow, wide, bits)                                        \
    BINARY(mul_hi_##suffix, narrow, narrow, narrow, (wide)A *(wide)B >> (bits)) \
    TERNARY(mad_hi_##suffix, narrow, narrow, narrow, ((wide)A * (wide)B >> (bits)) + C)
WIDE(u16, uint16_t, uint32_t, 16)
WIDE(s16, int16_t, int32_t, 16)
WIDE(u32, uint32_t, uint64_t, 32)
WIDE(s32, int32_t, int64_t, 32)
__extension__ typedef unsigned __int128 wide_unsigned;
__extension__ typedef __int128 wide_signed;
WIDE(u64, uint64_t, wide_unsigned, 64)
WIDE(s64, int64_t, wide_signed, 64)
BINARY(mul_wide_u16, uint32_t, uint16_t, uint16_t, (uint32_t)A *B)
BINARY(mul_wide_s16, int32_t, int16_t, int16_t, A *B)
BINARY(mul_wide_u32, uint64_t, uint32_t, uint32_t, (uint64_t)A *B)
BINARY(mul_wide_s32, int64_t, int32_t, int32_t, (int64_t)A *B)
TERNARY(mad_wide_u16, uint32_t, uint16_t, uint32_t, (uint32_t)A *B + C)
TERNARY(mad_wide_s16, uint32_t, int16_t, uint32_t, (uint32_t)(A *B) + C)
TERNARY(mad_wide_u32, uint64_t, uint32_t, uint64_t, (uint64_t)A *B + C)
TERNARY(mad_wide_s32, uint64_t, int32_t, uint64_t, (uint64_t)((int64_t)A *B) + C)

static int64_t clamp32(int64_t value) {
    return value < INT32_MIN ? INT32_MIN : (value > INT32_MAX ? INT32_MAX : value);
}
BINARY(add_sat, int32_t, int32_t, int32_t, clamp32((int64_t)A + B))
BINARY(sub_sat, int32_t, int32_t, int32_t, clamp32((int64_t)A - B))
TERNARY(sad_u32, uint32_t, uint32_t, uint32_t, C + (A > B ? A - B : B - A))
TERNARY(sad_s32, uint32_t, int32_t, uint32_t,
        C + (uint32_t)(A > B ? (int64_t)A - B : (int64_t)B - A))

/* 32-bit sums with carry; subtraction adds the complement. */
static bool add_with_carry(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask,
                           uint32_t flip, uint32_t carry_in) {
    uint32_t *d = ptx_operand(w, in, 0);
    const uint32_t *a = ptx_operand(w, in, 1), *b = ptx_operand(w, in, 2);
    uint32_t carries = 0;
    PTX_EACH_LANE(mask, {
        const uint64_t sum = (uint64_t)A + (B ^ flip) + (carry_in >> lane & 1);
        d[lane] = (uint32_t)sum;
        carries |= (uint32_t)(sum >> 32) << lane;
    });
    w->carry = (w->carry & ~mask) | carries;
    return true;
}

static bool add_cc(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    return add_with_carry(w, in, mask, 0, 0);
}

static bool addc(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    return add_with_carry(w, in, mask, 0, w->carry);
}

static bool sub_cc(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    return add_with_carry(w, in, mask, ~0u, ~0u);
}

static bool subc(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    return add_with_carry(w, in, mask, ~0u, w->carry);
}

UNARY(popc32, uint32_t, uint32_t, __builtin_popcount(A))
UNARY(popc64, uint32_t, uint64_t, __builtin_popcountll(A))
UNARY(clz32, uint32_t, uint32_t, A ? __builtin_clz(A) : 32)
UNARY(clz64, uint32_t, uint64_t, A ? __builtin_clzll(A) : 64)
UNARY(bfind_u32, uint32_t, uint32_t, A ? 31 - __builtin_clz(A) : -1)
UNARY(bfind_u64, uint32_t, uint64_t, A ? 63 - __builtin_clzll(A) : -1)
UNARY(bfind_s32, uint32_t, int32_t,
      (A < 0 ? ~A : A) ? 31 - __builtin_clz((uint32_t)(A < 0 ? ~A : A)) : -1)
UNARY(bfind_shift, uint32_t, uint32_t, A ? __builtin_clz(A) : -1)

static uint64_t reverse(uint64_t value, int bits) {
    uint64_t result = 0;
    for (int i = 0; i < bits; i++)
        result |= (value >> i & 1) << (bits - 1 - i);
    return result;
}
UNARY(brev32, uint32_t, uint32_t, reverse(A, 32))
UNARY(brev64, uint64_t, uint64_t, reverse(A, 64))

/* `count` bits of `value` from `from` on; the sign bit is the last one inside the word. */
static uint64_t extract(uint64_t value, uint32_t from, uint32_t count, uint32_t width,
                        bool is_signed) {
    from &= 255;
    count &= 255;
    const uint32_t last = from + count - 1 < width - 1 ? from + count - 1 : width - 1;
    const bool sign = is_signed && count > 0 && (value >> last & 1);
    const uint64_t shifted = from < width ? value >> from : 0;
    const uint32_t kept = from < width ? (count < width - from ? count : width - from) : 0;
    const uint64_t field = kept == 0 ? 0 : shifted & (~0ull >> (64 - kept));
    return sign ? field | (kept < 64 ? ~0ull << kept : 0) : field;
}

#define EXTRACT(suffix, type, width, is_signed)                                    \
    static bool bfe_##suffix(struct ptx_warp *w, const struct ptx_instruction *in, \
                             uint32_t mask) {                                      \
        type *d = ptx_operand(w, in, 0);                                           \
        const type *a = ptx_operand(w, in, 1);                                     \
        const uint32_t *b = ptx_operand(w, in, 2), *c = ptx_operand(w, in, 3);     \
        PTX_EACH_LANE(mask, d[lane] = (type)extract(A, B, C, width, is_signed));   \
        return true;                                                               \
    }                                                                              \
    static bool bfi_##suffix(struct ptx_warp *w, const struct ptx_instruction *in, \
                             uint32_t mask) {                                      \
        type *d = ptx_operand(w, in, 0);                                           \
        const type *a = ptx_operand(w, in, 1), *b = ptx_operand(w, in, 2);         \
        const uint32_t *c = ptx_operand(w, in, 3), *n = ptx_operand(w, in, 4);     \
        PTX_EACH_LANE(mask, {                                                      \
            const uint32_t from = C & 255, count = n[lane] & 255;                  \
            const uint64_t ones = count >= 64 ? ~0ull : (1ull << count) - 1;       \
            const uint64_t field = from < width ? ones << (from & 63) : 0;         \
            const uint64_t value = from < width ? (uint64_t)A << (from & 63) : 0;  \
            d[lane] = (type)((B & ~field) | (value & field));                      \
        });                                                                        \
        return true;                                                               \
    }
EXTRACT(u32, uint32_t, 32, false)
EXTRACT(u64, uint64_t, 64, false)
#define EXTRACT_SIGNED(suffix, type, width)                                        \
    static bool bfe_##suffix(struct ptx_warp *w, const struct ptx_instruction *in, \
                             uint32_t mask) {                                      \
        type *d = ptx_operand(w, in, 0);                                           \
        const type *a = ptx_operand(w, in, 1);                                     \
        const uint32_t *b = ptx_operand(w, in, 2), *c = ptx_operand(w, in, 3);     \
        PTX_EACH_LANE(mask, d[lane] = (type)extract(A, B, C, width, true));        \
        return true;                                                               \
    }
EXTRACT_SIGNED(s32, uint32_t, 32)
EXTRACT_SIGNED(s64, uint64_t, 64)

/* Any function of three bits. */
static bool lop3(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    uint32_t *d = ptx_operand(w, in, 0);
    const uint32_t *a = ptx_operand(w, in, 1), *b = ptx_operand(w, in, 2),
                   *c = ptx_operand(w, in, 3);
    uint32_t rows[8];
    for (int row = 0; row < 8; row++)
        rows[row] = in->immediate >> row & 1 ? ~0u : 0;
    PTX_EACH_LANE(mask, {
        const uint32_t x = A, y = B, z = C;
        d[lane] = (rows[0] & ~x & ~y & ~z) | (rows[1] & ~x & ~y & z) | (rows[2] & ~x & y & ~z) |
                  (rows[3] & ~x & y & z) | (rows[4] & x & ~y & ~z) | (rows[5] & x & ~y & z) |
                  (rows[6] & x & y & ~z) | (rows[7] & x & y & z);
    });
    return true;
}

static uint32_t funnel_amount(const struct ptx_instruction *in, uint32_t amount) {
    if (ptx_field(in, PTX_FIELD_KIND) == PTX_KIND_WRAP)
        return amount & 31;
    return amount < 32 ? amount : 32;
}
TERNARY(shf_left, uint32_t, uint32_t, uint32_t,
        ((uint64_t)B << 32 | A) << funnel_amount(in, C) >> 32)
TERNARY(shf_right, uint32_t, uint32_t, uint32_t, ((uint64_t)B << 32 | A) >> funnel_amount(in, C))

static uint32_t selector_of(uint32_t kind, uint32_t c) {
    static const uint16_t tables[7][4] = {
        [PTX_KIND_F4E] = {0x3210, 0x4321, 0x5432, 0x6543},
        [PTX_KIND_B4E] = {0x5670, 0x6701, 0x7012, 0x0123},
        [PTX_KIND_RC8] = {0x0000, 0x1111, 0x2222, 0x3333},
        [PTX_KIND_ECL] = {0x3210, 0x3211, 0x3222, 0x3333},
        [PTX_KIND_ECR] = {0x0000, 0x1110, 0x2210, 0x3210},
        [PTX_KIND_RC16] = {0x1010, 0x3232, 0x1010, 0x3232},
    };
    return kind ? tables[kind][c & 3] : c;
}

static uint32_t permute(uint64_t bytes, uint32_t selector) {
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t choice = selector >> (4 * i) & 15;
        uint32_t byte = (uint32_t)(bytes >> (8 * (choice & 7))) & 255;
        if (choice & 8)
            byte = byte & 128 ? 255 : 0;
        result |= byte << (8 * i);
    }
    return result;
}
TERNARY(prmt, uint32_t, uint32_t, uint32_t,
        permute((uint64_t)B << 32 | A, selector_of(ptx_field(in, PTX_FIELD_KIND), C)))

/* Dot products of four bytes, or two halves with two bytes from `first_byte` on. */
static int64_t part(uint32_t value, int index, int bits, bool is_signed) {
    const uint32_t field = value >> (index * bits) & ((1u << bits) - 1);
    return is_signed && (field >> (bits - 1)) ? (int64_t)field - (1 << bits) : (int64_t)field;
}

static uint32_t dot(const struct ptx_instruction *in, uint32_t a, uint32_t b, uint32_t c,
                    int first_byte, int terms) {
    const bool a_signed = in->types[0] == PTX_S32, b_signed = in->types[1] == PTX_S32;
    int64_t sum = c;
    for (int i = 0; i < terms; i++)
        sum += part(a, i, terms == 4 ? 8 : 16, a_signed) * part(b, first_byte + i, 8, b_signed);
    return (uint32_t)sum;
}
TERNARY(dp4a, uint32_t, uint32_t, uint32_t, dot(in, A, B, C, 0, 4))
TERNARY(dp2a_lo, uint32_t, uint32_t, uint32_t, dot(in, A, B, C, 0, 2))
TERNARY(dp2a_hi, uint32_t, uint32_t, uint32_t, dot(in, A, B, C, 2, 2))

/* ---- predicates ---- */
#define PREDICATE(name, expression)                                                         \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        const uint32_t a = ptx_predicate(w, &in->operands[1]);                              \
        const uint32_t b = ptx_predicate(w, &in->operands[in->operand_count - 1]);          \
        (void)b;                                                                            \
        ptx_set_predicate(w, &in->operands[0], expression, mask);                           \
        return true;                                                                        \
    }
PREDICATE(and_pred, a &b)
PREDICATE(or_pred, a | b)
PREDICATE(xor_pred, a ^ b)
PREDICATE(not_pred, ~a)

/* setp: the comparison is one switch outside the lanes' loop. */
#define COMPARE(op)                                            \
    PTX_EACH_LANE(mask, result |= (uint32_t)(A op B) << lane); \
    break;
#define SET_PREDICATE(name, type)                                                           \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        const bool pair = in->write_count == 2;                                             \
        const type *a = ptx_operand(w, in, pair + 1), *b = ptx_operand(w, in, pair + 2);    \
        uint32_t result = 0;                                                                \
        switch (ptx_field(in, PTX_FIELD_COMPARE)) {                                         \
        case PTX_COMPARE_EQ:                                                                \
            COMPARE(==)                                                                     \
        case PTX_COMPARE_NE:                                                                \
            COMPARE(!=)                                                                     \
        case PTX_COMPARE_LT:                                                                \
            COMPARE(<)                                                                      \
        case PTX_COMPARE_LE:                                                                \
            COMPARE(<=)                                                                     \
        case PTX_COMPARE_GT:                                                                \
            COMPARE(>)                                                                      \
        default:                                                                            \
            COMPARE(>=)                                                                     \
        }                                                                                   \
        return ptx_machine_set_predicates(w, in, result, mask);                             \
    }
SET_PREDICATE(setp_u16, uint16_t)
SET_PREDICATE(setp_s16, int16_t)
SET_PREDICATE(setp_u32, uint32_t)
SET_PREDICATE(setp_s32, int32_t)
SET_PREDICATE(setp_u64, uint64_t)
SET_PREDICATE(setp_s64, int64_t)

#define WIDTH_ROWS(type, letter, bits)                                                            \
    {"add." type, letter, 0, add##bits, 0, 0, 0}, {"sub." type, letter, 0, sub##bits, 0, 0, 0}, { \
        "mul.lo." type, letter, 0, mul_lo##bits, 0, 0, 0                                          \
    }
#define SIGN_ROWS(type, letters, suffix)                     \
    {"min." type, letters, 0, min_##suffix, 0, 0, 0},        \
        {"max." type, letters, 0, max_##suffix, 0, 0, 0},    \
        {"div." type, letters, 0, div_##suffix, 0, 0, 0},    \
        {"rem." type, letters, 0, rem_##suffix, 0, 0, 0}, {  \
        "mul.hi." type, letters, 0, mul_hi_##suffix, 0, 0, 0 \
    }
#define BIT_ROWS(type, three, two, shift, bits)                                                  \
    {"and." type, three, 0, and##bits, 0, 0, 0}, {"or." type, three, 0, or ##bits, 0, 0, 0},     \
        {"xor." type, three, 0, xor##bits, 0, 0, 0}, {"not." type, two, 0, not ##bits, 0, 0, 0}, \
        {"cnot." type, two, 0, cnot##bits, 0, 0, 0}, {                                           \
        "shl." type, shift, 0, shl##bits, 0, 0, 0                                                \
    }
#define SETP_ROWS(type, letters, suffix) \
    { "setp." type, letters, PTX_MAY(COMPARE) | PTX_MAY(OP), setp_##suffix, 0, 0, 0 }

static const struct ptx_opcode rows[] = {
    WIDTH_ROWS("u16", "Hhh", 16),
    WIDTH_ROWS("s16", "Hhh", 16),
    WIDTH_ROWS("u32", "Rrr", 32),
    WIDTH_ROWS("s32", "Rrr", 32),
    WIDTH_ROWS("u64", "Lll", 64),
    WIDTH_ROWS("s64", "Lll", 64),
    SIGN_ROWS("u16", "Hhh", u16),
    SIGN_ROWS("s16", "Hhh", s16),
    SIGN_ROWS("u32", "Rrr", u32),
    SIGN_ROWS("s32", "Rrr", s32),
    SIGN_ROWS("u64", "Lll", u64),
    SIGN_ROWS("s64", "Lll", s64),
    BIT_ROWS("b16", "Hhh", "Hh", "Hhr", 16),
    BIT_ROWS("b32", "Rrr", "Rr", "Rrr", 32),
    BIT_ROWS("b64", "Lll", "Ll", "Llr", 64),
    {"shr.u16", "Hhr", 0, shr_u16, 0, 0, 0},
    {"shr.b16", "Hhr", 0, shr_u16, 0, 0, 0},
    {"shr.s16", "Hhr", 0, shr_s16, 0, 0, 0},
    {"shr.u32", "Rrr", 0, shr_u32, 0, 0, 0},
    {"shr.b32", "Rrr", 0, shr_u32, 0, 0, 0},
    {"shr.s32", "Rrr", 0, shr_s32, 0, 0, 0},
    {"shr.u64", "Llr", 0, shr_u64, 0, 0, 0},
    {"shr.b64", "Llr", 0, shr_u64, 0, 0, 0},
    {"shr.s64", "Llr", 0, shr_s64, 0, 0, 0},
    {"abs.s16", "Hh", 0, abs_s16, 0, 0, 0},
    {"abs.s32", "Rr", 0, abs_s32, 0, 0, 0},
    {"abs.s64", "Ll", 0, abs_s64, 0, 0, 0},
    {"neg.s16", "Hh", 0, neg16, 0, 0, 0},
    {"neg.s32", "Rr", 0, neg32, 0, 0, 0},
    {"neg.s64", "Ll", 0, neg64, 0, 0, 0},
    {"mul.wide.u16", "Rhh", 0, mul_wide_u16, 0, 0, 0},
    {"mul.wide.s16", "Rhh", 0, mul_wide_s16, 0, 0, 0},
    {"mul.wide.u32", "Lrr", 0, mul_wide_u32, 0, 0, 0},
    {"mul.wide.s32", "Lrr", 0, mul_wide_s32, 0, 0, 0},
    {"mad.lo.u16", "Hhhh", 0, mad_lo16, 0, 0, 0},
    {"mad.lo.s16", "Hhhh", 0, mad_lo16, 0, 0, 0},
    {"mad.lo.u32", "Rrrr", 0, mad_lo32, 0, 0, 0},
    {"mad.lo.s32", "Rrrr", 0, mad_lo32, 0, 0, 0},
    {"mad.lo.u64", "Llll", 0, mad_lo64, 0, 0, 0},
    {"mad.lo.s64", "Llll", 0, mad_lo64, 0, 0, 0},
    {"mad.hi.u16", "Hhhh", 0, mad_hi_u16, 0, 0, 0},
    {"mad.hi.s16", "Hhhh", 0, mad_hi_s16, 0, 0, 0},
    {"mad.hi.u32", "Rrrr", 0, mad_hi_u32, 0, 0, 0},
    {"mad.hi.s32", "Rrrr", 0, mad_hi_s32, 0, 0, 0},
    {"mad.hi.u64", "Llll", 0, mad_hi_u64, 0, 0, 0},
    {"mad.hi.s64", "Llll", 0, mad_hi_s64, 0, 0, 0},
    {"mad.wide.u16", "Rhhr", 0, mad_wide_u16, 0, 0, 0},
    {"mad.wide.s16", "Rhhr", 0, mad_wide_s16, 0, 0, 0},
    {"mad.wide.u32", "Lrrl", 0, mad_wide_u32, 0, 0, 0},
    {"mad.wide.s32", "Lrrl", 0, mad_wide_s32, 0, 0, 0},
    {"add.sat.s32", "Rrr", 0, add_sat, 0, 0, 0},
    {"sub.sat.s32", "Rrr", 0, sub_sat, 0, 0, 0},
    {"sad.u32", "Rrrr", 0, sad_u32, 0, 0, 0},
    {"sad.s32", "Rrrr", 0, sad_s32, 0, 0, 0},
    {"add.cc.u32", "Rrr", 0, add_cc, 0, 0, 0},
    {"add.cc.s32", "Rrr", 0, add_cc, 0, 0, 0},
    {"addc.u32", "Rrr", 0, addc, 0, 0, 0},
    {"addc.s32", "Rrr", 0, addc, 0, 0, 0},
    {"addc.cc.u32", "Rrr", 0, addc, 0, 0, 0},
    {"addc.cc.s32", "Rrr", 0, addc, 0, 0, 0},
    {"sub.cc.u32", "Rrr", 0, sub_cc, 0, 0, 0},
    {"sub.cc.s32", "Rrr", 0, sub_cc, 0, 0, 0},
    {"subc.u32", "Rrr", 0, subc, 0, 0, 0},
    {"subc.cc.u32", "Rrr", 0, subc, 0, 0, 0},
    {"popc.b32", "Rr", 0, popc32, 0, 0, 0},
    {"popc.b64", "Rl", 0, popc64, 0, 0, 0},
    {"clz.b32", "Rr", 0, clz32, 0, 0, 0},
    {"clz.b64", "Rl", 0, clz64, 0, 0, 0},
    {"bfind.u32", "Rr", 0, bfind_u32, 0, 0, 0},
    {"bfind.s32", "Rr", 0, bfind_s32, 0, 0, 0},
    {"bfind.u64", "Rl", 0, bfind_u64, 0, 0, 0},
    {"bfind.shiftamt.u32", "Rr", 0, bfind_shift, 0, 0, 0},
    {"brev.b32", "Rr", 0, brev32, 0, 0, 0},
    {"brev.b64", "Ll", 0, brev64, 0, 0, 0},
    {"bfe.u32", "Rrrr", 0, bfe_u32, 0, 0, 0},
    {"bfe.s32", "Rrrr", 0, bfe_s32, 0, 0, 0},
    {"bfe.u64", "Llrr", 0, bfe_u64, 0, 0, 0},
    {"bfe.s64", "Llrr", 0, bfe_s64, 0, 0, 0},
    {"bfi.b32", "Rrrrr", 0, bfi_u32, 0, 0, 0},
    {"bfi.b64", "Lllrr", 0, bfi_u64, 0, 0, 0},
    {"lop3.b32", "Rrrri", 0, lop3, 0, 50, 0},
    {"shf.l.b32", "Rrrr", PTX_MAY(KIND), shf_left, 0, 0, 0},
    {"shf.r.b32", "Rrrr", PTX_MAY(KIND), shf_right, 0, 0, 0},
    {"prmt.b32", "Rrrr", PTX_MAY(KIND), prmt, 0, 0, 0},
    {"dp4a", "Rrrr", PTX_MAY(TYPE), dp4a, 0, 61, 0},
    {"dp2a.lo", "Rrrr", PTX_MAY(TYPE), dp2a_lo, 0, 61, 0},
    {"dp2a.hi", "Rrrr", PTX_MAY(TYPE), dp2a_hi, 0, 61, 0},
    {"and.pred", "Ppp", 0, and_pred, 0, 0, 0},
    {"or.pred", "Ppp", 0, or_pred, 0, 0, 0},
    {"xor.pred", "Ppp", 0, xor_pred, 0, 0, 0},
    {"not.pred", "Pp", 0, not_pred, 0, 0, 0},
    SETP_ROWS("b16", "Qhh?p", u16),
    SETP_ROWS("u16", "Qhh?p", u16),
    SETP_ROWS("s16", "Qhh?p", s16),
    SETP_ROWS("b32", "Qrr?p", u32),
    SETP_ROWS("u32", "Qrr?p", u32),
    SETP_ROWS("s32", "Qrr?p", s32),
    SETP_ROWS("b64", "Qll?p", u64),
    SETP_ROWS("u64", "Qll?p", u64),
    SETP_ROWS("s64", "Qll?p", s64),
};

const struct ptx_opcode_list ptx_integer_opcodes = {rows, PTX_COUNT(rows)};
