/* How work is cut into tasks for the pool. Nothing here changes a bit of any result. */
#include "core/engine/backend_cpu_state.h"

enum {
    FEW_VALUES = 24 * 1024, /* fewer are done sooner than the pool is woken */
    TASKS_PER_WORKER = 4,   /* of a row loop: evens out workers that lose their core */
};

void backend_cpu_tasks_run(struct backend_cpu *cpu, int task_count, size_t value_count,
                           void (*function)(void *context, int task, int worker), void *context) {
    if (cpu->worker_count > 1 && task_count > 1 && value_count > FEW_VALUES) {
        thread_pool_run(cpu->pool, task_count, function, context);
        return;
    }
    for (int task = 0; task < task_count; task++)
        function(context, task, 0);
}

struct row_parts {
    const struct cpu_row_loop *loop;
    int part_count;
};

static void run_part(void *context, int task, int worker) {
    (void)worker;
    const struct row_parts *parts = context;
    int64_t rows = parts->loop->row_count;
    int first = (int)(rows * task / parts->part_count);
    int end = (int)(rows * (task + 1) / parts->part_count);
    parts->loop->function(parts->loop->context, first, end);
}

void backend_cpu_tasks_over_rows(struct backend_cpu *cpu, const struct cpu_row_loop *loop) {
    struct row_parts parts = {loop, TASKS_PER_WORKER * cpu->worker_count};
    if (parts.part_count > loop->row_count)
        parts.part_count = loop->row_count;
    backend_cpu_tasks_run(cpu, parts.part_count, (size_t)loop->row_count * loop->values_per_row,
                          run_part, &parts);
}
