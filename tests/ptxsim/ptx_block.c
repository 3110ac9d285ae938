/* Blocks and their barriers. A warp counts as 32 threads at a barrier, as in hardware. */
#include "tests/ptxsim/ptx_block.h"

#include <stdlib.h>
#include <string.h>

#include "tests/ptxsim/ptx_decode.h"
#include "tests/ptxsim/ptx_warp.h"

enum status ptx_block_init(struct ptx_block *block, struct ptxsim *machine,
                           const struct ptx_program *program, const struct ptxsim_launch *launch,
                           struct error *error) {
    *block = (struct ptx_block){.machine = machine, .program = program, .launch = launch};
    block->params = launch->params;
    block->thread_count = launch->block[0] * launch->block[1] * launch->block[2];
    block->warp_count = (block->thread_count + PTX_LANES - 1) / PTX_LANES;
    block->instructions_max = launch->instructions_max ? launch->instructions_max : 1ull << 40;
    block->warps = calloc(block->warp_count, sizeof *block->warps);
    if (!block->warps)
        return error_no_memory(error, "simulated warps");
    for (uint32_t i = 0; i < block->warp_count; i++) {
        struct ptx_warp *warp = &block->warps[i];
        warp->registers = aligned_alloc(64, program->register_bytes + 64);
        warp->defined = malloc(program->register_count * sizeof *warp->defined);
        warp->local = malloc((size_t)program->kernel.local_bytes * PTX_LANES + 1);
        warp->call_params = malloc((size_t)program->call_param_bytes * PTX_LANES + 1);
        if (!warp->registers || !warp->defined || !warp->local || !warp->call_params)
            return error_no_memory(error, "simulated registers");
    }
    return ptx_shared_reserve(&block->shared, program->kernel.shared_bytes + launch->shared_bytes,
                              error);
}

void ptx_block_deinit(struct ptx_block *block) {
    for (uint32_t i = 0; block->warps && i < block->warp_count; i++) {
        free(block->warps[i].registers);
        free(block->warps[i].defined);
        free(block->warps[i].local);
        free(block->warps[i].call_params);
        free(block->warps[i].async);
    }
    free(block->warps);
    ptx_shared_deinit(&block->shared);
}

static void start_warp(struct ptx_block *block, uint32_t index) {
    struct ptx_warp *warp = &block->warps[index];
    const struct ptx_program *program = block->program;
    const uint32_t threads = block->thread_count - index * PTX_LANES;
    warp->block = block;
    warp->program = program;
    warp->index = index;
    warp->state = PTX_WARP_READY;
    warp->live = threads >= PTX_LANES ? PTX_ALL_LANES : (1u << threads) - 1;
    warp->active = warp->parked = warp->carry = 0;
    warp->async_count = 0;
    warp->last_region = NULL;
    memset(warp->async_group, 0, sizeof warp->async_group);
    memset(warp->depth, 0, sizeof warp->depth);
    memset(warp->registers, 0xff, program->register_bytes);
    memset(warp->local, 0xff, (size_t)program->kernel.local_bytes * PTX_LANES);
    memset(warp->defined, 0, program->register_count * sizeof *warp->defined);
    warp->defined[0] = PTX_ALL_LANES;
    for (int lane = 0; lane < PTX_LANES; lane++)
        warp->pcs[lane] = program->entry;
    for (uint32_t i = 0; i < program->special_count; i++)
        ptx_special_fill(warp, &program->specials[i]);
}

/* ---- barriers ---- */
static bool has(const struct ptx_instruction *in, const char *word) {
    const struct view text = in->text;
    return memmem(text.bytes, text.length, word, strlen(word)) != NULL;
}

static uint32_t live_warps(const struct ptx_block *block) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < block->warp_count; i++)
        if (block->warps[i].state != PTX_WARP_DONE)
            mask |= 1u << i;
    return mask;
}

/* Threads that a barrier waits for; 0 where the instruction names none. */
static uint32_t wanted_threads(const struct ptx_warp *warp) {
    const struct ptx_instruction *in = warp->barrier;
    const int operands = in->operand_count - in->write_count;
    if (has(in, ".red") || operands < 2)
        return 0;
    return (
        (const uint32_t *)ptx_operand(warp, in, in->write_count + 1))[__builtin_ctz(warp->active)];
}

/* Fault when it is used in a way that hardware does not define. */
static bool check_arrival(struct ptx_warp *warp, const struct ptx_barrier *barrier,
                          uint32_t expected) {
    const struct ptx_instruction *in = warp->barrier;
    const int lane = __builtin_ctz(warp->active);
    if (expected % PTX_LANES != 0 || expected > PTX_WARPS_MAX * PTX_LANES)
        return ptx_machine_fault(warp, in, lane, PTXSIM_FAULT_DIVERGENT_BARRIER,
                                 "%u threads is no multiple of the warp size", expected);
    if (barrier->arrived_warps == 0 && barrier->passed_warps == 0)
        return true;
    if (barrier->expected != expected)
        return ptx_machine_fault(warp, in, lane, PTXSIM_FAULT_DIVERGENT_BARRIER,
                                 "waits for %u threads, others for %u", expected,
                                 barrier->expected);
    if (expected == 0 && barrier->pc != warp->pc)
        return ptx_machine_fault(warp, in, lane, PTXSIM_FAULT_DIVERGENT_BARRIER,
                                 "other warps wait at PTX line %u",
                                 warp->program->code[barrier->pc].line);
    return true;
}

static bool arrive(struct ptx_warp *warp) {
    struct ptx_block *block = warp->block;
    const struct ptx_instruction *in = warp->barrier;
    const int lane = __builtin_ctz(warp->active);
    const uint32_t id = ((const uint32_t *)ptx_operand(warp, in, in->write_count))[lane];
    if (id >= PTX_BARRIERS)
        return ptx_machine_fault(warp, in, lane, PTXSIM_FAULT_DIVERGENT_BARRIER, "barrier %u of %d",
                                 id, PTX_BARRIERS);
    struct ptx_barrier *barrier = &block->barriers[id];
    const uint32_t expected = wanted_threads(warp);
    if (!check_arrival(warp, barrier, expected))
        return false;
    if (barrier->arrived_warps == 0 && barrier->passed_warps == 0)
        *barrier = (struct ptx_barrier){.expected = expected, .pc = warp->pc};
    if (has(in, ".red"))
        warp->barrier_value =
            ptx_predicate(warp, &in->operands[in->operand_count - 1]) & warp->active;
    warp->barrier_id = id;
    if (has(in, "arrive")) {
        barrier->passed_warps |= 1u << warp->index;
        ptx_warp_release(warp);
    } else {
        barrier->arrived_warps |= 1u << warp->index;
    }
    return true;
}

/* The joined predicates of a bar.red, to every waiting warp. */
static void reduce(struct ptx_block *block, uint32_t warps) {
    uint32_t count = 0, threads = 0;
    for (uint32_t rest = warps; rest != 0; rest &= rest - 1) {
        const struct ptx_warp *warp = &block->warps[__builtin_ctz(rest)];
        count += (uint32_t)__builtin_popcount(warp->barrier_value);
        threads += (uint32_t)__builtin_popcount(warp->active);
    }
    for (uint32_t rest = warps; rest != 0; rest &= rest - 1) {
        struct ptx_warp *warp = &block->warps[__builtin_ctz(rest)];
        const struct ptx_instruction *in = warp->barrier;
        if (!has(in, ".red"))
            continue;
        uint32_t *d = ptx_operand(warp, in, 0);
        if (has(in, ".popc"))
            PTX_EACH_LANE(warp->active, d[lane] = count);
        else
            ptx_set_predicate(warp, &in->operands[0],
                              (has(in, ".and") ? count == threads : count > 0) ? ~0u : 0,
                              warp->active);
    }
}

static void open_barriers(struct ptx_block *block) {
    const uint32_t live = live_warps(block);
    for (int id = 0; id < PTX_BARRIERS; id++) {
        struct ptx_barrier *barrier = &block->barriers[id];
        const uint32_t there = barrier->arrived_warps | barrier->passed_warps;
        const uint32_t count = (uint32_t)__builtin_popcount(there) * PTX_LANES;
        const bool full = barrier->expected ? count >= barrier->expected : (live & ~there) == 0;
        if (there == 0 || !full)
            continue;
        reduce(block, barrier->arrived_warps);
        ptx_shared_order(&block->shared, there);
        for (uint32_t rest = barrier->arrived_warps; rest != 0; rest &= rest - 1)
            ptx_warp_release(&block->warps[__builtin_ctz(rest)]);
        *barrier = (struct ptx_barrier){0};
        block->counters.barriers++;
    }
}

/* ---- order ---- */
static uint64_t next_random(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15ull; /* splitmix64 */
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* The next warp to run, NULL: none is ready. */
static struct ptx_warp *pick(struct ptx_block *block) {
    uint32_t ready = 0;
    for (uint32_t i = 0; i < block->warp_count; i++)
        if (block->warps[i].state == PTX_WARP_READY)
            ready |= 1u << i;
    if (ready == 0)
        return NULL;
    if (block->launch->order == PTXSIM_DESCENDING)
        return &block->warps[31 - __builtin_clz(ready)];
    if (block->launch->order == PTXSIM_RANDOM) {
        uint32_t skip =
            (uint32_t)(next_random(&block->random) % (uint32_t)__builtin_popcount(ready));
        for (; skip > 0; skip--)
            ready &= ready - 1;
    }
    return &block->warps[__builtin_ctz(ready)];
}

static bool deadlock(struct ptx_block *block) {
    for (uint32_t i = 0; i < block->warp_count; i++) {
        struct ptx_warp *warp = &block->warps[i];
        if (warp->state == PTX_WARP_WAITING)
            return ptx_machine_fault(
                warp, warp->barrier, __builtin_ctz(warp->active), PTXSIM_FAULT_DEADLOCK,
                "no warp can run, this one waits at barrier %u", warp->barrier_id);
    }
    return true;
}

bool ptx_block_run(struct ptx_block *block, uint64_t linear) {
    const uint32_t *grid = block->launch->grid;
    block->index[0] = (uint32_t)(linear % grid[0]);
    block->index[1] = (uint32_t)(linear / grid[0] % grid[1]);
    block->index[2] = (uint32_t)(linear / grid[0] / grid[1]);
    block->instructions = 0;
    block->random = block->launch->seed ^ (linear * 0x2545f4914f6cdd1dull);
    memset(block->barriers, 0, sizeof block->barriers);
    ptx_shared_reset(&block->shared,
                     block->program->kernel.shared_bytes + block->launch->shared_bytes);
    for (uint32_t i = 0; i < block->warp_count; i++)
        start_warp(block, i);
    for (;;) {
        struct ptx_warp *warp = pick(block);
        if (!warp)
            return deadlock(block);
        if (!ptx_warp_run(warp))
            return false;
        if (warp->state == PTX_WARP_WAITING && !arrive(warp))
            return false;
        open_barriers(block);
    }
}
