/* What bounds an op: its time against a floor made of measured ceilings.
 *
 *   floor = max(arithmetic, memory) + dispatch
 *
 * Arithmetic is products and exponentials over their measured rates: added where one unit does
 * both, else the larger. Memory is the bytes last used a step ago (weights, KV) over the bandwidth
 * of the level that a step's bytes fit into, and activations over the cache's. */
#ifndef CORE_PROFILE_CLASSIFY_H
#define CORE_PROFILE_CLASSIFY_H

#include <stdbool.h>

#include "core/profile/account.h"

/* Per second, all threads of the run together; 0: not known, and the floor leaves it out. */
struct classify_roofs {
    double flops;      /* products of attention, and of matmuls unless: */
    double int8_flops; /* matmuls on int8, logits excepted; 0: they are not */
    double exponentials;
    double memory_bytes;
    double cache_bytes;
    double cache_size;       /* bytes of the last level */
    double dispatch_seconds; /* of a parallel section */
    bool units_shared;       /* products and exponentials on one unit */
};

struct classify_floor {
    double compute, memory;             /* seconds */
    double bound;                       /* the larger of each instance, added up */
    double memory_cached, bound_cached; /* if what fits the last cache level came from there */
};

/* The floor of one instance, dispatch apart. `step_bytes`: what the whole step streams. */
struct classify_floor classify_floor_of(const struct classify_roofs *roofs, bool int8,
                                        const struct account_work *work, double step_bytes);

enum classify_verdict {
    VERDICT_UNKNOWN, /* no ceilings, or nothing ran */
    VERDICT_COMPUTE,
    VERDICT_BANDWIDTH,
    VERDICT_DISPATCH,
    VERDICT_SYNC,        /* threads wait for each other */
    VERDICT_IMBALANCE,   /* for the slowest one */
    VERDICT_POOR_KERNEL, /* none of these explains the time */
    VERDICT_ALARM,       /* faster than its floor: accounting or ceilings are wrong */
    VERDICT_COUNT
};

struct classify_facts {
    double seconds;
    struct classify_floor floor;
    double dispatch;       /* seconds: sections × their cost */
    double busy, capacity; /* thread seconds inside parallel sections: working, and available */
    double slowest, mean;  /* sums over sections of a thread's busy time */
    double thread_seconds; /* threads × seconds */
};

struct classify_result {
    enum classify_verdict verdict;
    bool leans_to_memory; /* the larger term */
    double floor;         /* seconds, dispatch included */
    double efficiency;    /* floor / seconds */
    double gap;           /* seconds above the floor, ≥ 0 */
    double wait_share;    /* of thread time, spent waiting at the ends of sections */
    double imbalance;     /* slowest / mean thread */
};

struct classify_result classify_op(const struct classify_facts *facts);

const char *classify_verdict_name(enum classify_verdict verdict); /* "bandwidth" */

#endif
