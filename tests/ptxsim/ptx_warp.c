/* Execution of one warp, see ptx_warp.h. A collective reached by some of its lanes parks them until
 * the rest arrives; when no lane can move, the parked ones are the fault. */
#include "tests/ptxsim/ptx_warp.h"

#include <string.h>

static const struct ptx_instruction *at(const struct ptx_warp *w, uint32_t pc) {
    return &w->program->code[pc];
}

static void leave(struct ptx_warp *w, uint32_t lanes, uint32_t pc) {
    PTX_EACH_LANE(lanes, w->pcs[lane] = pc);
}

/* Nobody can run: done, or stuck. */
static bool stuck(struct ptx_warp *w) {
    if (w->live == 0) {
        w->state = PTX_WARP_DONE;
        return true;
    }
    const int lane = __builtin_ctz(w->parked);
    const struct ptx_instruction *in = at(w, w->pcs[lane]);
    uint32_t here = 0;
    for (int i = 0; i < PTX_LANES; i++)
        if ((w->parked >> i & 1) && w->pcs[i] == w->pcs[lane])
            here |= 1u << i;
    if (in->flow == PTX_FLOW_BARRIER)
        return ptx_machine_fault(w, in, lane, PTXSIM_FAULT_DIVERGENT_BARRIER,
                                 "lanes 0x%08x wait, lanes 0x%08x are elsewhere", here,
                                 w->live & ~here);
    return ptx_machine_fault(w, in, lane, PTXSIM_FAULT_PARTIAL_WARP,
                             "only lanes 0x%08x are here, lanes 0x%08x elsewhere or gone", here,
                             ~here);
}

/* Choose the lanes at the lowest counter. */
static bool choose(struct ptx_warp *w) {
    const uint32_t runnable = w->live & ~w->parked;
    w->active = 0;
    if (runnable == 0)
        return stuck(w);
    uint32_t lowest = UINT32_MAX, next = UINT32_MAX;
    for (uint32_t rest = runnable; rest != 0; rest &= rest - 1) {
        const uint32_t pc = w->pcs[__builtin_ctz(rest)];
        if (pc < lowest) {
            next = lowest;
            lowest = pc;
        } else if (pc > lowest && pc < next) {
            next = pc;
        }
    }
    for (uint32_t rest = runnable; rest != 0; rest &= rest - 1)
        if (w->pcs[__builtin_ctz(rest)] == lowest)
            w->active |= rest & (0 - rest);
    w->pc = lowest;
    w->limit = next;
    return true;
}

static bool regroup(struct ptx_warp *w) {
    leave(w, w->active, w->pc);
    return choose(w);
}

static bool check_defined(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    for (int i = in->write_count; i < in->operand_count; i++) {
        const uint32_t undefined = mask & ~w->defined[in->operands[i].id];
        if (undefined != 0)
            return ptx_machine_fault(
                w, in, __builtin_ctz(undefined), PTXSIM_FAULT_UNINITIALISED_REGISTER,
                "source operand %d was never written", i - in->write_count + 1);
    }
    return true;
}

/* mov and selp hand an undefined value on; others must not read one. */
static bool execute(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    uint32_t defined = PTX_ALL_LANES;
    if (in->propagates) {
        for (int i = in->write_count; i < in->operand_count; i++)
            defined &= w->defined[in->operands[i].id];
    } else if (!check_defined(w, in, mask)) {
        return false;
    }
    if (!in->run(w, in, mask))
        return false;
    for (int i = 0; i < in->write_count; i++) {
        uint32_t *bits = &w->defined[in->operands[i].id];
        *bits = (*bits & ~mask) | (defined & mask);
    }
    return true;
}

static bool branch(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    if (mask == w->active) {
        w->pc = in->target;
        return w->pc < w->limit || regroup(w);
    }
    leave(w, mask, in->target);
    leave(w, w->active & ~mask, w->pc + 1);
    return choose(w);
}

static bool branch_indexed(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const uint32_t *index = ptx_operand(w, in, 0);
    if (!check_defined(w, in, mask))
        return false;
    leave(w, w->active & ~mask, w->pc + 1);
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        if (index[lane] >= in->target_count)
            return ptx_machine_fault(w, in, lane, PTXSIM_FAULT_BOUNDS, "index %u of %u targets",
                                     index[lane], in->target_count);
        w->pcs[lane] = in->targets[index[lane]];
    }
    return choose(w);
}

static bool call(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    if (mask == 0) {
        w->pc += 2; /* no results to copy either */
        return w->pc < w->limit || regroup(w);
    }
    if (in->target == UINT32_MAX)
        return ptx_machine_fault(w, in, __builtin_ctz(mask), PTXSIM_FAULT_CALL,
                                 "the function has no body (assert, printf, malloc?)");
    const uint32_t size = w->program->call_param_bytes;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        uint8_t *params = w->call_params + (uint32_t)lane * size;
        if (w->depth[lane] == PTX_CALLS_MAX)
            return ptx_machine_fault(w, in, lane, PTXSIM_FAULT_CALL, "calls nest too deeply");
        for (uint32_t i = 0; i < in->copy_count; i++)
            memcpy(params + in->copies[i].to, params + in->copies[i].from, in->copies[i].bytes);
        w->returns[lane][w->depth[lane]++] = w->pc + 1;
        w->pcs[lane] = in->target;
    }
    leave(w, w->active & ~mask, w->pc + 2);
    return choose(w);
}

static bool leave_function(struct ptx_warp *w, uint32_t mask, bool exits) {
    leave(w, w->active & ~mask, w->pc + 1);
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        if (exits || w->depth[lane] == 0)
            w->live &= ~(1u << lane);
        else
            w->pcs[lane] = w->returns[lane][--w->depth[lane]];
    }
    return choose(w);
}

/* The lanes that a collective waits for. */
static bool needed(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t here,
                   uint32_t *lanes) {
    *lanes = in->flow == PTX_FLOW_WHOLE_WARP ? PTX_ALL_LANES : w->live;
    if (in->flow != PTX_FLOW_MASKED && in->flow != PTX_FLOW_MASKED_ALIVE)
        return true;
    const uint32_t *members = ptx_operand(w, in, in->member_operand);
    const int first = __builtin_ctz(here);
    for (uint32_t rest = here; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        if (!(members[lane] >> lane & 1) || members[lane] != members[first])
            return ptx_machine_fault(
                w, in, lane, PTXSIM_FAULT_PARTIAL_WARP, "its mask 0x%08x %s", members[lane],
                members[lane] >> lane & 1 ? "differs from other lanes'" : "does not have itself");
    }
    *lanes = members[first];
    if (in->flow == PTX_FLOW_MASKED_ALIVE)
        *lanes &= w->live;
    return true;
}

/* All live lanes are here: stop for the block. */
static bool stop_at_barrier(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t here) {
    if (!check_defined(w, in, here))
        return false;
    w->parked &= ~here;
    leave(w, here, w->pc);
    w->active = here;
    w->barrier = in;
    w->state = PTX_WARP_WAITING;
    return true;
}

static bool collective(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    uint32_t here = mask, wanted;
    for (uint32_t rest = w->parked; rest != 0; rest &= rest - 1)
        if (w->pcs[__builtin_ctz(rest)] == w->pc)
            here |= rest & (0 - rest);
    if (here == 0) {
        w->pc++;
        return w->pc < w->limit || regroup(w);
    }
    if (!needed(w, in, here, &wanted))
        return false;
    if ((wanted & ~here) != 0) {
        leave(w, w->active & ~mask, w->pc + 1);
        leave(w, mask, w->pc);
        w->parked |= mask;
        return choose(w);
    }
    if (in->flow == PTX_FLOW_BARRIER && here == w->live)
        return stop_at_barrier(w, in, here);
    if (!execute(w, in, here & wanted))
        return false;
    w->parked &= ~here;
    w->active |= here;
    w->pc++;
    return w->pc < w->limit || regroup(w);
}

static bool flow(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    switch (in->flow) {
    case PTX_FLOW_BRANCH:
        return branch(w, in, mask);
    case PTX_FLOW_INDEXED:
        return branch_indexed(w, in, mask);
    case PTX_FLOW_CALL:
        return call(w, in, mask);
    case PTX_FLOW_RETURN:
        return leave_function(w, mask, false);
    case PTX_FLOW_EXIT:
        return leave_function(w, mask, true);
    case PTX_FLOW_NEXT:
    case PTX_FLOW_BARRIER:
    case PTX_FLOW_WHOLE_WARP:
    case PTX_FLOW_MASKED:
    case PTX_FLOW_MASKED_ALIVE:
        break;
    }
    return collective(w, in, mask);
}

static bool step(struct ptx_warp *w) {
    const struct ptx_instruction *in = at(w, w->pc);
    struct ptx_block *block = w->block;
    uint32_t mask = w->active;
    block->counters.warp_instructions++;
    block->counters.thread_instructions += (uint32_t)__builtin_popcount(mask);
    if (++block->instructions > block->instructions_max)
        return ptx_machine_fault(w, in, __builtin_ctz(mask), PTXSIM_FAULT_ENDLESS,
                                 "%llu warp instructions in one block",
                                 (unsigned long long)block->instructions_max);
    if (in->has_guard) {
        const uint32_t undefined = mask & ~w->defined[in->guard.id];
        if (undefined != 0)
            return ptx_machine_fault(w, in, __builtin_ctz(undefined),
                                     PTXSIM_FAULT_UNINITIALISED_REGISTER,
                                     "the guard was never written");
        mask &= ptx_predicate(w, &in->guard);
    }
    if (in->flow != PTX_FLOW_NEXT)
        return flow(w, in, mask);
    if (mask != 0 && !execute(w, in, mask))
        return false;
    w->pc++;
    return w->pc < w->limit || regroup(w);
}

bool ptx_warp_run(struct ptx_warp *w) {
    if (w->active == 0 && !choose(w))
        return false;
    while (w->state == PTX_WARP_READY)
        if (!step(w))
            return false;
    return true;
}

void ptx_warp_release(struct ptx_warp *w) {
    PTX_EACH_LANE(w->active, w->pcs[lane] = w->pc + 1);
    for (int i = 0; i < w->barrier->write_count; i++) {
        uint32_t *bits = &w->defined[w->barrier->operands[i].id];
        *bits |= w->active;
    }
    w->active = 0;
    w->state = PTX_WARP_READY;
}
