/* What runs: decoded instructions, warps, blocks. A register holds 32 lanes side by side (2, 4 or 8
 * bytes each; a predicate is a mask of 32 bits), so that a handler is one loop over lanes.
 * Constants are registers of a pool that no lane writes. */
#ifndef TESTS_PTXSIM_PTX_MACHINE_H
#define TESTS_PTXSIM_PTX_MACHINE_H

#include "tests/ptxsim/ptx_memory.h"
#include "tests/ptxsim/ptx_shared.h"
#include "tests/ptxsim/ptx_types.h"
#include "tests/ptxsim/ptxsim.h"

enum {
    PTX_LANES = 32,
    PTX_OPERANDS_MAX = 26,
    PTX_TYPES_MAX = 4,
    PTX_CALLS_MAX = 8,
    PTX_BARRIERS = 16
};
#define PTX_ALL_LANES 0xffffffffu

/* Run `body` with `lane` at each lane of `mask`; the whole warp is a loop that vectorises. */
#if defined(__clang__)
#define PTX_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTX_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define PTX_EACH_LANE(mask, ...)                                            \
    do {                                                                    \
        if ((mask) == PTX_ALL_LANES) {                                      \
            PTX_INDEPENDENT                                                 \
            for (int lane = 0; lane < PTX_LANES; lane++) {                  \
                __VA_ARGS__;                                                \
            }                                                               \
        } else {                                                            \
            for (uint32_t rest_ = (mask); rest_ != 0; rest_ &= rest_ - 1) { \
                const int lane = __builtin_ctz(rest_);                      \
                __VA_ARGS__;                                                \
            }                                                               \
        }                                                                   \
    } while (0)

struct ptx_register {
    uint32_t offset; /* into the warp's registers or the constant pool */
    uint16_t id;     /* of its defined-mask; 0: a constant, always defined */
    uint8_t bytes;   /* a lane; 0: predicate */
    bool constant;
    bool negated; /* predicates */
};

enum ptx_flow {
    PTX_FLOW_NEXT,
    PTX_FLOW_BRANCH,
    PTX_FLOW_INDEXED,
    PTX_FLOW_CALL,
    PTX_FLOW_RETURN,
    PTX_FLOW_EXIT,
    PTX_FLOW_BARRIER,      /* of the block: all live lanes */
    PTX_FLOW_WHOLE_WARP,   /* a collective of 32 lanes */
    PTX_FLOW_MASKED,       /* a collective of the lanes in its member mask */
    PTX_FLOW_MASKED_ALIVE, /* the same, exited lanes excused */
};

struct ptx_warp;
struct ptx_instruction;

/* Executes for the lanes of `mask`; false after ptx_fault. */
typedef bool ptx_handler(struct ptx_warp *warp, const struct ptx_instruction *instruction,
                         uint32_t mask);

struct ptx_copy {
    uint32_t from, to, bytes; /* in a thread's parameter memory */
};

struct ptx_instruction {
    ptx_handler *run;
    enum ptx_flow flow;
    struct ptx_register guard; /* guarded only if has_guard */
    bool has_guard;
    bool propagates;     /* an undefined source makes an undefined result, no fault */
    uint8_t write_count; /* operands[0 .. write_count) are written, the rest read */
    uint8_t operand_count;
    uint8_t member_operand; /* of PTX_FLOW_MASKED */
    /* the fields of its modifiers */
    uint8_t types[PTX_TYPES_MAX];
    uint8_t type_count;
    uint8_t fields[16];       /* by enum ptx_field */
    uint8_t vector_counts[4]; /* elements of each vector operand, in order */
    int64_t offsets[2];       /* of its addresses */
    int64_t immediate;
    uint32_t target;   /* of a branch or call */
    uint32_t *targets; /* brx.idx; target_count of them */
    uint32_t target_count;
    struct ptx_copy *copies; /* a call's parameters in, or its results back */
    uint32_t copy_count;
    uint32_t line;
    struct view text; /* the opcode as written */
    struct ptx_register operands[PTX_OPERANDS_MAX];
};

/* A special register the kernel reads, filled in when a warp starts. */
struct ptx_special_use {
    uint8_t special;
    struct ptx_register home;
};

struct ptx_program {
    struct ptxsim_kernel kernel; /* first, so that the one is found from the other */
    struct ptxsim_module *module;
    struct ptx_instruction *code;
    uint32_t code_count;
    uint32_t entry;
    uint32_t register_bytes, register_count; /* register 0 is "constant" */
    uint8_t *pool;
    uint32_t pool_bytes, pool_capacity;
    uint32_t call_param_bytes; /* a thread's parameter memory for calls */
    struct ptx_special_use *specials;
    uint32_t special_count;
    bool has_atomics;
};

struct ptx_async {
    uint64_t from;
    uint32_t to, bytes, from_bytes, group;
    uint8_t lane;
};

enum ptx_warp_state { PTX_WARP_READY, PTX_WARP_WAITING, PTX_WARP_DONE };

struct ptx_block;

struct ptx_warp {
    struct ptx_block *block;
    const struct ptx_program *program;
    uint32_t index;
    enum ptx_warp_state state;
    uint32_t pc, limit; /* of the running lanes; where others wait to join */
    uint32_t active, live, parked;
    uint32_t pcs[PTX_LANES]; /* of lanes that do not run */
    uint8_t *registers;
    uint32_t *defined; /* [register_count] */
    uint8_t *local;    /* [32][local_bytes] */
    uint8_t *call_params;
    uint32_t returns[PTX_LANES][PTX_CALLS_MAX];
    uint8_t depth[PTX_LANES];
    uint32_t carry; /* of add.cc, a bit a lane */
    struct ptx_async *async;
    uint32_t async_count, async_capacity;
    uint32_t async_group[PTX_LANES]; /* the group that a commit would close */
    const struct ptx_instruction *barrier;
    uint32_t barrier_id;
    uint32_t barrier_value; /* a mask of predicates, of bar.red */
    const struct ptx_region *last_region;
};

struct ptx_barrier {
    uint32_t arrived_warps; /* that wait */
    uint32_t passed_warps;  /* bar.arrive */
    uint32_t expected;      /* threads; 0: the whole block */
    uint32_t pc;            /* of the first arrival */
};

struct ptx_block {
    struct ptxsim *machine;
    const struct ptx_program *program;
    const struct ptxsim_launch *launch;
    const uint8_t *params;
    uint32_t index[3];
    uint32_t thread_count, warp_count;
    struct ptx_warp *warps;
    struct ptx_shared shared;
    struct ptx_barrier barriers[PTX_BARRIERS];
    uint64_t instructions, instructions_max;
    uint64_t random;
    struct ptxsim_counters counters;
    struct ptxsim_report report;
    struct error error;
};

/* Addresses of the other spaces as generic ones; their own are offsets from 0. */
#define PTX_WINDOW_SHARED 0x7f00000000000000ull
#define PTX_WINDOW_LOCAL 0x7e00000000000000ull
#define PTX_WINDOW_PARAM 0x7d00000000000000ull
#define PTX_WINDOW_BYTES 0x0000000100000000ull

static inline void *ptx_lanes(const struct ptx_warp *warp, const struct ptx_register *home) {
    return (home->constant ? warp->program->pool : warp->registers) + home->offset;
}

static inline void *ptx_operand(const struct ptx_warp *warp,
                                const struct ptx_instruction *instruction, int index) {
    return ptx_lanes(warp, &instruction->operands[index]);
}

/* A predicate operand as a mask. */
static inline uint32_t ptx_predicate(const struct ptx_warp *warp, const struct ptx_register *home) {
    const uint32_t mask = *(const uint32_t *)ptx_lanes(warp, home);
    return home->negated ? ~mask : mask;
}

static inline void ptx_set_predicate(const struct ptx_warp *warp, const struct ptx_register *home,
                                     uint32_t value, uint32_t mask) {
    uint32_t *bits = ptx_lanes(warp, home);
    *bits = (*bits & ~mask) | (value & mask);
}

/* One lane of a register of any width. */
uint64_t ptx_machine_get(const struct ptx_warp *warp, const struct ptx_register *home, int lane);
void ptx_machine_set(const struct ptx_warp *warp, const struct ptx_register *home, int lane,
                     uint64_t bits);

/* Write the result of a setp: joined with its predicate operand, and the complement to a second
 * destination. Always true. */
bool ptx_machine_set_predicates(struct ptx_warp *warp, const struct ptx_instruction *instruction,
                                uint32_t result, uint32_t mask);

/* Record a fault of a lane and return false. */
bool ptx_machine_fault(struct ptx_warp *warp, const struct ptx_instruction *instruction, int lane,
                       enum ptxsim_fault_kind kind, const char *format, ...) ERROR_FORMAT(5, 6);

#endif
