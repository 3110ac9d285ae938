/* The rules by what they are about, for rules*.c only. Each fills in its advice and says whether
 * its symptom is there; `saved` is the middle of three predictions. */
#ifndef CORE_PROFILE_RULES_STATE_H
#define CORE_PROFILE_RULES_STATE_H

#include "core/profile/rules.h"

/* rules_batch.c: how much is computed together */
bool rules_batch_sequences(const struct facts *facts, struct advice *advice);   /* 1 */
bool rules_batch_pool_full(const struct facts *facts, struct advice *advice);   /* 4 */
bool rules_batch_chunk(const struct facts *facts, struct advice *advice);       /* 5 */
bool rules_batch_reread(const struct facts *facts, struct advice *advice);      /* 6 */
bool rules_batch_activations(const struct facts *facts, struct advice *advice); /* 7 */
bool rules_batch_stalls(const struct facts *facts, struct advice *advice);      /* 8 */
bool rules_batch_prefix(const struct facts *facts, struct advice *advice);      /* 16 */
bool rules_batch_evicted(const struct facts *facts, struct advice *advice);     /* 17 */
bool rules_batch_fragments(const struct facts *facts, struct advice *advice);   /* 18 */
bool rules_batch_tail(const struct facts *facts, struct advice *advice);        /* 25 */

/* rules_numbers.c: number formats and kernel paths */
bool rules_numbers_weights(const struct facts *facts, struct advice *advice); /* 2 */
bool rules_numbers_kv(const struct facts *facts, struct advice *advice);      /* 3 */
bool rules_numbers_logits(const struct facts *facts, struct advice *advice);  /* 22 */
bool rules_numbers_path(const struct facts *facts, struct advice *advice);    /* 23 */

/* rules_threads.c: threads and what else the process does */
bool rules_threads_wait(const struct facts *facts, struct advice *advice);      /* 13 */
bool rules_threads_ladder(const struct facts *facts, struct advice *advice);    /* 14 */
bool rules_threads_imbalance(const struct facts *facts, struct advice *advice); /* 15 */
bool rules_threads_host(const struct facts *facts, struct advice *advice);      /* 10 */
bool rules_threads_faults(const struct facts *facts, struct advice *advice);    /* 24 */
bool rules_threads_input(const struct facts *facts, struct advice *advice);     /* 26 */

/* rules_device.c: accelerators; silent without one */
bool rules_device_gaps(const struct facts *facts, struct advice *advice);    /* 9 */
bool rules_device_split(const struct facts *facts, struct advice *advice);   /* 11 */
bool rules_device_combine(const struct facts *facts, struct advice *advice); /* 12 */
bool rules_device_pool(const struct facts *facts, struct advice *advice);    /* 19 */
bool rules_device_offload(const struct facts *facts, struct advice *advice); /* 20 */
bool rules_device_pinned(const struct facts *facts, struct advice *advice);  /* 21 */

/* Sets the three predictions, in seconds. */
void rules_predict(struct advice *advice, double low, double middle, double high);
#endif
