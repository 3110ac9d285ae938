/* A grid as fibers of one host thread, for kernels compiled by a C++ compiler: blocks one after
 * another, the threads of a block in turns, switched at barriers and warp collectives only. x86-64.
 */
#ifndef TESTS_GPU_SHIM_SHIM_FIBERS_H
#define TESTS_GPU_SHIM_SHIM_FIBERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shim_place {
    unsigned thread;
    unsigned block;
    unsigned thread_count;
    unsigned block_count;
};
/* Of the fiber that runs. */
extern struct shim_place *shim_fibers_place;

/* Kernels take their arguments by value; so much of the bytes is passed, in memory, whatever the
 * kernel's own type. */
enum { SHIM_ARGUMENT_BYTES = 256 };
struct shim_arguments {
    char bytes[SHIM_ARGUMENT_BYTES];
};
typedef void shim_kernel(struct shim_arguments arguments);

/* thread_count: a multiple of 32, at most 1024. */
void shim_fibers_run(shim_kernel *kernel, const struct shim_arguments *arguments,
                     unsigned block_count, unsigned thread_count);

/* Until all threads of the block are here; whether all predicates hold. */
int shim_fibers_barrier(int predicate);

/* all[lane] = the warp's `in`, of at most 64 bytes each. */
void shim_fibers_exchange(const void *in, void *all, unsigned bytes);

#ifdef __cplusplus
}
#endif

#endif
