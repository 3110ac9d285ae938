/* Instructions in which the lanes of a warp exchange values. The scheduler calls them once all
 * lanes of the member mask are there, with exactly those lanes. */
#include "tests/ptxsim/ptx_opcodes.h"

/* The source lane of a shuffle, and whether it is inside the segment. */
static int shuffle_source(uint8_t mode, int lane, uint32_t b, uint32_t c, bool *inside) {
    const int segment = (int)(c >> 8 & 31), limit = (int)(c & 31), amount = (int)(b & 31);
    const int last = (lane & segment) | (limit & ~segment), first = lane & segment;
    int source;
    if (mode == PTX_MODE_UP) {
        source = lane - amount;
        *inside = source >= last;
    } else if (mode == PTX_MODE_DOWN) {
        source = lane + amount;
        *inside = source <= last;
    } else if (mode == PTX_MODE_BFLY) {
        source = lane ^ amount;
        *inside = source <= last;
    } else {
        source = first | (amount & ~segment);
        *inside = source <= last;
    }
    if (!*inside)
        source = lane;
    return source;
}

static bool shfl(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const int first = in->write_count;
    uint32_t *d = ptx_operand(w, in, 0);
    const uint32_t *a = ptx_operand(w, in, first), *b = ptx_operand(w, in, first + 1),
                   *c = ptx_operand(w, in, first + 2);
    uint32_t results[PTX_LANES], predicate = 0;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        bool inside;
        const int source =
            shuffle_source(ptx_field(in, PTX_FIELD_MODE), lane, b[lane], c[lane], &inside);
        if (!(mask >> source & 1))
            return ptx_machine_fault(w, in, lane, PTXSIM_FAULT_PARTIAL_WARP,
                                     "reads lane %d, which is not in the mask 0x%08x", source,
                                     mask);
        results[lane] = a[source];
        predicate |= (uint32_t)inside << lane;
    }
    PTX_EACH_LANE(mask, d[lane] = results[lane]);
    if (first == 2)
        ptx_set_predicate(w, &in->operands[1], predicate, mask);
    return true;
}

static bool vote(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const uint32_t votes = ptx_predicate(w, &in->operands[1]) & mask;
    bool result;
    switch (ptx_field(in, PTX_FIELD_MODE)) {
    case PTX_MODE_ALL:
        result = votes == mask;
        break;
    case PTX_MODE_ANY:
        result = votes != 0;
        break;
    default:
        result = votes == 0 || votes == mask;
        break;
    }
    ptx_set_predicate(w, &in->operands[0], result ? ~0u : 0, mask);
    return true;
}

static bool ballot(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    uint32_t *d = ptx_operand(w, in, 0);
    const uint32_t votes = ptx_predicate(w, &in->operands[1]) & mask;
    PTX_EACH_LANE(mask, d[lane] = votes);
    return true;
}

static bool activemask(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    uint32_t *d = ptx_operand(w, in, 0);
    PTX_EACH_LANE(mask, d[lane] = mask);
    return true;
}

static uint32_t lanes_equal(const struct ptx_warp *w, const struct ptx_register *home,
                            uint32_t mask, int lane) {
    uint32_t equal = 0;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int other = __builtin_ctz(rest);
        if (ptx_machine_get(w, home, other) == ptx_machine_get(w, home, lane))
            equal |= 1u << other;
    }
    return equal;
}

static bool match_any(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    uint32_t results[PTX_LANES];
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        results[lane] = lanes_equal(w, &in->operands[1], mask, lane);
    }
    uint32_t *d = ptx_operand(w, in, 0);
    PTX_EACH_LANE(mask, d[lane] = results[lane]);
    return true;
}

static bool match_all(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const int first = in->write_count;
    const bool all = lanes_equal(w, &in->operands[first], mask, __builtin_ctz(mask)) == mask;
    uint32_t *d = ptx_operand(w, in, 0);
    PTX_EACH_LANE(mask, d[lane] = all ? mask : 0);
    if (first == 2)
        ptx_set_predicate(w, &in->operands[1], all ? ~0u : 0, mask);
    return true;
}

static bool is_less(bool is_signed, uint32_t a, uint32_t b) {
    return is_signed ? (int32_t)a < (int32_t)b : a < b;
}

static bool redux(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const bool is_signed = in->types[0] == PTX_S32;
    const uint8_t op = ptx_field(in, PTX_FIELD_OP);
    const uint32_t *a = ptx_operand(w, in, 1);
    uint32_t *d = ptx_operand(w, in, 0);
    uint32_t result = a[__builtin_ctz(mask)];
    for (uint32_t rest = mask & (mask - 1); rest != 0; rest &= rest - 1) {
        const uint32_t value = a[__builtin_ctz(rest)];
        switch (op) {
        case PTX_OP_ADD:
            result += value;
            break;
        case PTX_OP_MIN:
            result = is_less(is_signed, value, result) ? value : result;
            break;
        case PTX_OP_MAX:
            result = is_less(is_signed, result, value) ? value : result;
            break;
        case PTX_OP_AND:
            result &= value;
            break;
        case PTX_OP_OR:
            result |= value;
            break;
        default:
            result ^= value;
            break;
        }
    }
    PTX_EACH_LANE(mask, d[lane] = result);
    return true;
}

static bool warp_barrier(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    (void)in;
    (void)mask;
    ptx_shared_order_warp(&w->block->shared, w->index);
    return true;
}

static const struct ptx_opcode rows[] = {
    {"shfl.sync.b32", "Grrrr", PTX_MAY(MODE), shfl, PTX_FLOW_MASKED, 0, 0},
    {"vote.sync.ballot.b32", "Rpr", 0, ballot, PTX_FLOW_MASKED, 0, 0},
    {"vote.sync.pred", "Ppr", PTX_MAY(MODE), vote, PTX_FLOW_MASKED, 0, 0},
    {"activemask.b32", "R", 0, activemask, 0, 0, 0},
    {"match.any.sync.b32", "Rrr", 0, match_any, PTX_FLOW_MASKED, 70, 0},
    {"match.any.sync.b64", "Rlr", 0, match_any, PTX_FLOW_MASKED, 70, 0},
    {"match.all.sync.b32", "Grr", 0, match_all, PTX_FLOW_MASKED, 70, 0},
    {"match.all.sync.b64", "Glr", 0, match_all, PTX_FLOW_MASKED, 70, 0},
    {"redux.sync.u32", "Rrr", PTX_MAY(OP), redux, PTX_FLOW_MASKED, 80, 0},
    {"redux.sync.s32", "Rrr", PTX_MAY(OP), redux, PTX_FLOW_MASKED, 80, 0},
    {"redux.sync.b32", "Rrr", PTX_MAY(OP), redux, PTX_FLOW_MASKED, 80, 0},
    {"bar.warp.sync", "r", 0, warp_barrier, PTX_FLOW_MASKED_ALIVE, 0, 0},
};

const struct ptx_opcode_list ptx_collective_opcodes = {rows, PTX_COUNT(rows)};
