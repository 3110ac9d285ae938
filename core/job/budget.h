/* Memory: what there is, what a run will need, and the refusal before anything large is taken. */
#ifndef CORE_JOB_BUDGET_H
#define CORE_JOB_BUDGET_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/job/job.h"
#include "core/job/order.h"
#include "core/job/settings.h"
#include "core/model/backend.h"

/* The number format of K and V that the settings ask for, and its name in `numerics`. */
enum kv_type budget_kv_type(const struct settings *settings, const struct backend *backend);
const char *budget_kv_name(enum kv_type type);

/* Bytes this process may still take: min(MemAvailable, cgroup limit − cgroup use). */
uint64_t budget_available_bytes(void);
/* Largest resident size of this process so far. */
uint64_t budget_peak_rss_bytes(void);

/* What may wait between reader, engine and writer. */
enum { BUDGET_QUEUE_BYTES = JOB_READY_BYTES_MAX + ORDER_WINDOW_BYTES_MAX + JOB_FINISHED_BYTES_MAX };

struct budget {
    struct backend_memory memory; /* of the backend under the limits */
    uint64_t kv_bytes;            /* given to the KV cache */
    uint64_t program_bytes;       /* vocabulary, code: measured before, with a margin */
    uint64_t queue_bytes;         /* 0 or BUDGET_QUEUE_BYTES */
    uint64_t stated_bytes;        /* the sum */
    uint64_t available_bytes;
    bool of_device; /* all of it is a device's memory, not the host's */
};

/* Decide the KV bytes: --kv-memory, else what max_sequences sequences of full context could use, at
 * most 60 % of what is left beside weights and scratch (90 % of a device's own memory, where the
 * program's part is not counted). STATUS_OVER_LIMIT with numbers and options
 * named when that is more than there is. A document that is too large for the KV bytes alone is its
 * own error. */
enum status budget_plan(const struct settings *settings, const struct model *model,
                        const struct backend *backend, int context, struct budget *budget,
                        struct error *error);

/* Everything but the KV cache. */
uint64_t budget_fixed_bytes(const struct budget *budget);

/* The pile is longer than what was read so far: more of it will wait in the queues. */
enum status budget_add_queues(struct budget *budget, struct error *error);

/* The whole queue was read, and is known to need no more KV than this. */
void budget_narrow(struct budget *budget, uint64_t kv_bytes);

/* "needs up to 412 MB: weights 106, KV cache 200, workspace 46, program 60; 22.1 GB free" */
bool budget_describe(const struct budget *budget, struct text *out);

#endif
