/* What the kernels of a step read besides weights and activations: tokens, positions, page tables,
 * attention tasks. Made on the host from the step plan, in one block that is copied to the device
 * at once. Plain host code: nothing here knows a device.
 *
 * Tasks follow gpu/kernels/kernel_arguments.h. A run of few rows becomes decode tasks, one of many
 * prefill tasks; where a step has too few of them to fill the device, decode tasks are cut into
 * spans whose states are merged in order. No bit depends on any of these choices. */
#ifndef GPU_STEP_TABLES_H
#define GPU_STEP_TABLES_H

#include <stddef.h>

#include "core/base/error.h"
#include "core/model/step_plan.h"
#include "gpu/kernels/kernel_arguments.h"

struct step_tables_limits {
    int row_count, run_count, sample_count, context; /* at most, of a step */
    int group_count;                                 /* KV groups */
    int windows[MODEL_KV_GROUPS_MAX];                /* 0: none */
    int group;                                       /* query heads of a KV head */
    int kv_heads;
    int prefill_rows, decode_rows; /* packed rows of a task */
    int multiprocessors;
    int64_t state_rows; /* of cut tasks, in a step */
};

/* Places in the block are byte offsets, the same in the host's and in the device's copy. */
struct step_tables_group {
    size_t page_table;      /* int32_t: the runs' page lists, one behind another */
    size_t slots;           /* int64_t [rows] */
    size_t prefill, decode; /* struct attention_task */
    int prefill_count, decode_count;
    bool prefill_walks, decode_walks; /* some task walks more than one span */
    size_t merges;                    /* struct merge_task */
    size_t state_list;                /* int64_t */
    size_t row_tasks;                 /* int32_t [packed_rows][2] */
    int merge_count;
    int64_t packed_rows; /* of the merges */
};

/* A run of the step, and its first entry in the groups' page tables. */
struct step_tables_run {
    int run, key_count;
    int64_t pages;
};

struct step_tables {
    struct step_tables_limits limits;
    char *block; /* borrowed, step_tables_bytes */
    size_t used; /* bytes of it */
    int row_count, sample_count;
    size_t tokens, positions; /* int32_t [rows] */
    size_t samples;           /* int32_t [sample_count]: rows */
    struct step_tables_group groups[MODEL_KV_GROUPS_MAX];
    struct step_tables_run *order; /* [run_count] runs, those with the most keys first */
};

/* The largest block that a step can need. */
size_t step_tables_bytes(const struct step_tables_limits *limits);

/* `block`: step_tables_bytes, 16-byte aligned, outlives the tables. */
enum status step_tables_init(struct step_tables *tables, const struct step_tables_limits *limits,
                             void *block, struct error *error);
void step_tables_deinit(struct step_tables *tables);

/* Fills the block for a step within the limits. */
void step_tables_fill(struct step_tables *tables, const struct step_plan *plan);

#endif
