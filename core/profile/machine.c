/* The ladder is climbed with a pool of its own, as wide as the process may be, so that a run with
 * too few threads can be told what more would bring. */
#include "core/profile/machine.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/clock.h"

enum {
    DISPATCH_TRIALS = 400,
    DISPATCH_NS = 20000000,
    SOFTMAX_ROWS = 16,
    SOFTMAX_PAGES = 64,
    SOFTMAX_TRIALS = 12,
};

/* ---- parts ---- */

static double better(double a, double b) {
    return a > b ? a : b;
}

static void merge_steps(struct machine *into, const struct machine *other) {
    for (int i = 0; i < into->step_count && i < other->step_count; i++) {
        struct ceilings_step *step = &into->steps[i];
        if (step->threads != other->steps[i].threads)
            continue;
        step->flops = better(step->flops, other->steps[i].flops);
        step->memory = better(step->memory, other->steps[i].memory);
        step->cache = better(step->cache, other->steps[i].cache);
    }
}

static void add_step(struct machine *machine, int threads) {
    int place = machine->step_count;
    while (place > 0 && machine->steps[place - 1].threads >= threads)
        if (machine->steps[--place].threads == threads)
            return;
    for (int i = machine->step_count++; i > place; i--)
        machine->steps[i] = machine->steps[i - 1];
    machine->steps[place] = (struct ceilings_step){.threads = threads};
}

static void choose_steps(struct machine *machine, int most) {
    for (int threads = 1; threads < most && machine->step_count < MACHINE_LADDER_MAX - 3;
         threads *= 2)
        add_step(machine, threads);
    add_step(machine, machine->threads);
    add_step(machine, machine->threads_max);
}

/* A task waits for all others, so that each thread takes one: what a section costs that all of them
 * work in. */
struct gate {
    atomic_int arrived;
    int threads;
};

static void pass_gate(void *context, int task, int worker) {
    (void)task, (void)worker;
    struct gate *gate = context;
    atomic_fetch_add(&gate->arrived, 1);
    while (atomic_load(&gate->arrived) < gate->threads)
        ;
}

static int compare_times(const void *left, const void *right) {
    const int64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* The fastest tenth's slowest section: neighbours only slow. More threads than CPUs take long for
 * each, so time is limited, too. */
static double dispatch_seconds(struct thread_pool *pool) {
    int64_t times[DISPATCH_TRIALS], begin_ns = clock_now_ns();
    int count = 0;
    while (count < DISPATCH_TRIALS && clock_now_ns() - begin_ns < DISPATCH_NS) {
        struct gate gate = {.threads = thread_pool_count(pool)};
        int64_t start_ns = clock_now_ns();
        thread_pool_run(pool, gate.threads, pass_gate, &gate);
        times[count++] = clock_now_ns() - start_ns;
    }
    qsort(times, (size_t)count, sizeof *times, compare_times);
    return (double)times[count / 10] * 1e-9;
}

/* Online softmax over pages in the first-level cache, as attention does it: per exponential. */
static double exponentials_of_one(const struct attention_kernels *kernels) {
    static const int count = SOFTMAX_ROWS * PANEL_COLUMNS;
    float scores[SOFTMAX_ROWS * PANEL_COLUMNS], probabilities[SOFTMAX_ROWS * PANEL_COLUMNS];
    float most[SOFTMAX_ROWS], sums[SOFTMAX_ROWS * SOFTMAX_LANES] = {0}, factors[SOFTMAX_ROWS];
    int64_t best = INT64_MAX;
    for (int i = 0; i < count; i++)
        scores[i] = (float)(i % 37) * -0.3f;
    for (int trial = 0; trial < SOFTMAX_TRIALS; trial++) {
        for (int r = 0; r < SOFTMAX_ROWS; r++)
            most[r] = 0;
        int64_t start_ns = clock_now_ns();
        for (int page = 0; page < SOFTMAX_PAGES; page++)
            kernels->softmax_page(scores, SOFTMAX_ROWS, probabilities, most, sums, factors);
        int64_t elapsed_ns = clock_now_ns() - start_ns;
        best = elapsed_ns > 0 && elapsed_ns < best ? elapsed_ns : best;
    }
    return (double)count * SOFTMAX_PAGES / ((double)best * 1e-9);
}

static double int8_flops_of(const struct cpu_features *features, struct thread_pool *pool,
                            const struct ceilings_step *run, struct error *error) {
    struct kernels kernels = kernels_select(features);
    struct ceilings_step step = {.threads = run->threads};
    kernels_add_int8(&kernels, features);
    if (kernels.linear_int8->spin == NULL ||
        ceilings_ladder(kernels.linear_int8, pool, &step, 1, error) != STATUS_OK)
        return 0;
    return step.flops;
}

/* As the kernel tells it: the C library may count the caches of the whole host. */
static double cache_size(void) {
    double kilobytes = 0;
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
    if (file != NULL) {
        if (fscanf(file, "%lfK", &kilobytes) != 1)
            kilobytes = 0;
        fclose(file);
    }
    long bytes = kilobytes > 0 ? 0 : sysconf(_SC_LEVEL3_CACHE_SIZE);
    return kilobytes > 0 ? kilobytes * 1024 : bytes > 0 ? (double)bytes : 0;
}

/* The ladder is climbed twice: a neighbour's moment is shorter than that. */
static enum status climb(const struct linear_kernels *kernels, struct thread_pool *pool,
                         struct machine *machine, struct error *error) {
    struct machine again = *machine;
    TRY(ceilings_ladder(kernels, pool, machine->steps, machine->step_count, error));
    TRY(ceilings_ladder(kernels, pool, again.steps, again.step_count, error));
    merge_steps(machine, &again);
    return STATUS_OK;
}

static enum status measure(const struct kernels *kernels, const struct cpu_features *features,
                           struct thread_pool *pool, struct machine *machine, struct error *error) {
    TRY(climb(kernels->linear, pool, machine, error));
    struct ceilings_step run = machine_with(machine, machine->threads);
    struct ceilings_step one = machine_with(machine, 1);
    machine->cache_bytes = run.cache;
    machine->exponentials = exponentials_of_one(kernels->attention) * run.flops / one.flops;
    machine->int8_flops = int8_flops_of(features, pool, &run, error);
    machine->cache_size = cache_size();
    machine->units_shared = kernels->linear->release == NULL; /* no unit beside the vector's */
    return STATUS_OK;
}

static enum status measure_dispatch(struct machine *machine, struct error *error) {
    struct thread_pool *pool;
    TRY(thread_pool_create(machine->threads, false, &pool, error));
    machine->dispatch_seconds = machine->threads > 1 ? dispatch_seconds(pool) : 0;
    thread_pool_destroy(pool);
    return STATUS_OK;
}

enum status machine_measure(const struct kernels *kernels, const struct cpu_features *features,
                            int threads, int threads_max, struct machine *machine,
                            struct error *error) {
    struct thread_pool *pool;
    int most = threads > threads_max ? threads : threads_max;
    *machine = (struct machine){.threads = threads, .threads_max = threads_max};
    choose_steps(machine, most);
    TRY(measure_dispatch(machine, error));
    TRY(thread_pool_create(most, false, &pool, error));
    enum status status = measure(kernels, features, pool, machine, error);
    thread_pool_destroy(pool);
    return status;
}

/* ---- reading ---- */

static double between(double from, double to, double share) {
    return from + (to - from) * share;
}

struct ceilings_step machine_with(const struct machine *machine, int threads) {
    const struct ceilings_step *steps = machine->steps;
    int above = 0;
    while (above < machine->step_count - 1 && steps[above].threads < threads)
        above++;
    if (above == 0 || steps[above].threads <= threads)
        return steps[above];
    const struct ceilings_step *low = &steps[above - 1], *high = &steps[above];
    double share = (double)(threads - low->threads) / (high->threads - low->threads);
    return (struct ceilings_step){
        .threads = threads,
        .flops = between(low->flops, high->flops, share),
        .memory = between(low->memory, high->memory, share),
        .cache = between(low->cache, high->cache, share),
    };
}

struct classify_roofs machine_roofs(const struct machine *machine, bool int8_matmul) {
    struct ceilings_step run = machine_with(machine, machine->threads);
    return (struct classify_roofs){
        .flops = run.flops,
        .int8_flops = int8_matmul ? machine->int8_flops : 0,
        .exponentials = machine->exponentials,
        .memory_bytes = run.memory,
        .cache_bytes = machine->cache_bytes > run.memory ? machine->cache_bytes : run.memory,
        .cache_size = machine->cache_size,
        .dispatch_seconds = machine->dispatch_seconds,
        .units_shared = machine->units_shared,
    };
}

static double apart(double a, double b) {
    double most = a > b ? a : b;
    return most > 0 ? fabs(a - b) / most : 0;
}

/* One standard deviation, of two measurements. */
double machine_noise(const struct machine *before, const struct machine *after) {
    return apart(machine_with(before, before->threads).flops,
                 machine_with(after, after->threads).flops) /
           sqrt(2);
}

double machine_drift(const struct machine *before, const struct machine *after) {
    struct ceilings_step a = machine_with(before, before->threads);
    struct ceilings_step b = machine_with(after, after->threads);
    double flops = apart(a.flops, b.flops), memory = apart(a.memory, b.memory);
    return flops > memory ? flops : memory;
}

void machine_merge(struct machine *into, const struct machine *other) {
    merge_steps(into, other);
    into->int8_flops = better(into->int8_flops, other->int8_flops);
    into->exponentials = better(into->exponentials, other->exponentials);
    into->cache_bytes = better(into->cache_bytes, other->cache_bytes);
    if (other->dispatch_seconds > 0 && other->dispatch_seconds < into->dispatch_seconds)
        into->dispatch_seconds = other->dispatch_seconds;
}

/* ---- others ---- */

static double own_seconds(const struct rusage *usage) {
    return (double)usage->ru_utime.tv_sec + (double)usage->ru_utime.tv_usec * 1e-6 +
           (double)usage->ru_stime.tv_sec + (double)usage->ru_stime.tv_usec * 1e-6;
}

void machine_load_now(struct machine_load *load) {
    struct rusage usage = {0};
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, stolen = 0;
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    getrusage(RUSAGE_SELF, &usage);
    *load = (struct machine_load){.wall = (double)clock_now_ns() * 1e-9,
                                  .own = own_seconds(&usage),
                                  .major_faults = usage.ru_majflt};
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL)
        return;
    if (fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait,
               &irq, &soft, &stolen) == 8) {
        load->busy = (user + nice + system + irq + soft) * tick;
        load->stolen = stolen * tick;
        load->all = load->busy + load->stolen + (idle + wait) * tick;
    }
    fclose(file);
}

struct machine_others machine_others_between(const struct machine_load *before,
                                             const struct machine_load *after) {
    double all = after->all - before->all;
    double others = (after->busy - before->busy) - (after->own - before->own);
    struct machine_others result = {.major_faults = after->major_faults - before->major_faults};
    if (all <= 0)
        return result;
    result.stolen_share = (after->stolen - before->stolen) / all;
    result.others_share = others > 0 ? others / all : 0;
    return result;
}
