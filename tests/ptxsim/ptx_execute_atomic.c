/* atom and red, lane after lane in ascending order, on global and shared memory. */
#include <string.h>

#include "tests/ptxsim/ptx_access.h"
#include "tests/ptxsim/ptx_numbers.h"
#include "tests/ptxsim/ptx_opcodes.h"

static uint64_t add(enum ptx_type type, uint64_t old, uint64_t b) {
    double wide, more;
    switch ((int)type) {
    case PTX_F32:
        return ptx_numbers_bits(ptx_numbers_f32((uint32_t)old) + ptx_numbers_f32((uint32_t)b));
    case PTX_F64:
        memcpy(&wide, &old, sizeof wide);
        memcpy(&more, &b, sizeof more);
        wide += more;
        memcpy(&old, &wide, sizeof wide);
        return old;
    case PTX_F16:
    case PTX_BF16:
        return ptx_numbers_round(type,
                                 ptx_numbers_sum(ptx_numbers_value(type, (uint32_t)old),
                                                 ptx_numbers_value(type, (uint32_t)b)),
                                 PTX_NEAREST, false);
    case PTX_F16X2:
    case PTX_BF16X2: {
        const enum ptx_type half = type == PTX_F16X2 ? PTX_F16 : PTX_BF16;
        return add(half, old & 0xffff, b & 0xffff) | add(half, old >> 16, b >> 16) << 16;
    }
    default:
        return old + b;
    }
}

static bool less(enum ptx_type type, uint64_t a, uint64_t b) {
    if (type == PTX_S32)
        return (int32_t)a < (int32_t)b;
    if (type == PTX_S64)
        return (int64_t)a < (int64_t)b;
    return a < b;
}

static uint64_t apply(const struct ptx_instruction *in, uint64_t old, uint64_t b, uint64_t c) {
    const enum ptx_type type = (enum ptx_type)in->types[0];
    switch (ptx_field(in, PTX_FIELD_OP)) {
    case PTX_OP_ADD:
        return add(type, old, b);
    case PTX_OP_MIN:
        return less(type, b, old) ? b : old;
    case PTX_OP_MAX:
        return less(type, old, b) ? b : old;
    case PTX_OP_AND:
        return old & b;
    case PTX_OP_OR:
        return old | b;
    case PTX_OP_XOR:
        return old ^ b;
    case PTX_OP_CAS:
        return old == b ? c : old;
    case PTX_OP_INC:
        return old >= b ? 0 : old + 1;
    case PTX_OP_DEC:
        return old == 0 || old > b ? b : old - 1;
    default:
        return b; /* exch */
    }
}

static bool atomic(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const int first = in->write_count; /* atom keeps the old value, red has no result */
    const uint32_t bytes = ptx_types_bytes((enum ptx_type)in->types[0]);
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        struct ptx_place place = {
            .space = (enum ptx_space)ptx_field(in, PTX_FIELD_SPACE),
            .address = ptx_machine_get(w, &in->operands[first], lane) + (uint64_t)in->offsets[0],
            .bytes = bytes,
            .access = PTX_ATOMIC,
            .lane = lane,
        };
        uint8_t *at = ptx_access_at(w, in, &place);
        if (!at)
            return false;
        uint64_t old = 0;
        memcpy(&old, at, bytes);
        const uint64_t b = ptx_machine_get(w, &in->operands[first + 1], lane);
        const bool has_third = in->operand_count > first + 2;
        const uint64_t c = has_third ? ptx_machine_get(w, &in->operands[first + 2], lane) : 0;
        const uint64_t changed = apply(in, old, b, c);
        memcpy(at, &changed, bytes);
        if (first)
            ptx_machine_set(w, &in->operands[0], lane, old);
    }
    return true;
}

enum { MAY = PTX_MAY(SPACE) | PTX_MAY(MEMORY_MODEL) | PTX_MAY(TYPE) };
#define OPERATION(op)                            \
    {"atom." op, "Xax", MAY, atomic, 0, 0, 0}, { \
        "red." op, "ax", MAY, atomic, 0, 0, 0    \
    }

static const struct ptx_opcode rows[] = {
    {"atom.cas", "Xaxx", MAY, atomic, 0, 0, 0},
    {"atom.exch", "Xax", MAY, atomic, 0, 0, 0},
    OPERATION("add"),
    OPERATION("min"),
    OPERATION("max"),
    OPERATION("and"),
    OPERATION("or"),
    OPERATION("xor"),
    OPERATION("inc"),
    OPERATION("dec"),
};

const struct ptx_opcode_list ptx_atomic_opcodes = {rows, PTX_COUNT(rows)};
