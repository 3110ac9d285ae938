/* Launches: limits, and the blocks one after the other or, where nothing can depend on their order,
 * on several threads with the fault of the first block in order reported. */
#include <pthread.h>
#include <stdlib.h>

#include "tests/ptxsim/ptx_block.h"

static enum status over(struct error *error, const char *what, uint64_t asked, uint64_t most) {
    return error_set(error, STATUS_BAD_INPUT, "%s %llu is over the device's %llu", what,
                     (unsigned long long)asked, (unsigned long long)most);
}

static enum status check_limits(const struct ptxsim_device *device,
                                const struct ptxsim_kernel *kernel,
                                const struct ptxsim_launch *launch, struct error *error) {
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->grid[i] == 0 || launch->block[i] == 0)
            return error_set(error, STATUS_BAD_INPUT, "a grid or block extent of 0");
        if (launch->grid[i] > device->grid_max[i])
            return over(error, "grid extent", launch->grid[i], device->grid_max[i]);
        if (launch->block[i] > device->block_max[i])
            return over(error, "block extent", launch->block[i], device->block_max[i]);
        threads *= launch->block[i];
    }
    if (threads > device->block_threads_max)
        return over(error, "thread count", threads, device->block_threads_max);
    if (kernel->threads_max && threads > kernel->threads_max)
        return over(error, "thread count of a kernel compiled for fewer,", threads,
                    kernel->threads_max);
    const uint64_t shared = (uint64_t)kernel->shared_bytes + launch->shared_bytes;
    const uint32_t most =
        launch->shared_optin ? device->shared_optin_bytes : device->shared_default_bytes;
    if (shared > most)
        return over(error, "shared memory of a block,", shared, most);
    if (kernel->param_bytes > 0 && !launch->params)
        return error_set(error, STATUS_BAD_INPUT, "no parameters");
    return STATUS_OK;
}

static void add_counters(struct ptxsim_counters *to, const struct ptxsim_counters *from) {
    to->warp_instructions += from->warp_instructions;
    to->thread_instructions += from->thread_instructions;
    to->matrix_instructions += from->matrix_instructions;
    to->global_sectors += from->global_sectors;
    to->global_sectors_min += from->global_sectors_min;
    to->shared_wavefronts_min += from->shared_wavefronts_min;
    to->shared_conflicts += from->shared_conflicts;
    to->local_accesses += from->local_accesses;
    to->barriers += from->barriers;
}

/* Each worker takes every `stride`-th block of the order. */
struct worker {
    struct ptx_block block;
    uint64_t first, stride, count;
    uint64_t failed_at; /* position in the order; `count`: no fault */
    bool started;
    pthread_t thread;
};

static void *run_blocks(void *context) {
    struct worker *worker = context;
    const bool down = worker->block.launch->order == PTXSIM_DESCENDING;
    worker->failed_at = worker->count;
    for (uint64_t i = worker->first; i < worker->count; i += worker->stride) {
        if (!ptx_block_run(&worker->block, down ? worker->count - 1 - i : i)) {
            worker->failed_at = i;
            break;
        }
    }
    return NULL;
}

static void run_workers(struct worker *workers, int count) {
    for (int i = 1; i < count; i++)
        workers[i].started = pthread_create(&workers[i].thread, NULL, run_blocks, &workers[i]) == 0;
    for (int i = 0; i < count; i++)
        if (!workers[i].started)
            run_blocks(&workers[i]);
    for (int i = 1; i < count; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
}

static enum status conclude(struct worker *workers, int count, struct ptxsim_report *report,
                            struct error *error) {
    const struct worker *first = &workers[0];
    struct ptxsim_counters counters = {0};
    for (int i = 0; i < count; i++) {
        add_counters(&counters, &workers[i].block.counters);
        if (workers[i].failed_at < first->failed_at)
            first = &workers[i];
    }
    *report = first->block.report;
    report->counters = counters;
    if (first->failed_at == first->count)
        return STATUS_OK;
    return error_set(error, first->block.error.status, "%s", first->block.error.text);
}

enum status ptxsim_launch(struct ptxsim *machine, const struct ptxsim_kernel *kernel,
                          const struct ptxsim_launch *launch, struct ptxsim_report *report,
                          struct error *error) {
    const struct ptx_program *program = (const struct ptx_program *)kernel;
    *report = (struct ptxsim_report){.kernel = kernel->name};
    TRY(check_limits(&machine->device, kernel, launch, error));
    const uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    uint64_t count =
        launch->host_threads > 1 && !program->has_atomics ? (uint64_t)launch->host_threads : 1;
    if (count > blocks)
        count = blocks;
    struct worker *workers = calloc(count, sizeof *workers);
    if (!workers)
        return error_no_memory(error, "simulated blocks");
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
        workers[i].first = i;
        workers[i].stride = count;
        workers[i].count = blocks;
        status = ptx_block_init(&workers[i].block, machine, program, launch, error);
    }
    if (status == STATUS_OK) {
        run_workers(workers, (int)count);
        status = conclude(workers, (int)count, report, error);
    }
    for (uint64_t i = 0; i < count; i++)
        ptx_block_deinit(&workers[i].block);
    free(workers);
    return status;
}
