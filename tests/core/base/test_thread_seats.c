/* Who moves where. The thread that stands still does so because it sleeps, which to the seats is
 * the same as having lost its CPU. With one CPU there is nothing to lend. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "core/base/cpu_affinity.h"
#include "core/base/thread_seats.h"

enum { CPUS_MAX = 1024, HELD_MS = 250 };

static void idle_ms(long milliseconds) {
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

static int cpu_count(void) {
    int cpus[CPUS_MAX];
    return cpu_affinity_list(cpus, CPUS_MAX);
}

/* Binds the calling thread to the n-th of its CPUs, which it returns. */
static int stay_on(int n) {
    int cpus[CPUS_MAX];
    cpu_affinity_list(cpus, CPUS_MAX);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpus[n], &set);
    cr_assert_eq(sched_setaffinity(0, sizeof set, &set), 0);
    return cpus[n];
}

static void stay_on_any(const int *cpus, int count) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++)
        CPU_SET((size_t)cpus[i], &set);
    cr_assert_eq(sched_setaffinity(0, sizeof set, &set), 0);
}

/* A thread that works in a seat, asleep or running, until it is told to rest. */
struct colleague {
    struct thread_seats *seats;
    int worker;
    int stays_on; /* CPU before it works, by place in its mask */
    bool runs;
    atomic_bool works;
    atomic_bool may_rest;
    int before;           /* the CPU it works on */
    int after;            /* its only CPU after its rest, or -1: it has several */
    int count_after_long; /* CPUs when it rests again much later */
};

static void *work_and_rest(void *argument) {
    struct colleague *colleague = argument;
    int cpus[CPUS_MAX], count = cpu_affinity_list(cpus, CPUS_MAX);
    colleague->before = stay_on(colleague->stays_on);
    thread_seats_take(colleague->seats, colleague->worker);
    thread_seats_work(colleague->seats, colleague->worker);
    stay_on_any(cpus, count);
    atomic_store(&colleague->works, true);
    while (!atomic_load(&colleague->may_rest))
        if (!colleague->runs)
            idle_ms(1);
    thread_seats_rest(colleague->seats, colleague->worker);
    count = cpu_affinity_list(cpus, CPUS_MAX);
    colleague->after = count == 1 ? cpus[0] : -1;
    idle_ms(HELD_MS);
    thread_seats_rest(colleague->seats, colleague->worker);
    colleague->count_after_long = cpu_count();
    return NULL;
}

static pthread_t start(struct colleague *colleague) {
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, work_and_rest, colleague), 0);
    while (!atomic_load(&colleague->works))
        idle_ms(1);
    return thread;
}

static void finish(struct colleague *colleague, pthread_t thread) {
    atomic_store(&colleague->may_rest, true);
    pthread_join(thread, NULL);
}

/* A sleeper may be awake for a moment, and its clock go on. */
static bool look_often(struct thread_seats *seats, int worker) {
    for (int i = 0; i < 100; i++)
        if (thread_seats_look(seats, worker))
            return true;
    return false;
}

TestSuite(thread_seats, .timeout = 60);

Test(thread_seats, a_worker_that_stands_still_is_lent_a_cpu_and_gives_it_back) {
    int cpus[CPUS_MAX], count = cpu_affinity_list(cpus, CPUS_MAX);
    struct thread_seats *seats = thread_seats_create(2, true);
    struct colleague colleague = {.seats = seats, .worker = 1, .stays_on = count > 1};
    pthread_t thread = start(&colleague);
    stay_on(0);
    thread_seats_take(seats, 0);
    cr_assert_eq(look_often(seats, 0), count > 1);
    finish(&colleague, thread);
    cr_assert_eq(colleague.after, count > 1 ? colleague.before : cpus[0]);
    cr_assert_eq(colleague.count_after_long, count);
    cr_assert_eq(cpu_count(), 1, "the lender keeps its mask");
    thread_seats_destroy(seats);
}

Test(thread_seats, two_on_one_cpu_part) {
    int cpus[CPUS_MAX], count = cpu_affinity_list(cpus, CPUS_MAX);
    struct thread_seats *seats = thread_seats_create(2, true);
    struct colleague colleague = {.seats = seats, .worker = 1, .stays_on = 0};
    pthread_t thread = start(&colleague);
    stay_on(0);
    thread_seats_take(seats, 0);
    thread_seats_work(seats, 0);
    thread_seats_rest(seats, 0);
    cr_assert_eq(look_often(seats, 0), count > 1);
    finish(&colleague, thread);
    cr_assert_eq(colleague.after, count > 1 ? cpus[1] : cpus[0]);
    thread_seats_destroy(seats);
}

Test(thread_seats, the_caller_takes_the_place_of_the_worker_that_waits) {
    int cpus[CPUS_MAX], count = cpu_affinity_list(cpus, CPUS_MAX);
    struct thread_seats *seats = thread_seats_create(2, true);
    struct colleague caller = {.seats = seats, .worker = 0, .stays_on = count > 1};
    pthread_t thread = start(&caller);
    stay_on(0);
    thread_seats_take(seats, 1);
    cr_assert_eq(look_often(seats, 1), count > 1);
    int own[CPUS_MAX];
    cr_assert_eq(cpu_affinity_list(own, CPUS_MAX), 1);
    cr_assert_eq(own[0], count > 1 ? caller.before : cpus[0]);
    finish(&caller, thread);
    cr_assert_eq(caller.count_after_long, count, "the caller keeps its mask");
    thread_seats_destroy(seats);
}

static bool runner_is_lent(void) {
    struct thread_seats *seats = thread_seats_create(2, true);
    struct colleague colleague = {
        .seats = seats, .worker = 1, .stays_on = cpu_count() > 1, .runs = true};
    pthread_t thread = start(&colleague);
    thread_seats_take(seats, 0);
    bool lent = thread_seats_look(seats, 0);
    finish(&colleague, thread);
    thread_seats_destroy(seats);
    return lent;
}

/* On a busy machine it may have lost its CPU just then: one look of many is proof. */
Test(thread_seats, a_worker_that_runs_is_left_alone) {
    int cpus[CPUS_MAX], count = cpu_affinity_list(cpus, CPUS_MAX);
    bool left_alone = false;
    for (int i = 0; i < 50 && !left_alone; i++) {
        stay_on_any(cpus, count);
        left_alone = !runner_is_lent();
    }
    cr_assert(left_alone);
}

static bool is_lent(int workers, bool lend, bool rests) {
    struct thread_seats *seats = thread_seats_create(workers, lend);
    struct colleague colleague = {.seats = seats, .worker = 1, .stays_on = 0};
    pthread_t thread = start(&colleague);
    thread_seats_take(seats, 0);
    if (rests)
        finish(&colleague, thread);
    bool lent = look_often(seats, 0);
    if (!rests)
        finish(&colleague, thread);
    thread_seats_destroy(seats);
    return lent;
}

Test(thread_seats, nothing_is_lent_without_need) {
    cr_assert_not(is_lent(2, true, true), "to a worker that rests");
    cr_assert_not(is_lent(2, false, false), "by seats that do not lend");
    cr_assert_not(is_lent(cpu_count() + 1, true, false), "when workers outnumber the CPUs");
}
