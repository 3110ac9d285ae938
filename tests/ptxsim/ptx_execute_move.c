/* mov, selections, and the address conversions between state spaces. */
#include "tests/ptxsim/ptx_opcodes.h"

#define COPY(name, type)                                                                    \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        type *d = ptx_operand(w, in, 0);                                                    \
        const type *a = ptx_operand(w, in, 1);                                              \
        PTX_EACH_LANE(mask, d[lane] = a[lane]);                                             \
        return true;                                                                        \
    }                                                                                       \
    static bool name##_select(struct ptx_warp *w, const struct ptx_instruction *in,         \
                              uint32_t mask) {                                              \
        type *d = ptx_operand(w, in, 0);                                                    \
        const type *a = ptx_operand(w, in, 1), *b = ptx_operand(w, in, 2);                  \
        const uint32_t p = ptx_predicate(w, &in->operands[3]);                              \
        PTX_EACH_LANE(mask, d[lane] = p >> lane & 1 ? a[lane] : b[lane]);                   \
        return true;                                                                        \
    }
COPY(copy16, uint16_t)
COPY(copy32, uint32_t)
COPY(copy64, uint64_t)

static bool copy_predicate(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    ptx_set_predicate(w, &in->operands[0], ptx_predicate(w, &in->operands[1]), mask);
    return true;
}

/* Several registers to one, or one to several; the first is the lowest. */
static bool copy_vector(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    PTX_EACH_LANE(mask, {
        uint64_t bits = 0;
        int shift = 0;
        for (int i = in->write_count; i < in->operand_count; i++) {
            bits |= ptx_machine_get(w, &in->operands[i], lane) << shift;
            shift += in->operands[i].bytes * 8;
        }
        for (int i = 0; i < in->write_count; i++) {
            ptx_machine_set(w, &in->operands[i], lane, bits);
            bits = in->operands[i].bytes == 8 ? 0 : bits >> (in->operands[i].bytes * 8);
        }
    });
    return true;
}

static bool mov(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    if (in->operand_count > 2)
        return copy_vector(w, in, mask);
    switch (in->operands[0].bytes) {
    case 2:
        return copy16(w, in, mask);
    case 4:
        return copy32(w, in, mask);
    default:
        return copy64(w, in, mask);
    }
}

/* slct: a where c ≥ 0, else b. */
static bool slct(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const bool is_float = in->types[1] == PTX_F32;
    PTX_EACH_LANE(mask, {
        const void *c = ptx_operand(w, in, 3);
        const bool first =
            is_float ? ((const float *)c)[lane] >= 0 : ((const int32_t *)c)[lane] >= 0;
        ptx_machine_set(w, &in->operands[0], lane,
                        ptx_machine_get(w, &in->operands[first ? 1 : 2], lane));
    });
    return true;
}

static uint64_t window(const struct ptx_instruction *in) {
    switch (ptx_field(in, PTX_FIELD_SPACE)) {
    case PTX_SHARED:
        return PTX_WINDOW_SHARED;
    case PTX_LOCAL:
        return PTX_WINDOW_LOCAL;
    case PTX_PARAM:
        return PTX_WINDOW_PARAM;
    default:
        return 0;
    }
}

static bool to_generic(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    PTX_EACH_LANE(mask, ptx_machine_set(w, &in->operands[0], lane,
                                        ptx_machine_get(w, &in->operands[1], lane) + window(in)));
    return true;
}

static bool from_generic(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    PTX_EACH_LANE(mask, ptx_machine_set(w, &in->operands[0], lane,
                                        ptx_machine_get(w, &in->operands[1], lane) - window(in)));
    return true;
}

static bool isspacep(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const uint64_t base = window(in);
    uint32_t result = 0;
    PTX_EACH_LANE(mask, {
        const uint64_t address = ptx_machine_get(w, &in->operands[1], lane);
        const bool is = base ? address - base < PTX_WINDOW_BYTES : address < PTX_WINDOW_PARAM;
        result |= (uint32_t)is << lane;
    });
    ptx_set_predicate(w, &in->operands[0], result, mask);
    return true;
}

#define MOV(type, letters) \
    { "mov." type, letters, 0, mov, 0, 0, true }
#define SELP(type, letters, run) \
    { "selp." type, letters, 0, run##_select, 0, 0, true }
#define CVTA(type)                                                    \
    {"cvta.to." type, "Xx", PTX_MAY(SPACE), from_generic, 0, 0, 0}, { \
        "cvta." type, "Xx", PTX_MAY(SPACE), to_generic, 0, 0, 0       \
    }

static const struct ptx_opcode rows[] = {
    MOV("b16", "Mm"),
    MOV("u16", "Mm"),
    MOV("s16", "Mm"),
    MOV("f16", "Mm"),
    MOV("bf16", "Mm"),
    MOV("b32", "Mm"),
    MOV("u32", "Mm"),
    MOV("s32", "Mm"),
    MOV("f32", "Mm"),
    MOV("b64", "Mm"),
    MOV("u64", "Mm"),
    MOV("s64", "Mm"),
    MOV("f64", "Mm"),
    {"mov.pred", "Pp", 0, copy_predicate, 0, 0, true},
    SELP("b16", "Hhhp", copy16),
    SELP("u16", "Hhhp", copy16),
    SELP("s16", "Hhhp", copy16),
    SELP("b32", "Rrrp", copy32),
    SELP("u32", "Rrrp", copy32),
    SELP("s32", "Rrrp", copy32),
    SELP("f32", "Rrrp", copy32),
    SELP("b64", "Lllp", copy64),
    SELP("u64", "Lllp", copy64),
    SELP("s64", "Lllp", copy64),
    SELP("f64", "Lllp", copy64),
    {"slct", "Xxxr", PTX_MAY(TYPE) | PTX_MAY(FTZ), slct, 0, 0, 0},
    CVTA("u64"),
    CVTA("u32"),
    {"isspacep", "Px", PTX_MAY(SPACE), isspacep, 0, 0, 0},
};

const struct ptx_opcode_list ptx_move_opcodes = {rows, PTX_COUNT(rows)};
