/* Loads, stores and cp.async. The target of an asynchronous copy is poisoned and closed when the
 * copy is issued; the bytes are read and written when the thread waits for it, so that both a read
 * too early and a source overwritten too early show. */
#include <stdlib.h>
#include <string.h>

#include "tests/ptxsim/ptx_access.h"
#include "tests/ptxsim/ptx_opcodes.h"

static enum ptx_type element_type(const struct ptx_instruction *in) {
    return (enum ptx_type)in->types[in->type_count - 1];
}

static void count(struct ptx_warp *w, enum ptx_space space, const struct ptx_traffic *traffic,
                  uint32_t bytes) {
    if (traffic->count == 0)
        return;
    if (space == PTX_GLOBAL)
        ptx_access_count_global(w->block, traffic, bytes);
    else if (space == PTX_SHARED)
        ptx_access_count_shared(w->block, traffic, bytes);
    else if (space == PTX_LOCAL)
        w->block->counters.local_accesses++;
}

/* Call `move` with each lane's bytes. */
typedef void mover(struct ptx_warp *w, const struct ptx_instruction *in, int lane, uint8_t *bytes);

static bool for_each_place(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask,
                           enum ptx_access access, mover *move) {
    const uint8_t vector = ptx_field(in, PTX_FIELD_VECTOR);
    const uint32_t bytes = ptx_types_bytes(element_type(in)) * (vector ? vector : 1);
    const struct ptx_register *base =
        &in->operands[access == PTX_READ ? in->operand_count - 1 : in->write_count];
    struct ptx_traffic traffic = {0};
    enum ptx_space space = PTX_GENERIC;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        struct ptx_place place = {
            .space = (enum ptx_space)ptx_field(in, PTX_FIELD_SPACE),
            .address = ptx_machine_get(w, base, lane) + (uint64_t)in->offsets[0],
            .bytes = bytes,
            .access = access,
            .lane = lane,
        };
        if (base->bytes == 4)
            place.address &= 0xffffffff;
        uint8_t *at = ptx_access_at(w, in, &place);
        if (!at)
            return false;
        move(w, in, lane, at);
        space = place.space;
        traffic.addresses[traffic.count++] = place.address;
    }
    count(w, space, &traffic, bytes);
    return true;
}

static uint64_t extend(uint64_t bits, enum ptx_type type) {
    const int shift = 64 - (int)ptx_types_bytes(type) * 8;
    return ptx_types_signed(type) ? (uint64_t)((int64_t)(bits << shift) >> shift) : bits;
}

static void load(struct ptx_warp *w, const struct ptx_instruction *in, int lane, uint8_t *bytes) {
    const enum ptx_type type = element_type(in);
    const uint32_t size = ptx_types_bytes(type);
    for (int i = 0; i < in->write_count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, bytes + (size_t)i * size, size);
        ptx_machine_set(w, &in->operands[i], lane, extend(bits, type));
    }
}

static void store(struct ptx_warp *w, const struct ptx_instruction *in, int lane, uint8_t *bytes) {
    const uint32_t size = ptx_types_bytes(element_type(in));
    for (int i = 1; i < in->operand_count; i++) {
        const uint64_t bits = ptx_machine_get(w, &in->operands[i], lane);
        memcpy(bytes + (size_t)(i - 1) * size, &bits, size);
    }
}

static bool ld(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    return for_each_place(w, in, mask, PTX_READ, load);
}

static bool st(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    return for_each_place(w, in, mask, PTX_WRITE, store);
}

/* ---- cp.async ---- */
static bool push_copy(struct ptx_warp *w, const struct ptx_instruction *in,
                      const struct ptx_async *copy) {
    if (w->async_count == w->async_capacity) {
        const uint32_t capacity = w->async_capacity ? w->async_capacity * 2 : 256;
        struct ptx_async *grown = realloc(w->async, capacity * sizeof *grown);
        if (!grown)
            return ptx_machine_fault(w, in, copy->lane, PTXSIM_FAULT_NO_MEMORY, "cp.async queue");
        w->async = grown;
        w->async_capacity = capacity;
    }
    w->async[w->async_count++] = *copy;
    return true;
}

static bool issue_copy(struct ptx_warp *w, const struct ptx_instruction *in, int lane,
                       struct ptx_async *copy) {
    const uint64_t to = ptx_machine_get(w, &in->operands[0], lane) + (uint64_t)in->offsets[0];
    copy->from = ptx_machine_get(w, &in->operands[1], lane) + (uint64_t)in->offsets[1];
    copy->to = (uint32_t)to;
    copy->bytes = copy->from_bytes = (uint32_t)in->immediate;
    copy->lane = (uint8_t)lane;
    copy->group = w->async_group[lane];
    if (in->operand_count > 2)
        copy->from_bytes = (uint32_t)ptx_machine_get(w, &in->operands[2], lane);
    if (copy->from_bytes > copy->bytes)
        return ptx_machine_fault(w, in, lane, PTXSIM_FAULT_BOUNDS,
                                 "%u source bytes of a copy of %u", copy->from_bytes, copy->bytes);
    if (copy->from_bytes > 0) {
        struct ptx_place source = {PTX_GLOBAL, copy->from, copy->from_bytes, PTX_READ, lane};
        if (copy->from % copy->bytes != 0)
            source.bytes = copy->bytes; /* let the alignment check speak */
        if ((source.bytes & (source.bytes - 1)) != 0)
            source.bytes = 1; /* odd sizes: the ends are checked when it is read */
        if (!ptx_access_at(w, in, &source))
            return false;
    }
    struct ptx_place target = {PTX_SHARED, to, copy->bytes, PTX_COPY_ISSUE, lane};
    uint8_t *bytes = ptx_access_at(w, in, &target);
    if (!bytes)
        return false;
    memset(bytes, 0xff, copy->bytes);
    return push_copy(w, in, copy);
}

static bool cp_async(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    struct ptx_traffic from = {0}, to = {0};
    const uint32_t bytes = (uint32_t)in->immediate;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        struct ptx_async copy = {0};
        if (!issue_copy(w, in, __builtin_ctz(rest), &copy))
            return false;
        if (copy.from_bytes > 0)
            from.addresses[from.count++] = copy.from;
        to.addresses[to.count++] = copy.to;
    }
    count(w, PTX_GLOBAL, &from, bytes);
    count(w, PTX_SHARED, &to, bytes);
    return true;
}

static bool finish_copy(struct ptx_warp *w, const struct ptx_instruction *in,
                        const struct ptx_async *copy) {
    struct ptx_place target = {PTX_SHARED, copy->to, copy->bytes, PTX_COPY_DONE, copy->lane};
    uint8_t *to = ptx_access_at(w, in, &target);
    if (!to)
        return false;
    memset(to, 0, copy->bytes);
    if (copy->from_bytes == 0)
        return true;
    const void *from = ptxsim_memory_host(w->block->machine, copy->from, copy->from_bytes);
    if (!from) {
        w->block->report.address = copy->from;
        return ptx_machine_fault(w, in, copy->lane, PTXSIM_FAULT_BOUNDS,
                                 "the source of a copy, %u bytes at 0x%llx", copy->from_bytes,
                                 (unsigned long long)copy->from);
    }
    memcpy(to, from, copy->from_bytes);
    return true;
}

/* Each lane waits for its groups but the newest `pending`, or for everything. */
static bool finish_copies(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask,
                          uint32_t pending, bool uncommitted) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->async_count; i++) {
        const struct ptx_async copy = w->async[i];
        const uint32_t open = w->async_group[copy.lane];
        const bool waited = uncommitted || copy.group + pending < open;
        if (!(mask >> copy.lane & 1) || !waited)
            w->async[kept++] = copy;
        else if (!finish_copy(w, in, &copy))
            return false;
    }
    w->async_count = kept;
    return true;
}

static bool commit_group(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    (void)in;
    PTX_EACH_LANE(mask, w->async_group[lane]++);
    return true;
}

static bool wait_group(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    return finish_copies(w, in, mask, (uint32_t)in->immediate, false);
}

static bool wait_all(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    return finish_copies(w, in, mask, 0, true);
}

static bool nothing(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    (void)w;
    (void)in;
    (void)mask;
    return true;
}

enum {
    ACCESS =
        PTX_MAY(SPACE) | PTX_MAY(VECTOR) | PTX_MAY(CACHE) | PTX_MAY(MEMORY_MODEL) | PTX_MAY(TYPE),
    MODEL = PTX_MAY(MEMORY_MODEL),
};

static const struct ptx_opcode rows[] = {
    {"ld", "Va", ACCESS, ld, 0, 0, 0},
    {"ldu", "Va", ACCESS, ld, 0, 0, 0},
    {"st", "av", ACCESS, st, 0, 0, 0},
    {"cp.async.ca.shared.global", "aai?r", PTX_MAY(CACHE), cp_async, 0, 80, 0},
    {"cp.async.cg.shared.global", "aai?r", PTX_MAY(CACHE), cp_async, 0, 80, 0},
    {"cp.async.ca.shared::cta.global", "aai?r", PTX_MAY(CACHE), cp_async, 0, 80, 0},
    {"cp.async.cg.shared::cta.global", "aai?r", PTX_MAY(CACHE), cp_async, 0, 80, 0},
    {"cp.async.commit_group", "", 0, commit_group, 0, 80, 0},
    {"cp.async.wait_group", "i", 0, wait_group, 0, 80, 0},
    {"cp.async.wait_all", "", 0, wait_all, 0, 80, 0},
    {"membar", "", MODEL, nothing, 0, 0, 0},
    {"fence", "", MODEL, nothing, 0, 0, 0},
    {"prefetch.global.L1", "a", 0, nothing, 0, 0, 0},
    {"prefetch.global.L2", "a", 0, nothing, 0, 0, 0},
    {"nanosleep.u32", "r", 0, nothing, 0, 70, 0},
};

const struct ptx_opcode_list ptx_access_opcodes = {rows, PTX_COUNT(rows)};
