/* What the timings of kernels share: short trials of one parallel section, the best of them,
 * because a shared machine only ever makes things slower. */
#ifndef CORE_KERNELS_BENCH_TRIALS_H
#define CORE_KERNELS_BENCH_TRIALS_H

#include <stddef.h>

#include "core/base/thread_pool.h"

enum { BENCH_TRIALS_ALIGNMENT = 64 };

/* Seconds of the fastest of 5 to 500 trials: as many as 50 ms hold. */
double bench_trials_best(struct thread_pool *pool, int task_count,
                         void (*run_task)(void *context, int task, int worker), void *context);

/* To a multiple of BENCH_TRIALS_ALIGNMENT, as aligned_alloc wants it. */
size_t bench_trials_round_up(size_t bytes);

#endif
