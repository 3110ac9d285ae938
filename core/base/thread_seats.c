/* A thread stands still when its CPU clock shows the same time twice: the kernel brings the clock
 * of a running thread up to date at each reading. That it sleeps, rather than waits for its CPU, is
 * possible and harmless.
 *
 * A worker takes a loan for one section and then goes back to the CPU it lost, to be served when
 * the neighbour's slice ends; until then the others share its work. The caller, without whom no
 * section begins, is not sent back: the lender goes in its stead. A worker that was moved is held
 * where it is for a while, because the kernel, seeing two threads on one CPU and one on the other,
 * would put the pool's two together. The caller's own mask stays as it was: threads inherit it. */
#include "core/base/thread_seats.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/cpu_affinity.h"

enum {
    CACHE_LINE = 64,
    NOWHERE = -1,
    HOLD_NS = 200000000, /* many slices: held for as long as the neighbour stays */
};

struct seat {
    _Alignas(CACHE_LINE) atomic_bool working;
    atomic_int cpu;    /* where it last began to work */
    atomic_int home;   /* where to go when it has done its work, or NOWHERE */
    atomic_int thread; /* the kernel's number */
    _Atomic clockid_t clock;
    /* Its own thread's: */
    int looked_at;
    bool held;
    int64_t held_ns; /* since when, if held */
};

struct thread_seats {
    int worker_count;
    bool lend;
    int cpu_count;
    int *cpus;          /* [cpu_count] of the mask at creation */
    struct seat *seats; /* [worker_count] */
};

struct mask {
    cpu_set_t set[CPU_AFFINITY_MAX / CPU_SETSIZE];
};

static struct mask mask_of(const int *cpus, int count) {
    struct mask mask;
    memset(&mask, 0, sizeof mask);
    for (int i = 0; i < count; i++)
        CPU_SET_S((size_t)cpus[i], sizeof mask.set, mask.set);
    return mask;
}

/* Failures are ignored here and below: a thread that cannot be moved is where it would have been.
 */
static void hold_on(int thread, int cpu) {
    struct mask mask = mask_of(&cpu, 1);
    sched_setaffinity(thread, sizeof mask.set, mask.set);
}

/* Moves a thread that does not run and leaves its mask as it was. */
static void push_to(int thread, int cpu) {
    struct mask before;
    memset(&before, 0, sizeof before);
    if (sched_getaffinity(thread, sizeof before.set, before.set) < 0)
        return;
    hold_on(thread, cpu);
    sched_setaffinity(thread, sizeof before.set, before.set);
}

static void move_own(struct seat *seat, int cpu) {
    seat->held = true;
    seat->held_ns = clock_now_ns();
    atomic_store_explicit(&seat->cpu, cpu, memory_order_relaxed);
    hold_on(0, cpu);
}

static void release_own(const struct thread_seats *seats, struct seat *seat) {
    struct mask mask = mask_of(seats->cpus, seats->cpu_count);
    seat->held = false;
    sched_setaffinity(0, sizeof mask.set, mask.set);
}

static bool list_cpus(struct thread_seats *seats) {
    int cpus[CPU_AFFINITY_MAX];
    seats->cpu_count = cpu_affinity_list(cpus, CPU_AFFINITY_MAX);
    size_t bytes = (size_t)seats->cpu_count * sizeof *cpus;
    seats->cpus = malloc(bytes);
    if (!seats->cpus)
        return false;
    memcpy(seats->cpus, cpus, bytes);
    return true;
}

static bool list_seats(struct thread_seats *seats) {
    size_t bytes = (size_t)seats->worker_count * sizeof *seats->seats;
    seats->seats = aligned_alloc(CACHE_LINE, bytes);
    if (!seats->seats)
        return false;
    memset(seats->seats, 0, bytes);
    for (int i = 0; i < seats->worker_count; i++) {
        atomic_init(&seats->seats[i].cpu, NOWHERE);
        atomic_init(&seats->seats[i].home, NOWHERE);
    }
    return true;
}

struct thread_seats *thread_seats_create(int worker_count, bool lend) {
    struct thread_seats *seats = calloc(1, sizeof *seats);
    if (!seats)
        return NULL;
    seats->worker_count = worker_count;
    if (!list_cpus(seats) || !list_seats(seats)) {
        thread_seats_destroy(seats);
        return NULL;
    }
    seats->lend = lend && worker_count > 1 && worker_count <= seats->cpu_count;
    return seats;
}

void thread_seats_destroy(struct thread_seats *seats) {
    if (!seats)
        return;
    free(seats->cpus);
    free(seats->seats);
    free(seats);
}

void thread_seats_take(struct thread_seats *seats, int worker) {
    struct seat *seat = &seats->seats[worker];
    clockid_t clock;
    if (!seats->lend || pthread_getcpuclockid(pthread_self(), &clock) != 0)
        return;
    atomic_store_explicit(&seat->clock, clock, memory_order_relaxed);
    atomic_store_explicit(&seat->thread, (int)syscall(SYS_gettid), memory_order_relaxed);
}

void thread_seats_work(struct thread_seats *seats, int worker) {
    struct seat *seat = &seats->seats[worker];
    if (!seats->lend)
        return;
    atomic_store_explicit(&seat->cpu, sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&seat->working, true, memory_order_release);
}

void thread_seats_rest(struct thread_seats *seats, int worker) {
    struct seat *seat = &seats->seats[worker];
    if (!seats->lend)
        return;
    atomic_store_explicit(&seat->working, false, memory_order_release);
    if (atomic_load_explicit(&seat->home, memory_order_relaxed) != NOWHERE)
        move_own(seat, atomic_exchange(&seat->home, NOWHERE));
    else if (seat->held && clock_now_ns() - seat->held_ns > HOLD_NS)
        release_own(seats, seat);
}

/* 0 when the thread is gone. */
static int64_t used_ns(const struct seat *seat) {
    struct timespec used;
    if (clock_gettime(atomic_load_explicit(&seat->clock, memory_order_relaxed), &used) != 0)
        return 0;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static bool stands_still(const struct seat *seat) {
    int64_t before_ns = used_ns(seat);
    return before_ns != 0 && used_ns(seat) == before_ns &&
           atomic_load_explicit(&seat->working, memory_order_acquire);
}

/* A CPU none of the workers was last seen on, or NOWHERE. */
static int empty_cpu(const struct thread_seats *seats) {
    for (int i = 0; i < seats->cpu_count; i++) {
        bool taken = false;
        for (int j = 0; j < seats->worker_count && !taken; j++)
            taken =
                atomic_load_explicit(&seats->seats[j].cpu, memory_order_relaxed) == seats->cpus[i];
        if (!taken)
            return seats->cpus[i];
    }
    return NOWHERE;
}

/* The caller goes to `here`, the calling thread to where the caller was. */
static void change_places(struct seat *own, struct seat *caller, int here, int there) {
    atomic_store_explicit(&caller->cpu, here, memory_order_relaxed);
    push_to(atomic_load_explicit(&caller->thread, memory_order_relaxed), here);
    move_own(own, there);
}

static void lend_to(struct seat *other, int here, int there) {
    atomic_store(&other->home, there);
    hold_on(atomic_load_explicit(&other->thread, memory_order_relaxed), here);
}

/* The next working seat after the one looked at last, or NULL. */
static struct seat *next_working(struct thread_seats *seats, int worker) {
    struct seat *own = &seats->seats[worker];
    for (int i = 0; i < seats->worker_count; i++) {
        own->looked_at = (own->looked_at + 1) % seats->worker_count;
        struct seat *seat = &seats->seats[own->looked_at];
        if (seat != own && atomic_load_explicit(&seat->working, memory_order_acquire))
            return seat;
    }
    return NULL;
}

bool thread_seats_look(struct thread_seats *seats, int worker) {
    struct seat *own = &seats->seats[worker];
    struct seat *other = seats->lend ? next_working(seats, worker) : NULL;
    if (!other || !stands_still(other))
        return false;
    int here = sched_getcpu(), there = atomic_load_explicit(&other->cpu, memory_order_relaxed);
    atomic_store_explicit(&own->cpu, here, memory_order_relaxed);
    if (there == here)
        there = empty_cpu(seats);
    if (here < 0 || there < 0)
        return false;
    if (other == &seats->seats[0])
        change_places(own, other, here, there);
    else
        lend_to(other, here, there);
    return true;
}
