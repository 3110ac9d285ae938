/* A pool that runs short parallel sections many thousand times a second.
 *
 * Tasks are claimed from an atomic counter, so a worker that loses its core delays only the task it
 * holds, and it is lent the core of one that waits for it (thread_seats.h). Waiting is a bounded
 * spin, then a futex: a busy neighbour on one core must not make the others burn theirs. Results
 * must not depend on which worker runs a task. The calling thread is worker 0. */
#ifndef CORE_BASE_THREAD_POOL_H
#define CORE_BASE_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

struct thread_pool;

/* thread_count ≥ 1 includes the caller. Every worker sets FTZ/DAZ; so must the caller
 * (thread_pool_set_float_mode). `pin` binds worker i ≥ 1 to the i-th CPU of the affinity mask, and
 * no CPU is ever lent; the caller, whose mask later threads would inherit, is left alone. Workers
 * take no signals. */
enum status thread_pool_create(int thread_count, bool pin, struct thread_pool **pool,
                               struct error *error);
void thread_pool_destroy(struct thread_pool *pool);

int thread_pool_count(const struct thread_pool *pool);

/* Runs function(context, task_index, worker_index) for every task_index in [0, task_count) and
 * returns when all have finished. One caller at a time. No allocation. */
void thread_pool_run(struct thread_pool *pool, int task_count,
                     void (*function)(void *context, int task_index, int worker_index),
                     void *context);

/* From now on a thread of the pool, the caller too, calls `function` before it sleeps for want of
 * work; NULL: no more. Not while a section runs. */
void thread_pool_before_sleep(struct thread_pool *pool, void (*function)(void));

/* When each worker worked in the sections since `count` was last set to 0; clocks of clock_now_ns.
 * Sections beyond `capacity`, and those the caller does alone, are not recorded. */
struct thread_pool_slot {
    int64_t start_ns, end_ns; /* both 0: it came too late to find a task */
};
struct thread_pool_meter {
    int capacity, count;
    struct thread_pool_slot *sections; /* [capacity]: from announcing to the last task's end */
    struct thread_pool_slot *slots;    /* [capacity][thread_pool_count] */
};

/* Sections are recorded in `meter` from now on; NULL: no more. Not while a section runs. */
void thread_pool_measure(struct thread_pool *pool, struct thread_pool_meter *meter);

/* Flush denormals to zero in the calling thread. */
void thread_pool_set_float_mode(void);

#endif
