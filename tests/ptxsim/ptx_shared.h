/* A block's shared memory with a shadow that finds races. Every 4-byte word (every byte, once
 * something narrower touched the word) remembers its last writer and two last readers as (thread,
 * clock of its warp). A warp's clock advances at each barrier it passes and at each bar.warp.sync;
 * `seen` has, for a pair of warps, up to which clock the other's accesses are ordered before this
 * one's. Two accesses conflict when they touch a byte, one writes, their threads differ and they
 * are not ordered. Of many readers two are kept, of different warps where possible, which is enough
 * to catch any writer that no barrier separates from them. */
#ifndef TESTS_PTXSIM_PTX_SHARED_H
#define TESTS_PTXSIM_PTX_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/ptxsim/ptxsim.h"

enum ptx_access { PTX_READ, PTX_WRITE, PTX_ATOMIC, PTX_COPY_ISSUE, PTX_COPY_DONE };

enum { PTX_WARPS_MAX = 32, PTX_WHOLE_WARP = 32 /* a reader "lane" that is no single thread */ };

struct ptx_shadow {
    uint32_t writer; /* clock << 11 | warp << 6 | lane; 0: nobody */
    uint32_t readers[2];
    uint8_t initialised, pending, atomic, split;
};

struct ptx_shared {
    uint8_t *bytes;
    struct ptx_shadow *words; /* [size / 4] */
    struct ptx_shadow *parts; /* [size], in use where the word is split */
    uint32_t size, capacity;  /* multiples of 4 */
    uint32_t clocks[PTX_WARPS_MAX];
    uint32_t seen[PTX_WARPS_MAX][PTX_WARPS_MAX];
};

enum status ptx_shared_reserve(struct ptx_shared *shared, uint32_t bytes, struct error *error);
void ptx_shared_deinit(struct ptx_shared *shared);

/* Start a block: poison, forget, clocks at 1. */
void ptx_shared_reset(struct ptx_shared *shared, uint32_t bytes);

/* All accesses of these warps so far are ordered before all their later ones. */
void ptx_shared_order(struct ptx_shared *shared, uint32_t warps);
void ptx_shared_order_warp(struct ptx_shared *shared, uint32_t warp);

struct ptx_conflict {
    enum ptxsim_fault_kind kind;
    const char *what; /* "written", "read" */
    uint32_t warp, lane;
};

/* Check and record an access inside the size; false with the reason. */
bool ptx_shared_access(struct ptx_shared *shared, uint32_t offset, uint32_t bytes,
                       enum ptx_access access, uint32_t thread, struct ptx_conflict *conflict);

static inline uint32_t ptx_shared_thread(uint32_t warp, uint32_t lane) {
    return warp << 6 | lane;
}

#endif
