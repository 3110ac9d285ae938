/* One section = one count of tasks still to be claimed. A worker claims by decrementing `unclaimed`
 * and only then reads what the section is: whoever holds a claim keeps the section open, because it
 * ends only when `unfinished` has been brought to zero by every holder. So a worker that comes
 * late, from whatever earlier section, either finds nothing or joins the present one; it can never
 * mix the two, and nobody waits for a worker that holds no task.
 *
 * Sleeping follows one pattern twice: the sleeper announces itself, then waits on a futex word
 * whose expected value it read before; the waker changes the word, then looks for sleepers. Both
 * sides are sequentially consistent, so one of them sees the other. */
#include "core/base/thread_pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/cpu_affinity.h"
#include "core/base/thread_seats.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

enum {
    THREADS_MAX = 1024,
    CACHE_LINE = 64,
    SPIN_NS = 50000,        /* longer than the gap between two sections of a step */
    SPIN_CROWDED_NS = 2000, /* more threads than CPUs: the one waited for needs this CPU */
    SEATS_NS = 10000,       /* from look to look at those waited for */
    PAUSES_PER_LOOK = 32
};

struct worker {
    struct thread_pool *pool;
    int index;
    int cpu; /* -1: not pinned */
    pthread_t thread;
};

struct thread_pool {
    /* Written by the caller while no claim is held. */
    void (*function)(void *context, int task_index, int worker_index);
    void *context;
    int task_count;
    int thread_count;
    struct thread_pool_slot *slots; /* [thread_count] of this section; NULL: it is not recorded */
    struct thread_pool_meter *meter;
    int64_t spin_ns;
    struct thread_seats *seats;
    struct worker *workers; /* [thread_count - 1], worker 1 first */
    void (*_Atomic before_sleep)(void);

    _Alignas(CACHE_LINE) atomic_int unclaimed;
    _Alignas(CACHE_LINE) atomic_int unfinished; /* futex word of the caller */
    atomic_int caller_sleeps;
    _Alignas(CACHE_LINE) atomic_int section; /* futex word of the workers: counts sections */
    atomic_int sleepers;
    atomic_bool stopping;
};

_Static_assert(sizeof(atomic_int) == 4, "a futex word has 32 bits");

static void futex_wait(atomic_int *word, int expected) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(atomic_int *word, int count) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void pause_briefly(void) {
#if defined(__SSE__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* What a thread waits for: that `word` leaves (`while_equal`) or reaches (otherwise) `value`. */
struct waiting {
    atomic_int *word;
    int value;
    bool while_equal;
};

static bool wait_is_over(const struct waiting *waiting) {
    for (int i = 0; i < PAUSES_PER_LOOK; i++) {
        bool equal = atomic_load_explicit(waiting->word, memory_order_acquire) == waiting->value;
        if (equal != waiting->while_equal)
            return true;
        pause_briefly();
    }
    return false;
}

/* Spins until the wait is over: true. False: it lasted too long or this CPU went to another worker,
 * so the thread should sleep. */
static bool spin(struct thread_pool *pool, int worker_index, const struct waiting *waiting) {
    int64_t start_ns = 0, look_ns = SEATS_NS;
    while (!wait_is_over(waiting)) {
        int64_t now_ns = clock_now_ns();
        if (start_ns == 0)
            start_ns = now_ns;
        if (now_ns - start_ns >= pool->spin_ns)
            return false;
        if (now_ns - start_ns < look_ns)
            continue;
        if (thread_seats_look(pool->seats, worker_index))
            return false;
        look_ns += SEATS_NS;
    }
    return true;
}

/* Claims the next task of the present section, or answers -1. */
static int claim_task(struct thread_pool *pool) {
    int left = atomic_load_explicit(&pool->unclaimed, memory_order_relaxed);
    while (left > 0) {
        if (atomic_compare_exchange_weak_explicit(&pool->unclaimed, &left, left - 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return pool->task_count - left;
    }
    return -1;
}

/* Runs what there is to claim; returns the number of tasks done, for `finish_tasks`. The section's
 * slots, like all that belongs to it, are read and written under a claim only. */
static int run_tasks(struct thread_pool *pool, int worker_index) {
    int done = 0;
    struct thread_pool_slot *slot = NULL;
    for (int task; (task = claim_task(pool)) >= 0; done++) {
        if (done == 0 && pool->slots != NULL) {
            slot = &pool->slots[worker_index];
            slot->start_ns = clock_now_ns();
        }
        pool->function(pool->context, task, worker_index);
    }
    if (slot != NULL)
        slot->end_ns = clock_now_ns();
    return done;
}

static void finish_tasks(struct thread_pool *pool, int done) {
    if (done == 0 || atomic_fetch_sub(&pool->unfinished, done) != done)
        return;
    if (atomic_load(&pool->caller_sleeps))
        futex_wake(&pool->unfinished, 1);
}

static void call_before_sleep(struct thread_pool *pool) {
    void (*function)(void) = atomic_load(&pool->before_sleep);
    if (function)
        function();
}

/* Returns the number of the section that ended the wait. */
static int wait_for_section(struct thread_pool *pool, int worker_index, int seen) {
    struct waiting waiting = {&pool->section, seen, true};
    if (!spin(pool, worker_index, &waiting)) {
        call_before_sleep(pool);
        atomic_fetch_add(&pool->sleepers, 1);
        while (atomic_load(&pool->section) == seen)
            futex_wait(&pool->section, seen);
        atomic_fetch_sub(&pool->sleepers, 1);
    }
    return atomic_load(&pool->section);
}

static void wait_for_finish(struct thread_pool *pool) {
    struct waiting waiting = {&pool->unfinished, 0, false};
    if (spin(pool, 0, &waiting))
        return;
    call_before_sleep(pool);
    atomic_store(&pool->caller_sleeps, 1);
    for (int left; (left = atomic_load(&pool->unfinished)) != 0;)
        futex_wait(&pool->unfinished, left);
    atomic_store(&pool->caller_sleeps, 0);
}

static void pin_to(int cpu) {
    cpu_set_t set[CPU_AFFINITY_MAX / CPU_SETSIZE];
    memset(set, 0, sizeof set);
    CPU_SET_S((size_t)cpu, sizeof set, set);
    sched_setaffinity(0, sizeof set, set);
}

static void *worker_main(void *argument) {
    struct worker *worker = argument;
    struct thread_pool *pool = worker->pool;
    if (worker->cpu >= 0)
        pin_to(worker->cpu);
    thread_pool_set_float_mode();
    thread_seats_take(pool->seats, worker->index);
    for (int seen = 0;;) {
        seen = wait_for_section(pool, worker->index, seen);
        if (atomic_load(&pool->stopping))
            return NULL;
        thread_seats_work(pool->seats, worker->index);
        finish_tasks(pool, run_tasks(pool, worker->index));
        thread_seats_rest(pool->seats, worker->index);
    }
}

static void announce_section(struct thread_pool *pool, int wanted) {
    atomic_fetch_add(&pool->section, 1);
    int sleepers = atomic_load(&pool->sleepers);
    if (sleepers > 0)
        futex_wake(&pool->section, sleepers < wanted ? sleepers : wanted);
}

/* Starts the workers with every signal blocked, so that signals reach the program's own threads. */
static enum status start_workers(struct thread_pool *pool, const int *cpus, int cpu_count,
                                 struct error *error) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = 0;
    int started = 0;
    while (started < pool->thread_count - 1 && failure == 0) {
        struct worker *worker = &pool->workers[started];
        *worker = (struct worker){.pool = pool, .index = started + 1, .cpu = -1};
        if (cpus)
            worker->cpu = cpus[worker->index % cpu_count];
        failure = pthread_create(&worker->thread, NULL, worker_main, worker);
        started += failure == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure == 0)
        return STATUS_OK;
    int wanted = pool->thread_count;
    pool->thread_count = started + 1;
    return error_set_errno(error, STATUS_NO_MEMORY, failure, "cannot start thread %d of %d",
                           started + 2, wanted);
}

static void pool_free(struct thread_pool *pool) {
    thread_seats_destroy(pool->seats);
    free(pool->workers);
    free(pool);
}

static struct thread_pool *pool_alloc(int thread_count, bool pin) {
    struct thread_pool *pool = aligned_alloc(CACHE_LINE, sizeof *pool);
    if (!pool)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->thread_count = thread_count;
    pool->workers = calloc((size_t)thread_count, sizeof *pool->workers);
    pool->seats = thread_seats_create(thread_count, !pin);
    if (pool->workers && pool->seats)
        return pool;
    pool_free(pool);
    return NULL;
}

enum status thread_pool_create(int thread_count, bool pin, struct thread_pool **pool,
                               struct error *error) {
    *pool = NULL;
    if (thread_count < 1 || thread_count > THREADS_MAX)
        return error_set(error, STATUS_BAD_INPUT, "thread count must be 1 to %d, got %d",
                         THREADS_MAX, thread_count);
    struct thread_pool *created = pool_alloc(thread_count, pin);
    if (!created)
        return error_no_memory(error, "the thread pool");
    int cpus[CPU_AFFINITY_MAX];
    int cpu_count = cpu_affinity_list(cpus, CPU_AFFINITY_MAX);
    created->spin_ns = thread_count > cpu_count ? SPIN_CROWDED_NS : SPIN_NS;
    enum status status = start_workers(created, pin ? cpus : NULL, cpu_count, error);
    if (status != STATUS_OK)
        thread_pool_destroy(created);
    else
        *pool = created;
    return status;
}

void thread_pool_destroy(struct thread_pool *pool) {
    if (!pool)
        return;
    atomic_store(&pool->stopping, true);
    announce_section(pool, pool->thread_count);
    for (int i = 0; i < pool->thread_count - 1; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pool_free(pool);
}

int thread_pool_count(const struct thread_pool *pool) {
    return pool->thread_count;
}

/* The meter's next section, or NULL when it takes no more. */
static struct thread_pool_slot *begin_recording(struct thread_pool *pool) {
    struct thread_pool_meter *meter = pool->meter;
    pool->slots = NULL;
    if (meter == NULL || meter->count == meter->capacity)
        return NULL;
    size_t threads = (size_t)pool->thread_count;
    pool->slots = meter->slots + (size_t)meter->count * threads;
    memset(pool->slots, 0, threads * sizeof *pool->slots);
    struct thread_pool_slot *section = &meter->sections[meter->count++];
    section->start_ns = clock_now_ns();
    return section;
}

void thread_pool_run(struct thread_pool *pool, int task_count,
                     void (*function)(void *context, int task_index, int worker_index),
                     void *context) {
    if (task_count <= 1 || pool->thread_count == 1) {
        for (int task = 0; task < task_count; task++)
            function(context, task, 0);
        return;
    }
    struct thread_pool_slot *section = begin_recording(pool);
    pool->function = function;
    pool->context = context;
    pool->task_count = task_count;
    atomic_store_explicit(&pool->unfinished, task_count, memory_order_relaxed);
    atomic_store_explicit(&pool->unclaimed, task_count, memory_order_release);
    thread_seats_take(pool->seats, 0);
    thread_seats_work(pool->seats, 0);
    announce_section(pool, task_count - 1);
    finish_tasks(pool, run_tasks(pool, 0));
    thread_seats_rest(pool->seats, 0);
    wait_for_finish(pool);
    if (section != NULL)
        section->end_ns = clock_now_ns();
}

void thread_pool_measure(struct thread_pool *pool, struct thread_pool_meter *meter) {
    pool->meter = meter;
}

void thread_pool_before_sleep(struct thread_pool *pool, void (*function)(void)) {
    atomic_store(&pool->before_sleep, function);
}

void thread_pool_set_float_mode(void) {
#if defined(__SSE__)
    enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x40 };
    _mm_setcsr(_mm_getcsr() | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
#endif
}
