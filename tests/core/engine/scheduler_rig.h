/* A scheduler with a device of pages that remember: steps are checked against the options, all
 * invariants after each, and tokens against what their sequence would get alone. */
#ifndef TESTS_CORE_ENGINE_SCHEDULER_RIG_H
#define TESTS_CORE_ENGINE_SCHEDULER_RIG_H

#include <criterion/criterion.h>

#include "core/engine/scheduler.h"
#include "tests/core/engine/fake_device.h"

enum { VOCAB = 251, PAGE = KV_PAGE_TOKENS };

struct rig {
    struct scheduler scheduler;
    struct fake_device device;
    struct scheduler_outcome outcomes[256];
    int steps;
    int64_t prefill_rows, guesses, accepted;
};

static inline void rig_open(struct rig *rig, struct scheduler_options options) {
    *rig = (struct rig){0};
    cr_assert_eq(scheduler_init(&rig->scheduler, &options, NULL), STATUS_OK);
    rig->device.group_count = options.group_count;
    for (int group = 0; group < options.group_count; group++) {
        rig->device.windows[group] = options.groups[group].window;
        rig->device.page_count[group] = options.groups[group].page_count;
    }
    fake_open(&rig->device);
}

static inline void rig_close(struct rig *rig) {
    scheduler_deinit(&rig->scheduler);
    fake_close(&rig->device);
}

static inline struct sequence *submit(struct rig *rig, const int32_t *tokens, int count,
                                      int max_tokens) {
    struct sequence *sequence;
    struct engine_request request = {
        .tokens = tokens, .token_count = count, .max_tokens = max_tokens};
    cr_assert_eq(scheduler_submit(&rig->scheduler, &request, &sequence, NULL), STATUS_OK);
    return sequence;
}

/* `count` tokens that share nothing with those of another seed. */
static inline struct sequence *submit_alone(struct rig *rig, int seed, int count, int max_tokens) {
    int32_t tokens[8192];
    for (int i = 0; i < count; i++)
        tokens[i] = (int32_t)(fake_mix((uint64_t)seed, (uint64_t)i) % VOCAB);
    return submit(rig, tokens, count, max_tokens);
}

static inline void check_plan(const struct rig *rig, const struct step_plan *plan) {
    const struct scheduler_options *options = &rig->scheduler.options;
    int rows = 0, prefill = 0, guesses = 0;
    for (int i = 0; i < plan->run_count; i++) {
        const struct step_run *run = &plan->runs[i];
        cr_assert_eq(run->row_first, rows);
        cr_assert_gt(run->row_count, 0);
        rows += run->row_count;
        const struct scheduler_run *work = &rig->scheduler.work[i];
        if (work->prefill)
            prefill += run->row_count;
        else
            cr_assert_eq(run->row_count, 1 + work->guess_count);
        cr_assert_lt(work->sequence->output_count + work->guess_count, work->sequence->max_tokens);
        cr_assert_leq(work->guess_count, options->speculate ? LOOKUP_GUESSES_MAX : 0);
        guesses += work->guess_count;
    }
    cr_assert_eq(rows, plan->row_count);
    cr_assert(guesses == 0 || rows <= LOOKUP_ROWS_MAX);
    cr_assert_leq(prefill, options->batch_tokens);
    cr_assert_leq(plan->run_count, options->max_sequences);
    for (int i = 1; i < plan->sample_count; i++)
        cr_assert_lt(plan->sample_rows[i - 1], plan->sample_rows[i]);
    for (int i = 0; i < rig->scheduler.running_count; i++) {
        int known = rig->scheduler.running[i]->output_count;
        bool planned = false;
        for (int r = 0; r < plan->run_count; r++)
            planned |= rig->scheduler.work[r].sequence == rig->scheduler.running[i];
        cr_assert(known == 0 || planned, "a decoding sequence was left out of a step");
    }
}

/* One step; false when there was nothing to compute. */
static inline bool rig_step(struct rig *rig) {
    uint64_t values[256];
    const struct step_plan *plan = scheduler_plan(&rig->scheduler);
    check_plan(rig, plan);
    cr_assert_null(scheduler_check(&rig->scheduler), "%s", scheduler_check(&rig->scheduler));
    if (plan->row_count == 0)
        return false;
    for (int i = 0; i < plan->run_count; i++)
        rig->prefill_rows += rig->scheduler.work[i].prefill ? plan->runs[i].row_count : 0;
    fake_compute(&rig->device, plan, values);
    for (int i = 0; i < plan->sample_count; i++)
        rig->outcomes[i] = (struct scheduler_outcome){fake_token(values[i], VOCAB), true};
    scheduler_commit(&rig->scheduler, rig->outcomes);
    for (int i = 0; i < plan->run_count; i++) {
        const struct scheduler_run *work = &rig->scheduler.work[i];
        rig->guesses += work->guess_count;
        rig->accepted += work->token_count > 1 ? work->token_count - 1 : 0;
    }
    const char *broken = scheduler_check(&rig->scheduler);
    cr_assert_null(broken, "%s", broken);
    cr_assert_eq(rig->device.faults, 0);
    rig->steps++;
    return true;
}

/* Everything the sequence has sampled is what it would have sampled alone. */
static inline void check_tokens(const struct rig *rig, const struct sequence *sequence) {
    for (int i = 0; i < sequence->output_count; i++) {
        int known = sequence->prompt_count + i;
        uint64_t value = fake_expect(&rig->device, sequence->tokens, known);
        cr_assert_eq(sequence->tokens[known], fake_token(value, VOCAB), "output token %d of %d", i,
                     sequence->output_count);
    }
}

static inline void check_empty(const struct rig *rig) {
    cr_assert_eq(rig->scheduler.running_count, 0);
    for (int group = 0; group < rig->scheduler.options.group_count; group++) {
        cr_assert_eq(rig->scheduler.pools[group].used_count, 0);
        cr_assert_eq(rig->scheduler.reserved[group], 0);
    }
}

static inline struct scheduler_options one_group(int batch_tokens, int max_sequences,
                                                 int64_t pages) {
    return (struct scheduler_options){.batch_tokens = batch_tokens,
                                      .max_sequences = max_sequences,
                                      .context = 8192,
                                      .prefix_cache = true,
                                      .group_count = 1,
                                      .groups = {{0, pages}}};
}

#endif
