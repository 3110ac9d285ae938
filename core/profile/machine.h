/* What this machine can do at most, measured in under half a second: rates by number of threads, of
 * exponentials, by cache level, and the cost of a parallel section. Best of short trials, because a
 * shared machine only ever makes things slower. Kept in the user's cache folder by CPU, affinity
 * and build. */
#ifndef CORE_PROFILE_MACHINE_H
#define CORE_PROFILE_MACHINE_H

#include "core/kernels/ceilings.h"
#include "core/profile/classify.h"

enum { MACHINE_LADDER_MAX = 12 };

struct machine {
    int threads;     /* of the run */
    int threads_max; /* that this process may use */
    int step_count;
    struct ceilings_step steps[MACHINE_LADDER_MAX]; /* ascending threads; those two among them */
    double int8_flops;   /* with the run's threads; 0: there is no such unit */
    double exponentials; /* a second, with the run's threads */
    double cache_bytes;  /* read from the last cache level, a second */
    double cache_size;   /* bytes of it */
    double dispatch_seconds;
    bool units_shared; /* products and exponentials are the vector unit's */
};

enum status machine_measure(const struct kernels *kernels, const struct cpu_features *features,
                            int threads, int threads_max, struct machine *machine,
                            struct error *error);

/* The rates with so many threads, between measured ones by a straight line. */
struct ceilings_step machine_with(const struct machine *machine, int threads);
struct classify_roofs machine_roofs(const struct machine *machine, bool int8_matmul);

/* How far two measurements of one machine lie apart: the largest relative difference. */
double machine_drift(const struct machine *before, const struct machine *after);
/* The same of arithmetic alone: how much a run's own time varies. */
double machine_noise(const struct machine *before, const struct machine *after);
/* The better rate of each. */
void machine_merge(struct machine *into, const struct machine *other);

/* What others took of the machine between two looks. */
struct machine_load {
    double wall, own;         /* seconds */
    double busy, stolen, all; /* seconds of all CPUs, from /proc/stat */
    long long major_faults;
};
void machine_load_now(struct machine_load *load);
struct machine_others {
    double stolen_share; /* of CPU time, by the hypervisor */
    double others_share; /* of CPU time, by other programs */
    long long major_faults;
};
struct machine_others machine_others_between(const struct machine_load *before,
                                             const struct machine_load *after);

#endif
