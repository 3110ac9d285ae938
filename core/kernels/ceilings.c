/* A trial: every thread waits at a gate until all have arrived, works, and stamps its time; the
 * rate is the work of all over the time from the first start to the last end. */
#include "core/kernels/ceilings.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"

enum {
    TRIALS = 12,
    SPIN_ROUNDS = 40000,
    READ_BYTES_A_TRIAL = 32 << 20, /* small buffers are read again and again up to this */
    ALIGNMENT = 4096,
};

static const size_t READ_BYTES_ALL_THREADS = 1u << 30; /* more than the caches of all */

static const size_t read_sizes[CEILINGS_READ_COUNT] = {24u << 10, 384u << 10, 6u << 20, 128u << 20};

struct stamp {
    int64_t start, end;
    double work;
    float sink;
};

struct trial {
    const struct linear_kernels *kernels;
    int thread_count;
    atomic_int arrived;
    struct stamp *stamps; /* [thread_count] */
    char *buffers;        /* [threads of the pool][share_bytes]; one thread alone may read it all */
    size_t share_bytes;
    size_t read_bytes; /* of a buffer; 0: spin instead */
};

static void wait_for_all(struct trial *trial) {
    atomic_fetch_add(&trial->arrived, 1);
    while (atomic_load(&trial->arrived) < trial->thread_count)
        ;
}

/* A task waits for all others, so each thread takes exactly one. */
static void run_task(void *context, int task, int worker) {
    (void)worker;
    struct trial *trial = context;
    struct stamp *stamp = &trial->stamps[task];
    const char *buffer = trial->buffers + (size_t)task * trial->share_bytes;
    wait_for_all(trial);
    stamp->start = clock_now_ns();
    if (trial->read_bytes == 0) {
        stamp->work = (double)trial->kernels->spin(SPIN_ROUNDS, &stamp->sink);
    } else {
        size_t repeats = (READ_BYTES_A_TRIAL + trial->read_bytes - 1) / trial->read_bytes;
        uint64_t mix = 0;
        for (size_t i = 0; i < repeats; i++)
            mix ^= trial->kernels->read(buffer, trial->read_bytes);
        stamp->sink = (float)(mix & 1); /* keeps the reads alive */
        stamp->work = (double)repeats * (double)trial->read_bytes;
    }
    stamp->end = clock_now_ns();
}

static void touch_task(void *context, int task, int worker) {
    (void)worker;
    struct trial *trial = context;
    wait_for_all(trial);
    memset(trial->buffers + (size_t)task * trial->share_bytes, 1, trial->share_bytes);
}

static double rate(const struct trial *trial) {
    int64_t start = trial->stamps[0].start, end = trial->stamps[0].end;
    double work = 0;
    for (int i = 0; i < trial->thread_count; i++) {
        if (trial->stamps[i].start < start)
            start = trial->stamps[i].start;
        if (trial->stamps[i].end > end)
            end = trial->stamps[i].end;
        work += trial->stamps[i].work;
    }
    return end > start ? work / ((double)(end - start) * 1e-9) : 0;
}

static double run_trial(struct trial *trial, struct thread_pool *pool, int thread_count,
                        size_t read_bytes) {
    trial->thread_count = thread_count;
    trial->read_bytes = read_bytes;
    atomic_store(&trial->arrived, 0);
    thread_pool_run(pool, thread_count, run_task, trial);
    return rate(trial);
}

static double best_rate(struct trial *trial, struct thread_pool *pool, int thread_count,
                        size_t read_bytes) {
    double best = 0;
    int trials = read_bytes > READ_BYTES_A_TRIAL ? TRIALS / 4 : TRIALS;
    for (int i = 0; i < trials; i++) {
        double found = run_trial(trial, pool, thread_count, read_bytes);
        if (found > best)
            best = found;
    }
    return best;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t share_of(size_t thread_count) {
    size_t share = READ_BYTES_ALL_THREADS / thread_count / ALIGNMENT * ALIGNMENT;
    return smaller(share, read_sizes[CEILINGS_READ_COUNT - 1]);
}

size_t ceilings_memory_bytes(int thread_count) {
    return (size_t)thread_count * share_of((size_t)thread_count);
}

static enum status allocate(struct trial *trial, struct thread_pool *pool, struct error *error) {
    size_t threads = (size_t)thread_pool_count(pool);
    trial->share_bytes = share_of(threads);
    trial->stamps = calloc(threads, sizeof *trial->stamps);
    trial->buffers = aligned_alloc(ALIGNMENT, ceilings_memory_bytes((int)threads));
    if (trial->stamps == NULL || trial->buffers == NULL)
        return error_no_memory(error, "buffers to measure the machine with");
    trial->thread_count = (int)threads;
    thread_pool_run(pool, (int)threads, touch_task, trial);
    return STATUS_OK;
}

static void release(struct trial *trial) {
    free(trial->stamps);
    free(trial->buffers);
}

static void measure(struct trial *trial, struct thread_pool *pool, struct ceilings *ceilings) {
    int threads = thread_pool_count(pool);
    ceilings->flops_one = best_rate(trial, pool, 1, 0);
    ceilings->flops_all = best_rate(trial, pool, threads, 0);
    for (int i = 0; i < CEILINGS_READ_COUNT; i++)
        ceilings->read[i] = (struct ceilings_read){
            .bytes = read_sizes[i],
            .one = best_rate(trial, pool, 1, read_sizes[i]),
            .all = best_rate(trial, pool, threads, smaller(read_sizes[i], trial->share_bytes)),
        };
}

enum status ceilings_measure(const struct linear_kernels *kernels, struct thread_pool *pool,
                             struct ceilings *ceilings, struct error *error) {
    struct trial trial = {.kernels = kernels};
    enum status status = allocate(&trial, pool, error);
    if (status == STATUS_OK)
        measure(&trial, pool, ceilings);
    release(&trial);
    return status;
}

static void climb(struct trial *trial, struct thread_pool *pool, struct ceilings_step *steps,
                  int step_count) {
    size_t cached = smaller(read_sizes[CEILINGS_READ_COUNT - 2], trial->share_bytes);
    for (int i = 0; i < step_count; i++) {
        steps[i].flops = best_rate(trial, pool, steps[i].threads, 0);
        steps[i].memory = best_rate(trial, pool, steps[i].threads, trial->share_bytes);
        steps[i].cache = best_rate(trial, pool, steps[i].threads, cached);
    }
}

enum status ceilings_ladder(const struct linear_kernels *kernels, struct thread_pool *pool,
                            struct ceilings_step *steps, int step_count, struct error *error) {
    struct trial trial = {.kernels = kernels};
    enum status status = allocate(&trial, pool, error);
    if (status == STATUS_OK)
        climb(&trial, pool, steps, step_count);
    release(&trial);
    return status;
}

struct ceilings_probe {
    struct trial trial;
    struct thread_pool *pool;
};

enum status ceilings_probe_open(struct thread_pool *pool, struct ceilings_probe **out,
                                struct error *error) {
    struct ceilings_probe *probe = calloc(1, sizeof *probe);
    if (probe == NULL)
        return error_no_memory(error, "buffers to measure the machine with");
    probe->pool = pool;
    enum status status = allocate(&probe->trial, pool, error);
    if (status == STATUS_OK)
        *out = probe;
    else
        ceilings_probe_close(probe);
    return status;
}

void ceilings_probe_close(struct ceilings_probe *probe) {
    if (probe != NULL)
        release(&probe->trial);
    free(probe);
}

double ceilings_probe_flops(struct ceilings_probe *probe, const struct linear_kernels *kernels) {
    probe->trial.kernels = kernels;
    return run_trial(&probe->trial, probe->pool, thread_pool_count(probe->pool), 0);
}

double ceilings_probe_read(struct ceilings_probe *probe, const struct linear_kernels *kernels) {
    probe->trial.kernels = kernels;
    return run_trial(&probe->trial, probe->pool, thread_pool_count(probe->pool),
                     probe->trial.share_bytes);
}
