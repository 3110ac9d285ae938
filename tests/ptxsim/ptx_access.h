/* From an address of a state space to checked host bytes. */
#ifndef TESTS_PTXSIM_PTX_ACCESS_H
#define TESTS_PTXSIM_PTX_ACCESS_H

#include "tests/ptxsim/ptx_machine.h"

/* In the parameter space: the variables of calls, per thread, begin here; below are the kernel's.
 */
#define PTX_CALL_PARAMS 0x40000000u

struct ptx_place {
    enum ptx_space space;
    uint64_t address;
    uint32_t bytes;
    enum ptx_access access;
    int lane; /* PTX_WHOLE_WARP is allowed for shared memory */
};

/* NULL after a fault: out of bounds, misaligned, read-only, a race. A generic address is narrowed:
 * place->space and place->address become the window's. */
uint8_t *ptx_access_at(struct ptx_warp *warp, const struct ptx_instruction *instruction,
                       struct ptx_place *place);

/* Counters of one warp-wide access. */
struct ptx_traffic {
    uint32_t count;
    uint64_t addresses[PTX_LANES];
};
void ptx_access_count_global(struct ptx_block *block, const struct ptx_traffic *traffic,
                             uint32_t bytes);
void ptx_access_count_shared(struct ptx_block *block, const struct ptx_traffic *traffic,
                             uint32_t bytes);

#endif
