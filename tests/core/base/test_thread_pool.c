/* The pool under many tiny sections, 1 to 8 threads whatever the number of CPUs, asleep and awake.
 */
#include <criterion/criterion.h>
#include <float.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/thread_pool.h"
#include "tests/support/thread_pool_cases.h"

Test(thread_pool, every_task_runs_exactly_once) {
    for (int threads = 1; threads <= 8; threads++) {
        cr_assert(thread_pool_cases_each_task_once(threads, 1500, 9), "%d threads", threads);
        cr_assert(thread_pool_cases_each_task_once(threads, 30, 999), "%d threads", threads);
    }
}

Test(thread_pool, sleeping_workers_are_woken) {
    for (int threads = 2; threads <= 8; threads += 3)
        cr_assert(thread_pool_cases_sleep_and_wake(threads, 600), "%d threads", threads);
}

Test(thread_pool, a_sleeping_caller_is_woken, .timeout = 30) {
    for (int threads = 2; threads <= 8; threads += 3)
        cr_assert(thread_pool_cases_caller_is_woken(threads, 200), "%d threads", threads);
}

Test(thread_pool, a_thread_is_told_before_it_sleeps, .timeout = 30) {
    for (int threads = 2; threads <= 8; threads += 3)
        cr_assert(thread_pool_cases_called_before_sleep(threads), "%d threads", threads);
}

Test(thread_pool, a_section_sees_the_writes_of_the_one_before) {
    for (int threads = 1; threads <= 8; threads += 2)
        cr_assert(thread_pool_cases_writes_are_seen(threads, 1000), "%d threads", threads);
}

Test(thread_pool, create_and_destroy_in_quick_succession) {
    cr_assert(thread_pool_cases_create_destroy(4, 100));
}

static void forbidden(void *context, int task_index, int worker_index) {
    (void)context, (void)task_index, (void)worker_index;
    cr_assert_fail("no task was to run");
}

Test(thread_pool, no_tasks_is_nothing) {
    struct thread_pool *pool;
    cr_assert_eq(thread_pool_create(2, false, &pool, NULL), STATUS_OK);
    thread_pool_run(pool, 0, forbidden, NULL);
    thread_pool_destroy(pool);
    thread_pool_destroy(NULL);
}

Test(thread_pool, thread_counts_out_of_range_are_refused) {
    struct thread_pool *pool;
    struct error error;
    cr_assert_eq(thread_pool_create(0, false, &pool, &error), STATUS_BAD_INPUT);
    cr_assert_null(pool);
    cr_assert_eq(thread_pool_create(100000, false, &pool, &error), STATUS_BAD_INPUT);
    cr_assert_not_null(strstr(error.text, "100000"));
}

/* The task that stays behind holds up itself only: the caller does all the others. */
struct laggard {
    atomic_int held;
    atomic_int others;
};

static void lag_once(void *context, int task_index, int worker_index) {
    struct laggard *laggard = context;
    (void)task_index;
    if (worker_index != 0 && atomic_exchange(&laggard->held, 1) == 0)
        while (atomic_load(&laggard->others) < 99)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    else if (atomic_fetch_add(&laggard->others, 1) == 0)
        for (int i = 0; i < 1000 && atomic_load(&laggard->held) == 0; i++)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

Test(thread_pool, a_worker_that_lost_its_core_delays_one_task) {
    struct thread_pool *pool;
    cr_assert_eq(thread_pool_create(2, false, &pool, NULL), STATUS_OK);
    struct laggard laggard = {0};
    thread_pool_run(pool, 100, lag_once, &laggard);
    cr_assert_eq(atomic_load(&laggard.held), 1);
    cr_assert_eq(atomic_load(&laggard.others), 99);
    thread_pool_destroy(pool);
}

static void nothing(void *context, int task_index, int worker_index) {
    (void)context, (void)task_index, (void)worker_index;
}

static int64_t cpu_time_ns(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

Test(thread_pool, idle_workers_use_no_cpu) {
    struct thread_pool *pool;
    cr_assert_eq(thread_pool_create(4, false, &pool, NULL), STATUS_OK);
    thread_pool_run(pool, 8, nothing, NULL);
    int64_t before_ns = cpu_time_ns();
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    int64_t used_ns = cpu_time_ns() - before_ns;
    cr_assert_lt(used_ns, 60000000, "%lld ns of CPU while idle", (long long)used_ns);
    thread_pool_destroy(pool);
}

struct observed {
    atomic_int workers_seen;
    atomic_int signals_open;
    atomic_int denormals_kept;
};

static void observe(void *context, int task_index, int worker_index) {
    struct observed *observed = context;
    (void)task_index;
    if (worker_index == 0) {
        for (int i = 0; i < 1000 && atomic_load(&observed->workers_seen) == 0; i++)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        return;
    }
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    if (!sigismember(&blocked, SIGINT))
        atomic_fetch_add(&observed->signals_open, 1);
    volatile float tiny = FLT_MIN;
    if (tiny * 0.5f != 0.0f)
        atomic_fetch_add(&observed->denormals_kept, 1);
    atomic_fetch_add(&observed->workers_seen, 1);
}

Test(thread_pool, workers_take_no_signals_and_flush_denormals) {
    struct thread_pool *pool;
    cr_assert_eq(thread_pool_create(2, true, &pool, NULL), STATUS_OK);
    struct observed observed = {0};
    thread_pool_run(pool, 2, observe, &observed);
    cr_assert_gt(atomic_load(&observed.workers_seen), 0);
    cr_assert_eq(atomic_load(&observed.signals_open), 0);
#if defined(__SSE__)
    cr_assert_eq(atomic_load(&observed.denormals_kept), 0);
    thread_pool_set_float_mode();
    volatile float tiny = FLT_MIN;
    cr_assert_eq(tiny * 0.5f, 0.0f);
#endif
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    cr_assert_not(sigismember(&blocked, SIGINT));
    thread_pool_destroy(pool);
}

Test(clock, goes_forward_and_is_written_in_utc) {
    int64_t first = clock_now_ns();
    int64_t second = clock_now_ns();
    cr_assert_geq(second, first);
    cr_assert_eq(clock_ms_between(1000000, 3500000), 2.5);
    char text[21];
    clock_wall_text(text, sizeof text);
    cr_assert_eq(strlen(text), 20);
    cr_assert_eq(text[10], 'T');
    cr_assert_eq(text[19], 'Z');
}
