/* What the finished rows of a run asked of the machine, counted exactly from their tokens: products
 * that a decoder cannot do without, and bytes it must read at least. What kernels do beyond that
 * (padding, masked tiles, pages read again by later chunks) is not counted, so the rates that
 * follow are useful ones. */
#ifndef CORE_JOB_SUMMARY_WORK_H
#define CORE_JOB_SUMMARY_WORK_H

#include "core/engine/simulate.h"
#include "core/job/row.h"

struct summary_work {
    struct simulate_costs unit; /* of a row, a key and so on: in FLOP and bytes, not in seconds */
    uint64_t matmul_bytes; /* weights of all matmuls; an embedding that is only looked up is not */
    int windows[MODEL_KV_GROUPS_MAX];
    int group_count;
    double matmul_flops, attention_flops; /* 2 a product: multiply and add */
    double kv_bytes;
};

/* `page_bytes`: of a page of each KV group. */
void summary_work_init(struct summary_work *work, const struct model *model,
                       const uint64_t *page_bytes);

/* A row whose text was computed. */
void summary_work_add(struct summary_work *work, const struct row *row);

/* Each step is taken to read all weights of matmuls once. */
double summary_work_weight_bytes(const struct summary_work *work, int64_t steps);

#endif
