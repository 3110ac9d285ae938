/* Whatever the workload: every sequence gets the tokens it would get alone, no page leaks, no one
 * waits for ever, and all invariants hold after every step. */
#include <criterion/criterion.h>

#include "tests/core/engine/scheduler_rig.h"

/* A random pile: prompts are prefixes of a few documents with tails of their own, options are
 * random, sequences come, are cancelled and released at random times. */
struct pile {
    uint64_t state;
    struct rig rig;
    int context;
    bool speculate;
    struct sequence *live[64];
    int live_count;
    int submitted, finished;
};

static struct scheduler_options random_options(struct pile *pile) {
    uint64_t *state = &pile->state;
    struct scheduler_options options = {
        .batch_tokens = fake_between(state, 1, 200),
        .max_sequences = fake_between(state, 1, 12),
        .context = pile->context,
        .prefix_cache = fake_between(state, 0, 3) > 0,
        .speculate = pile->speculate,
        .group_count = fake_between(state, 1, 3),
    };
    int shape = fake_between(state, 0, 3); /* 0: windows only */
    for (int group = 0; group < options.group_count; group++) {
        bool global = shape > 0 && group == 0;
        options.groups[group].window = global ? 0 : fake_between(state, 2, 300);
        options.groups[group].page_count = fake_between(state, 4, 40);
    }
    return options;
}

static void submit_random(struct pile *pile) {
    int32_t tokens[700];
    uint64_t *state = &pile->state;
    int shared = fake_between(state, 0, 1) ? fake_between(state, 0, 8) * 50 : 0;
    int count = shared + fake_between(state, 1, 150);
    uint64_t document = (uint64_t)fake_between(state, 1, 3), tail = fake_random(state);
    for (int i = 0; i < count; i++)
        tokens[i] = (int32_t)(fake_mix(i < shared ? document : tail, (uint64_t)i) % VOCAB);
    pile->live[pile->live_count++] = submit(&pile->rig, tokens, count, fake_between(state, 1, 80));
    pile->submitted++;
}

static void release_random(struct pile *pile) {
    int at = fake_between(&pile->state, 0, pile->live_count - 1);
    struct sequence *sequence = pile->live[at];
    bool over = sequence->state == SEQUENCE_OVER;
    if (!over && fake_between(&pile->state, 0, 20) > 0)
        return;
    check_tokens(&pile->rig, sequence);
    cr_assert(!over || sequence->output_count == sequence->max_tokens ||
              sequence->output_count == 0);
    pile->finished += sequence->output_count == sequence->max_tokens;
    scheduler_release(&pile->rig.scheduler, sequence);
    pile->live[at] = pile->live[--pile->live_count];
    cr_assert_null(scheduler_check(&pile->rig.scheduler));
}

static int run_pile(uint64_t seed, bool speculate, int64_t *accepted) {
    struct pile pile = {
        .state = seed * 0x9e3779b97f4a7c15u + 1, .context = 700, .speculate = speculate};
    rig_open(&pile.rig, random_options(&pile));
    pile.rig.device.echo = speculate;
    bool busy = true;
    while (busy || pile.live_count > 0 || pile.submitted < 40) {
        if (pile.submitted < 40 && pile.live_count < 64 && fake_between(&pile.state, 0, 2) == 0)
            submit_random(&pile);
        if (pile.live_count > 0)
            release_random(&pile);
        busy = rig_step(&pile.rig);
        cr_assert(busy || pile.rig.scheduler.waiting.count == 0 ||
                      pile.rig.scheduler.refused_count > 0,
                  "something waits and nothing runs");
    }
    check_empty(&pile.rig);
    rig_close(&pile.rig);
    *accepted += pile.rig.accepted;
    return pile.finished;
}

Test(scheduler_piles, random_piles_give_every_sequence_its_own_tokens) {
    int finished = 0;
    int64_t accepted = 0;
    for (uint64_t seed = 1; seed <= 120; seed++)
        finished += run_pile(seed, false, &accepted);
    cr_assert_gt(finished, 1500, "only %d sequences ran to their end", finished);
    cr_assert_eq(accepted, 0);
}

/* Texts that repeat themselves, not always: guesses are right and wrong at all places of a page. */
Test(scheduler_piles, random_piles_that_guess_give_the_same_tokens) {
    int finished = 0;
    int64_t accepted = 0;
    for (uint64_t seed = 1; seed <= 120; seed++)
        finished += run_pile(seed, true, &accepted);
    cr_assert_gt(finished, 1500, "only %d sequences ran to their end", finished);
    cr_assert_gt(accepted, 10000, "only %lld guesses were right", (long long)accepted);
}
