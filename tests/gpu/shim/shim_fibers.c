/* Fibers with their own stacks; a switch saves what the ABI says a callee must keep. */
#include "tests/gpu/shim/shim_fibers.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIBERS_MAX = 1024, WARPS_MAX = FIBERS_MAX / 32, STACK_BYTES = 256 << 10, SLOT_BYTES = 64 };

struct fiber {
    void *stack_pointer;
    unsigned char *stack;
    struct shim_place place;
    bool done;
};

/* What a warp exchanges; two slots, since a fast lane may come back before a slow one has read. */
struct warp {
    unsigned char slots[2][32 * SLOT_BYTES];
    unsigned arrived;
    unsigned turn;
};

/* The grid that runs. */
static struct fiber fibers[FIBERS_MAX];
static struct warp warps[WARPS_MAX];
static unsigned current, count, living, arrived, turn;
static int all_so_far, all_of_last_turn;
static void *host_stack_pointer;
static shim_kernel *running;
static const struct shim_arguments *running_arguments;
struct shim_place *shim_fibers_place;

void shim_fibers_switch(void **save, void *load);
__asm__(".text\n"
        ".globl shim_fibers_switch\n"
        "shim_fibers_switch:\n"
        "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "mov %rsp, (%rdi)\n"
        "mov %rsi, %rsp\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
        "ret\n");

/* To the next fiber that is not done; this one, when it is the last. */
static void yield(void) {
    unsigned next = current;
    do
        next = (next + 1) % count;
    while (fibers[next].done && next != current);
    void **save = &fibers[current].stack_pointer;
    if (next == current)
        return;
    current = next;
    shim_fibers_place = &fibers[next].place;
    shim_fibers_switch(save, fibers[next].stack_pointer);
}

static void enter(void) {
    running(*running_arguments);
    fibers[current].done = true;
    if (--living == 0)
        shim_fibers_switch(&fibers[current].stack_pointer, host_stack_pointer);
    yield();
    abort(); /* nobody switches to a fiber that is done */
}

/* A stack on which a first switch returns into `enter`, aligned as behind a call. */
static void prepare(struct fiber *fiber) {
    if (!fiber->stack)
        fiber->stack = aligned_alloc(64, STACK_BYTES);
    if (!fiber->stack)
        abort();
    void **top = (void *)(fiber->stack + STACK_BYTES - 64);
    void (*entry)(void) = enter;
    memcpy(top, &entry, sizeof entry);
    memset(top - 6, 0, 6 * sizeof *top);
    fiber->stack_pointer = top - 6;
    fiber->done = false;
}

void shim_fibers_run(shim_kernel *kernel, const struct shim_arguments *arguments,
                     unsigned block_count, unsigned thread_count) {
    running = kernel;
    running_arguments = arguments;
    count = thread_count;
    for (unsigned block = 0; block < block_count; block++) {
        living = thread_count;
        for (unsigned i = 0; i < thread_count; i++) {
            prepare(&fibers[i]);
            fibers[i].place = (struct shim_place){i, block, thread_count, block_count};
        }
        current = 0;
        shim_fibers_place = &fibers[0].place;
        shim_fibers_switch(&host_stack_pointer, fibers[0].stack_pointer);
    }
}

int shim_fibers_barrier(int predicate) {
    unsigned mine = turn;
    all_so_far = arrived == 0 ? predicate : all_so_far && predicate;
    if (++arrived == count) {
        arrived = 0;
        all_of_last_turn = all_so_far;
        turn++;
    }
    while (turn == mine)
        yield();
    return all_of_last_turn;
}

void shim_fibers_exchange(const void *in, void *all, unsigned bytes) {
    struct warp *warp = &warps[current / 32];
    unsigned mine = warp->turn, lane = current % 32;
    unsigned char *slots = warp->slots[mine % 2];
    memcpy(slots + lane * bytes, in, bytes);
    if (++warp->arrived == 32) {
        warp->arrived = 0;
        warp->turn++;
    }
    while (warp->turn == mine)
        yield();
    memcpy(all, slots, 32 * (size_t)bytes);
}
