/* What this machine can do at most, measured: the instruction set's product rate with everything in
 * registers, and reading alone at sizes that lie in each cache level and in memory. Floors of
 * kernels are computed from these. Best of many short trials, because a shared machine only ever
 * makes things slower; under 0.3 s in all. Never used to choose a path: that would make results
 * depend on timing. */
#ifndef CORE_KERNELS_CEILINGS_H
#define CORE_KERNELS_CEILINGS_H

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/kernels/kernels.h"

enum { CEILINGS_READ_COUNT = 4 };

struct ceilings_read {
    size_t bytes; /* a thread's own buffer; with all threads at most their share of the memory */
    double one;   /* bytes a second, one thread */
    double all;   /* bytes a second, all threads of the pool together */
};

struct ceilings {
    double flops_one; /* FLOP a second of the unit, one thread */
    double flops_all;
    struct ceilings_read read[CEILINGS_READ_COUNT]; /* ascending sizes; the last is memory */
};

/* Memory that measuring with this many threads takes: 128 MiB a thread, 1 GiB in all. */
size_t ceilings_memory_bytes(int thread_count);

enum status ceilings_measure(const struct linear_kernels *kernels, struct thread_pool *pool,
                             struct ceilings *ceilings, struct error *error);

/* The same piece by piece, for ceilings between other measurements: one trial a call, all threads.
 * Some milliseconds each. */
struct ceilings_probe;
enum status ceilings_probe_open(struct thread_pool *pool, struct ceilings_probe **probe,
                                struct error *error);
void ceilings_probe_close(struct ceilings_probe *probe);
double ceilings_probe_flops(struct ceilings_probe *probe, const struct linear_kernels *kernels);
double ceilings_probe_read(struct ceilings_probe *probe, const struct linear_kernels *kernels);

/* Rates with only some of a pool's threads at work: what one more thread would bring. */
struct ceilings_step {
    int threads; /* given: 1 to those of the pool */
    double flops;
    double memory; /* bytes a second, read from memory */
    double cache;  /* the same from the last cache level */
};
enum status ceilings_ladder(const struct linear_kernels *kernels, struct thread_pool *pool,
                            struct ceilings_step *steps, int step_count, struct error *error);

#endif
