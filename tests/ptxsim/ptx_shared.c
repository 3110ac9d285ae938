/* The shadow of ptx_shared.h. */
#include "tests/ptxsim/ptx_shared.h"

#include <stdlib.h>
#include <string.h>

enum { THREAD_BITS = 11, THREAD_MASK = (1 << THREAD_BITS) - 1, LANE_MASK = 63 };

enum status ptx_shared_reserve(struct ptx_shared *shared, uint32_t bytes, struct error *error) {
    const uint32_t capacity = (bytes + 15) / 16 * 16 + 16;
    if (capacity <= shared->capacity)
        return STATUS_OK;
    ptx_shared_deinit(shared);
    shared->bytes = aligned_alloc(16, capacity);
    shared->words = malloc(capacity / 4 * sizeof *shared->words);
    shared->parts = malloc(capacity * sizeof *shared->parts);
    if (!shared->bytes || !shared->words || !shared->parts)
        return error_no_memory(error, "simulated shared memory");
    shared->capacity = capacity;
    return STATUS_OK;
}

void ptx_shared_deinit(struct ptx_shared *shared) {
    free(shared->bytes);
    free(shared->words);
    free(shared->parts);
    *shared = (struct ptx_shared){0};
}

void ptx_shared_reset(struct ptx_shared *shared, uint32_t bytes) {
    shared->size = bytes;
    const uint32_t words = (bytes + 3) / 4;
    memset(shared->bytes, 0xff, words * 4);
    memset(shared->words, 0, words * sizeof *shared->words);
    memset(shared->seen, 0, sizeof shared->seen);
    for (int warp = 0; warp < PTX_WARPS_MAX; warp++) {
        shared->clocks[warp] = 1;
        shared->seen[warp][warp] = 1;
    }
}

void ptx_shared_order_warp(struct ptx_shared *shared, uint32_t warp) {
    shared->seen[warp][warp] = ++shared->clocks[warp];
}

void ptx_shared_order(struct ptx_shared *shared, uint32_t warps) {
    uint32_t joined[PTX_WARPS_MAX] = {0};
    for (uint32_t rest = warps; rest != 0; rest &= rest - 1) {
        const uint32_t warp = (uint32_t)__builtin_ctz(rest);
        ptx_shared_order_warp(shared, warp);
        for (int other = 0; other < PTX_WARPS_MAX; other++)
            if (joined[other] < shared->seen[warp][other])
                joined[other] = shared->seen[warp][other];
    }
    for (uint32_t rest = warps; rest != 0; rest &= rest - 1)
        memcpy(shared->seen[__builtin_ctz(rest)], joined, sizeof joined);
}

/* Is what `record` tells not ordered before what `thread` does now? */
static bool unordered(const struct ptx_shared *shared, uint32_t record, uint32_t thread) {
    const uint32_t other = record & THREAD_MASK;
    if (record == 0 || other == thread)
        return false;
    return record >> THREAD_BITS >= shared->seen[thread >> 6][other >> 6];
}

static bool conflict_with(uint32_t record, const char *what, enum ptxsim_fault_kind kind,
                          struct ptx_conflict *conflict) {
    const uint32_t thread = record & THREAD_MASK;
    *conflict = (struct ptx_conflict){kind, what, thread >> 6, thread & LANE_MASK};
    return false;
}

static void add_reader(const struct ptx_shared *shared, struct ptx_shadow *shadow, uint32_t thread,
                       uint32_t record) {
    const uint32_t first = shadow->readers[0] & THREAD_MASK;
    const uint32_t second = shadow->readers[1] & THREAD_MASK;
    const bool keep_second = first >> 6 == thread >> 6 && second >> 6 != thread >> 6 &&
                             unordered(shared, shadow->readers[1], thread);
    if (first != thread && !keep_second)
        shadow->readers[1] = shadow->readers[0];
    shadow->readers[0] = record;
}

static bool touch(const struct ptx_shared *shared, struct ptx_shadow *shadow,
                  enum ptx_access access, uint32_t thread, struct ptx_conflict *conflict) {
    const uint32_t record = shared->clocks[thread >> 6] << THREAD_BITS | thread;
    if (access == PTX_COPY_DONE) {
        shadow->pending = 0;
        shadow->writer = record;
        return true;
    }
    if (shadow->pending)
        return conflict_with(shadow->writer, "being copied", PTXSIM_FAULT_ASYNC_PENDING, conflict);
    const bool both_atomic = access == PTX_ATOMIC && shadow->atomic;
    if (!both_atomic && unordered(shared, shadow->writer, thread))
        return conflict_with(shadow->writer, "written", PTXSIM_FAULT_RACE, conflict);
    if (access == PTX_READ || access == PTX_ATOMIC) {
        if (!shadow->initialised)
            return conflict_with(0, "never written", PTXSIM_FAULT_UNINITIALISED_SHARED, conflict);
    }
    if (access == PTX_READ) {
        add_reader(shared, shadow, thread, record);
        return true;
    }
    for (int i = 0; i < 2; i++)
        if (unordered(shared, shadow->readers[i], thread))
            return conflict_with(shadow->readers[i], "read", PTXSIM_FAULT_RACE, conflict);
    shadow->writer = record;
    shadow->initialised = 1;
    shadow->pending = access == PTX_COPY_ISSUE;
    shadow->atomic = access == PTX_ATOMIC;
    return true;
}

static void split(struct ptx_shared *shared, uint32_t word) {
    for (int i = 0; i < 4; i++)
        shared->parts[word * 4 + (uint32_t)i] = shared->words[word];
    shared->words[word].split = 1;
}

static bool same(const struct ptx_shadow *a, const struct ptx_shadow *b) {
    return a->writer == b->writer && a->readers[0] == b->readers[0] &&
           a->readers[1] == b->readers[1] && a->initialised == b->initialised &&
           a->pending == b->pending && a->atomic == b->atomic;
}

/* Four equal parts are a word again. */
static void merge(struct ptx_shared *shared, uint32_t word) {
    const struct ptx_shadow *parts = &shared->parts[word * 4];
    for (int i = 1; i < 4; i++)
        if (!same(&parts[0], &parts[i]))
            return;
    shared->words[word] = parts[0];
    shared->words[word].split = 0;
}

bool ptx_shared_access(struct ptx_shared *shared, uint32_t offset, uint32_t bytes,
                       enum ptx_access access, uint32_t thread, struct ptx_conflict *conflict) {
    const uint32_t end = offset + bytes;
    while (offset < end) {
        const uint32_t word = offset / 4;
        const uint32_t stop = end < word * 4 + 4 ? end : word * 4 + 4;
        const bool whole = stop - offset == 4;
        if (whole && !shared->words[word].split) {
            if (!touch(shared, &shared->words[word], access, thread, conflict))
                return false;
        } else {
            if (!shared->words[word].split)
                split(shared, word);
            for (uint32_t at = offset; at < stop; at++)
                if (!touch(shared, &shared->parts[at], access, thread, conflict))
                    return false;
            if (whole)
                merge(shared, word);
        }
        offset = stop;
    }
    return true;
}
