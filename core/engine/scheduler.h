/* Which rows the next step computes. A pure function of its state: no clock, no backend, no
 * weights, no allocation; the engine runs it before real steps, `sheaf plan` on a modelled clock
 * (simulate.h).
 *
 * A step holds one row of every decoding sequence and up to batch_tokens prompt rows, given to the
 * running sequences in order of submission. A step of few rows may also hold guesses of what
 * decoding sequences say next (lookup.h); a commit keeps those that the sampler agrees with.
 * Admission is by reservation (admission.h), so a running sequence is never left out of a step,
 * stalled or preempted.
 *
 * One cycle: scheduler_plan, compute, scheduler_commit. A plan that was not committed (the device
 * failed) may be planned again: it has taken pages its sequences had reserved and changed nothing
 * else. */
#ifndef CORE_ENGINE_SCHEDULER_H
#define CORE_ENGINE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/engine/kv_pool.h"
#include "core/engine/prefix_index.h"
#include "core/engine/sequence.h"
#include "core/model/step_plan.h"

struct scheduler_options {
    int batch_tokens;  /* prompt rows of a step, ≥ 1 */
    int max_sequences; /* running at once, ≥ 1 */
    int context;       /* prompt + output of a sequence, ≥ 2 */
    bool prefix_cache;
    bool speculate;
    int group_count;
    struct scheduler_group {
        int window; /* 0: global */
        int64_t page_count;
    } groups[MODEL_KV_GROUPS_MAX];
};

/* What a run of the plan is for; parallel to plan.runs. */
struct scheduler_run {
    struct sequence *sequence;
    int sample; /* index of its first sampled row in plan.sample_rows, -1: none */
    bool prefill;
    int guess_count; /* its last rows: guesses, sampled too; they lie behind the sequence's tokens
                      */
    int token_count; /* output tokens that the commit made of it */
};

/* What sampling made of a sampled row; parallel to plan.sample_rows. Rows behind a guess that was
 * wrong, or behind a row that is not finite, are not looked at. */
struct scheduler_outcome {
    int32_t token;
    bool finite; /* false: the logits had a NaN or +infinity, the sequence is over */
};

struct sequence_list {
    struct sequence *first, *last;
    size_t count;
};

struct scheduler {
    struct scheduler_options options;
    struct kv_pool pools[MODEL_KV_GROUPS_MAX];
    struct prefix_index index;
    int64_t reserved[MODEL_KV_GROUPS_MAX]; /* sum over the running sequences' groups[].reserved */

    struct sequence_list waiting; /* in order of submission */
    struct sequence_list over;    /* finished or refused, not yet released */
    struct sequence **running;    /* [max_sequences], in order of submission */
    int running_count;
    int running_peak;
    int64_t order_next;
    bool changed; /* since admission last looked: a new sequence, pages published or given back, a
                     prompt or a sequence finished */

    struct lookup *lookups;      /* [max_sequences], or NULL: nobody guesses */
    struct lookup *lookups_free; /* list of those that no sequence has */
    int32_t *lookup_places;      /* theirs; touched as sequences come to need them */

    struct step_plan plan;
    int row_count_max;          /* batch_tokens + max_sequences + guesses */
    int32_t *tokens;            /* [row_count_max] */
    struct step_run *runs;      /* [max_sequences] */
    struct scheduler_run *work; /* [max_sequences] */
    int32_t *sample_rows;       /* [max_sequences + guesses] */
    struct sequence **refused;  /* [max_sequences]: never fit, found by the last plan */
    int refused_count;

    /* Scratch of admission and checks. */
    int32_t *holders[MODEL_KV_GROUPS_MAX]; /* [page_count] */
    int32_t *entries[2]; /* [context / KV_PAGE_TOKENS]: prefixes found, head and other */
    struct scheduler_end {
        const struct sequence *sequence;
        int64_t step;
    } * ends; /* [max_sequences + 1] */
};

enum status scheduler_init(struct scheduler *scheduler, const struct scheduler_options *options,
                           struct error *error);
/* Destroys the sequences still there. */
void scheduler_deinit(struct scheduler *scheduler);

/* A new sequence at the end of the queue. Lengths outside the options are refused. */
enum status scheduler_submit(struct scheduler *scheduler, const struct engine_request *request,
                             struct sequence **sequence, struct error *error);

/* Admit, and plan the next step. The plan and `work` are valid until the next call. row_count is 0
 * only when nothing is running. The refused are over; when there are more than max_sequences of
 * them the rest waits for the next call. */
const struct step_plan *scheduler_plan(struct scheduler *scheduler);

/* The plan was computed. outcomes[plan.sample_count] may be NULL when no row was sampled. */
void scheduler_commit(struct scheduler *scheduler, const struct scheduler_outcome *outcomes);

/* In whatever state; pages go back, full prompt pages stay findable. Destroys the sequence. A
 * running one not between plan and commit. */
void scheduler_release(struct scheduler *scheduler, struct sequence *sequence);

/* What the parts of the scheduler share. */
void scheduler_list_append(struct sequence_list *list, struct sequence *sequence);
void scheduler_list_remove(struct sequence_list *list, struct sequence *sequence);
/* Prompt rows of a sequence that one step computes at most. */
int scheduler_chunk_max(const struct scheduler *scheduler, const struct sequence *sequence);

/* NULL when every invariant holds, else the one that is broken (scheduler_check.c). */
const char *scheduler_check(struct scheduler *scheduler);

#endif
