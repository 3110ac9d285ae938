/* Sections are tiny on purpose: the mistakes a pool can make live between two of them. */
#include "tests/support/thread_pool_cases.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/thread_pool.h"

enum { TASKS_MAX = 1000 };

struct section {
    int number;
    int threads;
    atomic_int runs[TASKS_MAX];
    atomic_int strange_workers;
};

static void count_run(void *context, int task_index, int worker_index) {
    struct section *section = context;
    atomic_fetch_add(&section->runs[task_index], 1);
    if (worker_index < 0 || worker_index >= section->threads)
        atomic_fetch_add(&section->strange_workers, 1);
}

/* Clears the counts it checks, so that a run that belongs elsewhere shows. */
static bool all_ran_once(struct section *section, int tasks) {
    bool good = atomic_load(&section->strange_workers) == 0;
    for (int i = 0; i < TASKS_MAX; i++)
        good = atomic_exchange(&section->runs[i], 0) == (i < tasks) && good;
    return good;
}

static void idle_us(long microseconds) {
    nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
}

static bool run_sections(int threads, int sections, int tasks_max, bool idle) {
    struct thread_pool *pool;
    struct section *contexts = calloc(2, sizeof *contexts);
    if (!contexts || thread_pool_create(threads, false, &pool, NULL) != STATUS_OK) {
        free(contexts);
        return false;
    }
    contexts[0].threads = contexts[1].threads = threads;
    bool good = thread_pool_count(pool) == threads;
    for (int i = 0; i < sections && good; i++) {
        struct section *section = &contexts[i % 2];
        int tasks = i * 7 % (tasks_max + 1);
        thread_pool_run(pool, tasks, count_run, section);
        good = all_ran_once(section, tasks);
        if (idle)
            idle_us(i % 3 * 60);
    }
    thread_pool_destroy(pool);
    free(contexts);
    return good;
}

bool thread_pool_cases_each_task_once(int threads, int sections, int tasks_max) {
    return run_sections(threads, sections, tasks_max, false);
}

bool thread_pool_cases_sleep_and_wake(int threads, int sections) {
    return run_sections(threads, sections, 8, true);
}

/* The caller's task leaves the workers time to take others, which outlast its spin: it sleeps, and
 * must be woken by the last. */
static void count_late(void *context, int task_index, int worker_index) {
    idle_us(worker_index == 0 ? 100 : 500);
    count_run(context, task_index, worker_index);
}

static atomic_int sleeping_threads;
static _Thread_local bool called;

static void count_thread(void) {
    if (!called)
        atomic_fetch_add(&sleeping_threads, 1);
    called = true;
}

static int wait_for_count(int wanted) {
    for (int i = 0; i < 20000 && atomic_load(&sleeping_threads) < wanted; i++)
        idle_us(100);
    return atomic_load(&sleeping_threads);
}

/* The workers, which may be asleep already, are woken by a section and fall asleep again; so does
 * the caller when they take long. Nobody calls what was taken back. */
bool thread_pool_cases_called_before_sleep(int threads) {
    struct thread_pool *pool;
    struct section *section = calloc(1, sizeof *section);
    bool good = section && thread_pool_create(threads, false, &pool, NULL) == STATUS_OK;
    if (good) {
        section->threads = threads;
        atomic_store(&sleeping_threads, 0);
        called = false;
        thread_pool_before_sleep(pool, count_thread);
        for (int i = 0; i < 50 && atomic_load(&sleeping_threads) < threads; i++)
            thread_pool_run(pool, threads, count_late, section);
        good = wait_for_count(threads) == threads;
        thread_pool_before_sleep(pool, NULL);
        called = false;
        thread_pool_run(pool, threads, count_late, section);
        good = atomic_load(&sleeping_threads) == threads && good;
        thread_pool_destroy(pool);
    }
    free(section);
    return good;
}

bool thread_pool_cases_caller_is_woken(int threads, int sections) {
    struct thread_pool *pool;
    struct section *section = calloc(1, sizeof *section);
    bool good = section && thread_pool_create(threads, false, &pool, NULL) == STATUS_OK;
    if (good) {
        section->threads = threads;
        for (int i = 0; i < sections && good; i++) {
            thread_pool_run(pool, threads, count_late, section);
            good = all_ran_once(section, threads);
        }
        thread_pool_destroy(pool);
    }
    free(section);
    return good;
}

/* Each cell becomes the sum of its neighbours in the other row: wrong if any write is missed. */
struct rows {
    unsigned cells[2][64];
    int target;
};

static void add_neighbours(void *context, int task_index, int worker_index) {
    struct rows *rows = context;
    (void)worker_index;
    const unsigned *source = rows->cells[1 - rows->target];
    rows->cells[rows->target][task_index] =
        source[(task_index + 63) % 64] + source[task_index] * 3 + source[(task_index + 1) % 64];
}

bool thread_pool_cases_writes_are_seen(int threads, int sections) {
    struct rows parallel = {.cells = {{1, 2, 3}}};
    struct rows serial = parallel;
    struct thread_pool *pool;
    if (thread_pool_create(threads, false, &pool, NULL) != STATUS_OK)
        return false;
    for (int i = 0; i < sections; i++) {
        parallel.target = serial.target = 1 - i % 2;
        thread_pool_run(pool, 64, add_neighbours, &parallel);
        for (int task = 0; task < 64; task++)
            add_neighbours(&serial, task, 0);
    }
    thread_pool_destroy(pool);
    return memcmp(parallel.cells, serial.cells, sizeof serial.cells) == 0;
}

bool thread_pool_cases_create_destroy(int threads, int rounds) {
    struct section *section = calloc(1, sizeof *section);
    bool good = section != NULL;
    for (int i = 0; i < rounds && good; i++) {
        struct thread_pool *pool;
        section->threads = threads;
        good = thread_pool_create(threads, false, &pool, NULL) == STATUS_OK;
        if (!good)
            break;
        if (i % 2) {
            thread_pool_run(pool, 16, count_run, section);
            good = all_ran_once(section, 16);
        }
        thread_pool_destroy(pool);
    }
    free(section);
    return good;
}
