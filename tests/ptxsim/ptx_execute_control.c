/* Control flow: the rows only; ptx_warp.c does the work, since it owns the program counters. */
#include "tests/ptxsim/ptx_opcodes.h"

static bool flows(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    (void)w;
    (void)in;
    (void)mask;
    return true;
}

static bool trap(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    return ptx_machine_fault(w, in, __builtin_ctz(mask), PTXSIM_FAULT_TRAP, "the kernel gave up");
}

static const struct ptx_opcode rows[] = {
    {"bra", "t", PTX_MAY(MODE), flows, PTX_FLOW_BRANCH, 0, 0},
    {"brx.idx", "rt", PTX_MAY(MODE), flows, PTX_FLOW_INDEXED, 0, 0},
    {"call", "t", PTX_MAY(MODE), flows, PTX_FLOW_CALL, 0, 0},
    {"ret", "", PTX_MAY(MODE), flows, PTX_FLOW_RETURN, 0, 0},
    {"exit", "", 0, flows, PTX_FLOW_EXIT, 0, 0},
    {"trap", "", 0, trap, 0, 0, 0},
    {"brkpt", "", 0, trap, 0, 0, 0},
    {"bar.sync", "r?r", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"barrier.sync", "r?r", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"barrier.sync.aligned", "r?r", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"barrier.cta.sync", "r?r", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"barrier.cta.sync.aligned", "r?r", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"bar.arrive", "rr", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"barrier.cta.arrive.aligned", "rr", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"bar.red.and.pred", "Prp", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"bar.red.or.pred", "Prp", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"bar.red.popc.u32", "Rrp", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"barrier.cta.red.and.aligned.pred", "Prp", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"barrier.cta.red.or.aligned.pred", "Prp", 0, flows, PTX_FLOW_BARRIER, 0, 0},
    {"barrier.cta.red.popc.aligned.u32", "Rrp", 0, flows, PTX_FLOW_BARRIER, 0, 0},
};

const struct ptx_opcode_list ptx_control_opcodes = {rows, PTX_COUNT(rows)};
