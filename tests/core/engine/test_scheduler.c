/* What the scheduler decides, one rule a test. */
#include <criterion/criterion.h>

#include "tests/core/engine/scheduler_rig.h"

Test(scheduler, one_prompt_in_chunks_then_one_token_a_step) {
    struct rig rig;
    rig_open(&rig, one_group(50, 4, 100));
    struct sequence *sequence = submit_alone(&rig, 1, 130, 5);
    while (rig_step(&rig))
        ;
    cr_assert_eq(rig.steps, 3 + 4);
    cr_assert_eq(sequence->output_count, 5);
    cr_assert_eq(sequence->state, SEQUENCE_OVER);
    cr_assert_eq(sequence->stats.chunks, 3);
    cr_assert_eq(sequence->stats.computed_tokens, 130);
    cr_assert_eq(sequence->computed, 134, "the last token is not computed");
    check_tokens(&rig, sequence);
    check_empty(&rig);
    rig_close(&rig);
}

Test(scheduler, decoding_rows_and_chunks_of_several_prompts_share_a_step) {
    struct rig rig;
    rig_open(&rig, one_group(100, 4, 100));
    submit_alone(&rig, 1, 40, 9);
    rig_step(&rig);
    submit_alone(&rig, 2, 70, 9);
    submit_alone(&rig, 3, 70, 9);
    const struct step_plan *plan = scheduler_plan(&rig.scheduler);
    cr_assert_eq(plan->run_count, 3);
    cr_assert_eq(plan->runs[0].row_count, 1);
    cr_assert_eq(plan->runs[1].row_count, 70);
    cr_assert_eq(plan->runs[2].row_count, 30);
    cr_assert_eq(plan->sample_count, 2);
    cr_assert_eq(plan->sample_rows[0], 0);
    cr_assert_eq(plan->sample_rows[1], 70);
    rig_close(&rig);
}

Test(scheduler, refuses_lengths_outside_the_context) {
    struct rig rig;
    struct error error;
    struct sequence *sequence;
    int32_t tokens[8] = {0};
    rig_open(&rig, one_group(16, 4, 100));
    struct engine_request request = {.tokens = tokens, .token_count = 0, .max_tokens = 1};
    cr_assert_eq(scheduler_submit(&rig.scheduler, &request, &sequence, &error), STATUS_BAD_INPUT);
    request.token_count = 8;
    request.max_tokens = 8185;
    cr_assert_eq(scheduler_submit(&rig.scheduler, &request, &sequence, &error), STATUS_OVER_LIMIT);
    cr_assert_str_eq(error.text, "8 prompt and 8185 output tokens exceed the context of 8192");
    request.max_tokens = INT32_MAX;
    cr_assert_eq(scheduler_submit(&rig.scheduler, &request, &sequence, &error), STATUS_OVER_LIMIT);
    rig_close(&rig);
}

Test(scheduler, a_plan_that_failed_is_planned_again_unchanged) {
    struct rig rig;
    rig_open(&rig, one_group(50, 4, 100));
    struct sequence *sequence = submit_alone(&rig, 1, 130, 5);
    for (int i = 0; i < 9; i++) {
        const struct step_plan *plan = scheduler_plan(&rig.scheduler);
        int rows = plan->row_count, first = plan->runs[0].position_first;
        int32_t used = rig.scheduler.pools[0].used_count;
        plan = scheduler_plan(&rig.scheduler);
        cr_assert_eq(plan->row_count, rows);
        cr_assert_eq(plan->runs[0].position_first, first);
        cr_assert_eq(rig.scheduler.pools[0].used_count, used);
        if (!rig_step(&rig))
            break;
    }
    cr_assert_eq(sequence->output_count, 5);
    check_tokens(&rig, sequence);
    rig_close(&rig);
}

Test(scheduler, a_document_with_many_questions_is_computed_once) {
    enum { DOCUMENT = 6000, QUESTION = 30, COUNT = 16 };
    struct rig rig;
    int32_t tokens[DOCUMENT + QUESTION];
    struct sequence *sequences[COUNT];
    rig_open(&rig, one_group(512, COUNT, 200));
    for (int i = 0; i < DOCUMENT; i++)
        tokens[i] = (int32_t)(fake_mix(7, (uint64_t)i) % VOCAB);
    for (int q = 0; q < COUNT; q++) {
        for (int i = 0; i < QUESTION; i++)
            tokens[DOCUMENT + i] = (q * 31 + i) % VOCAB;
        sequences[q] = submit(&rig, tokens, DOCUMENT + QUESTION, 40);
    }
    while (rig_step(&rig))
        ;
    int shared = DOCUMENT / PAGE * PAGE;
    cr_assert_eq(rig.prefill_rows, shared + COUNT * (DOCUMENT + QUESTION - shared));
    for (int q = 0; q < COUNT; q++) {
        cr_assert_eq(sequences[q]->output_count, 40);
        cr_assert_eq(sequences[q]->stats.cached_tokens, q == 0 ? 0 : shared);
        cr_assert_eq(sequences[q]->stats.cached_tokens + sequences[q]->stats.computed_tokens,
                     DOCUMENT + QUESTION);
        check_tokens(&rig, sequences[q]);
    }
    cr_assert_leq(rig.scheduler.pools[0].used_peak, 94 + COUNT * 2);
    check_empty(&rig);
    rig_close(&rig);
}

Test(scheduler, waits_for_a_prefix_only_while_someone_computes_it) {
    struct rig rig;
    rig_open(&rig, one_group(64, 4, 100));
    struct sequence *first = submit_alone(&rig, 1, 640, 8);
    struct sequence *second = submit_alone(&rig, 1, 650, 8);
    rig_step(&rig), rig_step(&rig);
    cr_assert_eq(first->state, SEQUENCE_RUNNING);
    cr_assert_eq(second->state, SEQUENCE_WAITING);
    scheduler_release(&rig.scheduler, first);
    rig_step(&rig);
    cr_assert_eq(second->state, SEQUENCE_RUNNING);
    cr_assert_eq(second->stats.cached_tokens, 128, "what the first had computed stays");
    while (rig_step(&rig))
        ;
    check_tokens(&rig, second);
    rig_close(&rig);
}

/* Pool of 20: the two questions hold 8 + 5 + 5 pages together, 26 apart. */
Test(scheduler, room_is_kept_for_one_that_waits_for_a_prefix) {
    struct rig rig;
    rig_open(&rig, one_group(64, 4, 20));
    submit_alone(&rig, 1, 8 * PAGE + 10, 300);
    struct sequence *head = submit_alone(&rig, 1, 8 * PAGE + 20, 290);
    struct sequence *large = submit_alone(&rig, 2, 10, 300);
    struct sequence *small = submit_alone(&rig, 3, 10, 100);
    while (head->state == SEQUENCE_WAITING)
        rig_step(&rig);
    cr_assert_eq(rig.steps, 9, "it starts in the step after the last shared page");
    cr_assert_eq(head->stats.cached_tokens, 8 * PAGE);
    cr_assert_eq(large->state, SEQUENCE_WAITING);
    cr_assert_eq(small->state, SEQUENCE_RUNNING, "two pages are left over");
    rig_close(&rig);
}

/* Pool of 20: the first holds 13 until it ends, then the head needs 16, its prefix included. */
Test(scheduler, a_prefix_to_come_is_the_heads_own_once_its_source_ends) {
    struct rig rig;
    rig_open(&rig, one_group(64, 4, 20));
    submit_alone(&rig, 1, 8 * PAGE + 10, 300);
    struct sequence *head = submit_alone(&rig, 1, 8 * PAGE + 20, 8 * PAGE - 19);
    struct sequence *five = submit_alone(&rig, 2, 10, 310);
    struct sequence *four = submit_alone(&rig, 3, 10, 240);
    rig_step(&rig);
    cr_assert_eq(head->state, SEQUENCE_WAITING);
    cr_assert_eq(five->state, SEQUENCE_WAITING, "it would outlast the first");
    cr_assert_eq(four->state, SEQUENCE_RUNNING);
    rig_close(&rig);
}

Test(scheduler, a_prompt_found_whole_still_computes_its_last_token) {
    struct rig rig;
    rig_open(&rig, one_group(64, 4, 100));
    for (int length = 127; length <= 129; length++) {
        submit_alone(&rig, 1, length, 3);
        while (rig_step(&rig))
            ;
        struct sequence *again = submit_alone(&rig, 1, length, 3);
        while (rig_step(&rig))
            ;
        cr_assert_eq(again->stats.cached_tokens, (length - 1) / PAGE * PAGE);
        check_tokens(&rig, again);
    }
    rig_close(&rig);
}

Test(scheduler, nothing_is_shared_when_the_prefix_cache_is_off) {
    struct rig rig;
    struct scheduler_options options = one_group(64, 4, 100);
    options.prefix_cache = false;
    rig_open(&rig, options);
    struct sequence *first = submit_alone(&rig, 1, 300, 8);
    struct sequence *second = submit_alone(&rig, 1, 300, 8);
    while (rig_step(&rig))
        ;
    cr_assert_eq(rig.prefill_rows, 600);
    cr_assert_eq(second->stats.cached_tokens, 0);
    check_tokens(&rig, first);
    check_tokens(&rig, second);
    rig_close(&rig);
}

Test(scheduler, what_never_fits_is_refused_and_the_rest_goes_on) {
    struct rig rig;
    rig_open(&rig, one_group(64, 2, 4));
    struct sequence *fits[3];
    for (int i = 0; i < 3; i++)
        submit_alone(&rig, i, 250, 20);
    for (int i = 0; i < 3; i++)
        fits[i] = submit_alone(&rig, 10 + i, 200, 20);
    scheduler_plan(&rig.scheduler);
    cr_assert_eq(rig.scheduler.refused_count, 2, "no more than max_sequences at a time");
    cr_assert_eq(rig.scheduler.refused[0]->state, SEQUENCE_OVER);
    rig_step(&rig);
    cr_assert_eq(rig.scheduler.refused_count, 1);
    while (rig_step(&rig))
        ;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(fits[i]->output_count, 20);
        check_tokens(&rig, fits[i]);
    }
    rig_close(&rig);
}

/* Pool of 10: `first` holds 6 until step 100, the head needs 8. */
static struct sequence *blocked_head(struct rig *rig) {
    rig_open(rig, one_group(512, 4, 10));
    submit_alone(rig, 1, 6 * PAGE - 99, 100);
    struct sequence *head = submit_alone(rig, 2, 7 * PAGE, PAGE);
    rig_step(rig);
    cr_assert_eq(head->state, SEQUENCE_WAITING);
    return head;
}

Test(scheduler, a_short_one_passes_a_blocked_head) {
    struct rig rig;
    struct sequence *head = blocked_head(&rig);
    struct sequence *passing = submit_alone(&rig, 3, 4 * PAGE - 79, 80);
    rig_step(&rig);
    cr_assert_eq(passing->state, SEQUENCE_RUNNING);
    while (head->state == SEQUENCE_WAITING)
        rig_step(&rig);
    cr_assert_eq(rig.steps, 101, "right after the first one's hundred steps");
    rig_close(&rig);
}

Test(scheduler, a_long_one_passes_only_into_what_the_head_leaves) {
    struct rig rig;
    blocked_head(&rig);
    struct sequence *three = submit_alone(&rig, 3, 2, 3 * PAGE - 1);
    struct sequence *two = submit_alone(&rig, 4, 2, 2 * PAGE - 1);
    rig_step(&rig);
    cr_assert_eq(three->state, SEQUENCE_WAITING, "it fits now, but the head would wait for it");
    cr_assert_eq(two->state, SEQUENCE_RUNNING);
    rig_close(&rig);
}

Test(scheduler, a_place_among_the_running_is_kept_for_the_head) {
    struct rig rig;
    rig_open(&rig, one_group(512, 2, 10));
    submit_alone(&rig, 1, 6 * PAGE - 99, 100);
    struct sequence *head = submit_alone(&rig, 2, 7 * PAGE, PAGE);
    struct sequence *small = submit_alone(&rig, 3, 2, 2 * PAGE - 20);
    rig_step(&rig);
    cr_assert_eq(small->state, SEQUENCE_RUNNING, "it takes the place the first one leaves");
    while (head->state == SEQUENCE_WAITING)
        rig_step(&rig);
    cr_assert_eq(rig.steps, 101);
    rig_close(&rig);
}

/* Pool of 12; five pages belong to two sequences, and come back with the later of them. */
Test(scheduler, the_forecast_counts_shared_pages_with_their_last_holder) {
    struct rig rig;
    rig_open(&rig, one_group(512, 4, 12));
    submit_alone(&rig, 1, 5 * PAGE + 1, 30);
    submit_alone(&rig, 1, 5 * PAGE + 1, 200);
    rig_step(&rig), rig_step(&rig);
    cr_assert_eq(rig.scheduler.running_count, 2);
    struct sequence *head = submit_alone(&rig, 2, 6 * PAGE + 1, PAGE);
    struct sequence *passing = submit_alone(&rig, 3, 2, 2 * PAGE - 1);
    rig_step(&rig);
    cr_assert_eq(head->state, SEQUENCE_WAITING);
    cr_assert_eq(passing->state, SEQUENCE_RUNNING, "it ends before the second one does");
    rig_close(&rig);
}

/* The first sequence that cannot start at once must start at the very step at which it would start
 * if nothing had been submitted after it. */
static int first_blocked_start(uint64_t seed, int count, int *blocked) {
    struct rig rig;
    uint64_t state = seed;
    struct sequence *sequences[40];
    rig_open(&rig, one_group(fake_between(&state, 20, 300), fake_between(&state, 2, 8), 24));
    for (int i = 0; i < count; i++) {
        int prompt = fake_between(&state, 1, 600);
        sequences[i] =
            submit_alone(&rig, (int)(seed % 1000) * 100 + i, prompt, fake_between(&state, 1, 300));
    }
    int start = 0;
    while (rig_step(&rig)) {
        if (rig.steps == 1 && *blocked < 0)
            for (*blocked = 0; *blocked < count && sequences[*blocked]->state != SEQUENCE_WAITING;)
                ++*blocked;
        if (*blocked >= count || sequences[*blocked]->state != SEQUENCE_WAITING)
            break;
        start = rig.steps;
    }
    rig_close(&rig);
    return start;
}

Test(scheduler, passing_never_delays_the_head) {
    for (uint64_t seed = 1; seed <= 150; seed++) {
        int blocked = -1;
        int start = first_blocked_start(seed * 7919, 30, &blocked);
        if (blocked >= 30)
            continue;
        int alone = first_blocked_start(seed * 7919, blocked + 1, &blocked);
        cr_assert_leq(start, alone, "seed %d: sequence %d starts at %d instead of %d", (int)seed,
                      blocked, start, alone);
    }
}

static struct scheduler_options two_groups(int window, int64_t global, int64_t windowed) {
    struct scheduler_options options = one_group(64, 4, global);
    options.group_count = 2;
    options.groups[1] = (struct scheduler_group){window, windowed};
    return options;
}

Test(scheduler, a_window_group_needs_few_pages_for_a_long_document) {
    struct rig rig;
    rig_open(&rig, two_groups(100, 100, 4));
    struct sequence *sequence = submit_alone(&rig, 1, 5000, 100);
    while (rig_step(&rig))
        ;
    cr_assert_eq(sequence->output_count, 100);
    cr_assert_leq(rig.scheduler.pools[1].used_peak, (100 - 1 + 64 + 126) / 64);
    check_tokens(&rig, sequence);
    check_empty(&rig);
    rig_close(&rig);
}

Test(scheduler, a_prefix_is_found_as_far_as_the_window_reaches_back) {
    struct rig rig;
    rig_open(&rig, two_groups(100, 100, 100));
    submit_alone(&rig, 1, 1300, 100);
    while (rig_step(&rig))
        ;
    struct sequence *again = submit_alone(&rig, 1, 1350, 10);
    while (rig_step(&rig))
        ;
    cr_assert_eq(again->stats.cached_tokens, 1280);
    check_tokens(&rig, again);
    rig_close(&rig);
}

Test(scheduler, a_prefix_whose_window_was_evicted_is_computed_again) {
    struct rig rig;
    rig_open(&rig, two_groups(100, 200, 5));
    submit_alone(&rig, 1, 1300, 10);
    while (rig_step(&rig))
        ;
    submit_alone(&rig, 2, 1300, 10); /* its windows take the five pages */
    while (rig_step(&rig))
        ;
    struct sequence *again = submit_alone(&rig, 1, 1350, 10);
    while (rig_step(&rig))
        ;
    cr_assert_eq(again->stats.cached_tokens, 0, "global pages alone are not a prefix");
    check_tokens(&rig, again);
    rig_close(&rig);
}

Test(scheduler, questions_over_one_document_share_it_with_windows_too) {
    struct rig rig;
    int32_t tokens[1040];
    struct sequence *sequences[6];
    rig_open(&rig, two_groups(100, 60, 30));
    for (int q = 0; q < 6; q++) {
        for (int i = 0; i < 1040; i++)
            tokens[i] = i < 1024 ? i % VOCAB : q;
        sequences[q] = submit(&rig, tokens, 1040, 150);
    }
    while (rig_step(&rig))
        ;
    cr_assert_eq(rig.prefill_rows, 1024 + 6 * 16);
    for (int q = 0; q < 6; q++)
        check_tokens(&rig, sequences[q]);
    check_empty(&rig);
    rig_close(&rig);
}

Test(scheduler, logits_that_are_no_numbers_end_one_sequence_and_publish_nothing) {
    struct rig rig;
    rig_open(&rig, one_group(64, 4, 100));
    struct sequence *bad = submit_alone(&rig, 1, 64, 10);
    scheduler_plan(&rig.scheduler);
    scheduler_commit(&rig.scheduler, &(struct scheduler_outcome){0, false});
    cr_assert_eq(bad->state, SEQUENCE_OVER);
    cr_assert_eq(bad->output_count, 0);
    cr_assert_eq(rig.scheduler.index.entry_count, 0);
    cr_assert_null(scheduler_check(&rig.scheduler));
    check_empty(&rig);
    rig_close(&rig);
}

Test(scheduler, check_names_what_is_broken) {
    struct rig rig;
    rig_open(&rig, one_group(64, 4, 100));
    struct sequence *sequence = submit_alone(&rig, 1, 200, 10);
    rig_step(&rig);
    rig.scheduler.pools[0].pages[sequence->groups[0].table[0]].holders++;
    cr_assert_str_eq(scheduler_check(&rig.scheduler),
                     "a page's holders are not the page tables that name it");
    rig.scheduler.pools[0].pages[sequence->groups[0].table[0]].holders--;
    sequence->groups[0].reserved--;
    cr_assert_str_eq(scheduler_check(&rig.scheduler),
                     "a sequence has not reserved exactly what it may still take");
    sequence->groups[0].reserved++;
    sequence->written = 65;
    cr_assert_str_eq(scheduler_check(&rig.scheduler),
                     "a sequence holds fewer pages than it has written");
    sequence->computed = 66;
    cr_assert_str_eq(scheduler_check(&rig.scheduler),
                     "a sequence has computed more than it has written");
    rig_close(&rig);
}
