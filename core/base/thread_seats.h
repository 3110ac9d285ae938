/* The CPUs a pool's workers sit on: a worker that lost its own with tasks in hand is lent the CPU
 * of one that only waits.
 *
 * The scheduler gives a busy neighbour half a CPU, in slices of milliseconds: longer than many
 * sections of a step. Without help a worker preempted in a section stops all the others for as long
 * as a slice. Where a thread runs changes no result, so nothing here can either. */
#ifndef CORE_BASE_THREAD_SEATS_H
#define CORE_BASE_THREAD_SEATS_H

#include <stdbool.h>

struct thread_seats;

/* Seats for worker_count ≥ 1 threads, 0 being the caller of the sections. `lend` false, or more
 * workers than CPUs: no thread is ever moved. NULL: no memory. */
struct thread_seats *thread_seats_create(int worker_count, bool lend);
void thread_seats_destroy(struct thread_seats *seats);

/* The calling thread is this worker from now on. */
void thread_seats_take(struct thread_seats *seats, int worker);

/* The calling thread, this worker, begins work that others may wait for; ends it. At the end it
 * leaves a CPU that was lent to it. */
void thread_seats_work(struct thread_seats *seats, int worker);
void thread_seats_rest(struct thread_seats *seats, int worker);

/* For a worker that waits: looks whether one of those that work stands still and if so gives it
 * the calling thread's CPU. True: it did, and the calling thread should sleep. Takes about a
 * microsecond. */
bool thread_seats_look(struct thread_seats *seats, int worker);

#endif
