/* What one step computes: runs of consecutive positions of sequences, their page tables, and the
 * rows whose logits are wanted. Built by the scheduler without touching weights; read by every
 * backend. */
#ifndef CORE_MODEL_STEP_PLAN_H
#define CORE_MODEL_STEP_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/model/model.h"

/* Rows [row_first, row_first + row_count) are the positions [position_first, position_first +
 * row_count) of one sequence. Keys of all earlier positions (and of the run itself, written first)
 * are in pages. */
struct step_run {
    int sequence; /* the scheduler's slot, for messages */
    int row_first;
    int row_count;
    int position_first;
    int stale_count; /* positions behind the run whose keys and values an earlier step wrote for
                        guesses that were wrong: zeroed as far as they lie in the run's last page */
    bool prefill;    /* rows of a prompt; one row alone may be either */
    const int32_t
        *pages[MODEL_KV_GROUPS_MAX]; /* by position / KV_PAGE_TOKENS; -1 behind the window */
};

struct step_plan {
    int row_count;
    const int32_t *tokens; /* [row_count] */
    int run_count;
    const struct step_run *runs; /* ordered by row_first, covering all rows */
    int sample_count;
    const int32_t *sample_rows; /* [sample_count], ascending: rows whose logits are computed */
};

#endif
