/* The clock around a section of the pool, again and again. */
#include "core/kernels/bench_trials.h"

#include "core/base/clock.h"

enum { TRIALS_MIN = 5, TRIALS_MAX = 500, BUDGET_NS = 50000000 };

double bench_trials_best(struct thread_pool *pool, int task_count,
                         void (*run_task)(void *context, int task, int worker), void *context) {
    int64_t best = INT64_MAX, begin = clock_now_ns();
    for (int i = 0; i < TRIALS_MAX; i++) {
        int64_t start = clock_now_ns();
        thread_pool_run(pool, task_count, run_task, context);
        int64_t end = clock_now_ns();
        if (end - start < best)
            best = end - start;
        if (i + 1 >= TRIALS_MIN && end - begin > BUDGET_NS)
            break;
    }
    return (double)(best > 0 ? best : 1) * 1e-9;
}

size_t bench_trials_round_up(size_t bytes) {
    return (bytes + BENCH_TRIALS_ALIGNMENT - 1) / BENCH_TRIALS_ALIGNMENT * BENCH_TRIALS_ALIGNMENT;
}
