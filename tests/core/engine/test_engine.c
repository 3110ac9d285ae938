/* The engine over a backend of pages that remember (fake_device.h), through the real decoder and
 * thread pool: tokens do not depend on the batch, failures lose nothing, steps allocate nothing. */
#include <criterion/criterion.h>
#include <stdatomic.h>

#include "core/engine/simulate.h"
#include "tests/core/engine/engine_rig.h"

/* Counts, and on demand fails, every allocation of the process. A sanitizer brings an allocator of
 * its own: there the two tests that need this are skipped. */
static atomic_long allocations, fail_at;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { COUNTS_ALLOCATIONS = 0 };
#else
enum { COUNTS_ALLOCATIONS = 1 };
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static bool allocation_fails(void) {
    return atomic_fetch_add(&allocations, 1) + 1 == fail_at;
}

void *malloc(size_t bytes) {
    return allocation_fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    return allocation_fails() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) {
    return allocation_fails() ? NULL : __libc_realloc(old, bytes);
}
#endif

Test(engine, greedy_tokens_are_the_largest_logits_of_the_history) {
    struct rig rig;
    struct job job = job_of(1, 0, 100, 10);
    int32_t tokens[600];
    rig_open(&rig, options_of(64, 2, 100, true), 1);
    submit(&rig, &job, 0);
    run_all(&rig);
    memcpy(tokens, job.tokens, sizeof tokens);
    for (int i = 0; i < 10; i++) {
        float logits[VOCAB];
        fill_logits(logits, fake_expect(&rig.backend.device, tokens, 100 + i), false);
        for (int token = 0; token < VOCAB; token++)
            cr_assert_leq(logits[token], logits[job.output[i]]);
        tokens[100 + i] = job.output[i];
    }
    cr_assert_eq(rig.backend.kv_writes, 2 * (2 + 9), "two layers, eleven steps");
    rig_close(&rig);
}

Test(engine, tokens_do_not_depend_on_batch_chunk_threads_prefixes_or_pool) {
    static const struct {
        int batch_tokens, max_sequences, pages, threads;
        bool prefix_cache;
    } cases[] = {
        {1000, 4, 200, 1, false}, {64, 16, 400, 3, false}, {7, 16, 400, 1, true},
        {512, 3, 60, 2, true},    {100, 32, 40, 1, true},  {64, 16, 400, 3, true},
    };
    static struct job alone[JOBS], jobs[JOBS];
    run_alone(alone);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct rig rig;
        make_jobs(jobs);
        rig_open(&rig,
                 options_of(cases[c].batch_tokens, cases[c].max_sequences, cases[c].pages,
                            cases[c].prefix_cache),
                 cases[c].threads);
        for (int i = 0; i < JOBS; i++)
            submit(&rig, &jobs[i], (uint64_t)i);
        run_all(&rig);
        check_same(jobs, alone);
        rig_close(&rig);
    }
}

Test(engine, a_failed_step_loses_nothing) {
    static struct job alone[JOBS], jobs[JOBS];
    run_alone(alone);
    for (int call = 1; call < 120; call += 7) {
        struct rig rig;
        int failures = 0;
        make_jobs(jobs);
        rig_open(&rig, options_of(100, 8, 100, true), 1);
        rig.backend.fail_call = call;
        for (int i = 0; i < JOBS; i++)
            submit(&rig, &jobs[i], (uint64_t)i);
        while (!engine_is_idle(rig.engine)) {
            enum status status = step(&rig);
            cr_assert(status == STATUS_OK || status == STATUS_DEVICE);
            failures += status == STATUS_DEVICE;
        }
        cr_assert_eq(failures, 1);
        check_same(jobs, alone);
        rig_close(&rig);
    }
}

Test(engine, a_refusal_is_told_even_if_its_step_fails) {
    struct rig rig;
    struct job large = job_of(1, 0, 500, 50), gone = job_of(2, 0, 500, 50);
    struct job small = job_of(3, 0, 50, 5);
    rig_open(&rig, options_of(100, 8, 10, true), 1);
    rig.backend.fail_call = 1;
    submit(&rig, &large, 0);
    submit(&rig, &gone, 0);
    submit(&rig, &small, 0);
    cr_assert_eq(step(&rig), STATUS_DEVICE);
    engine_release(rig.engine, gone.sequence);
    run_all(&rig);
    cr_assert(large.over && large.end == ENGINE_NEVER_FITS);
    cr_assert_not(gone.over, "no event of a handle that is dead");
    cr_assert_eq(small.output_count, 5);
    engine_release(rig.engine, large.sequence);
    rig_close(&rig);
}

Test(engine, logits_that_are_no_numbers_end_their_sequence_only) {
    static struct job alone[JOBS], jobs[JOBS];
    struct rig rig;
    struct job poisoned = job_of(99, 0, 150, 20);
    poisoned.tokens[149] = POISON;
    run_alone(alone);
    make_jobs(jobs);
    rig_open(&rig, options_of(64, 16, 400, true), 2);
    for (int i = 0; i < JOBS; i++) {
        submit(&rig, &jobs[i], (uint64_t)i);
        if (i == 3)
            submit(&rig, &poisoned, 3);
    }
    run_all(&rig);
    cr_assert(poisoned.over && poisoned.end == ENGINE_NOT_A_NUMBER);
    cr_assert_eq(poisoned.output_count, 0);
    check_same(jobs, alone);
    rig_close(&rig);
}

Test(engine, a_released_sequence_makes_room_at_once) {
    struct rig rig;
    struct job first = job_of(1, 0, 300, 50), second = job_of(2, 0, 300, 5);
    rig_open(&rig, options_of(400, 1, 100, true), 1);
    submit(&rig, &first, 0);
    submit(&rig, &second, 0);
    step(&rig), step(&rig);
    cr_assert_eq(engine_running_count(rig.engine), 1);
    cr_assert_eq(engine_waiting_count(rig.engine), 1);
    engine_release(rig.engine, first.sequence);
    cr_assert_eq(engine_running_count(rig.engine), 0);
    run_all(&rig);
    cr_assert_eq(first.output_count, 2);
    cr_assert_eq(second.output_count, 5);
    rig_close(&rig);
}

Test(engine, requests_outside_the_model_are_refused) {
    struct rig rig;
    struct error error;
    struct sequence *sequence;
    struct job job = job_of(1, 0, 10, 5);
    rig_open(&rig, options_of(64, 2, 100, true), 1);
    struct engine_request request = {
        .tokens = job.tokens, .token_count = 10, .max_tokens = 5, .sampling = job.sampling};
    job.tokens[4] = VOCAB;
    cr_assert_eq(engine_submit(rig.engine, &request, &sequence, &error), STATUS_BAD_INPUT);
    cr_assert_str_eq(error.text, "token 251 at 4 is outside the vocabulary");
    job.tokens[4] = -1;
    cr_assert_eq(engine_submit(rig.engine, &request, &sequence, &error), STATUS_BAD_INPUT);
    job.tokens[4] = 0;
    request.sampling.top_p = 2;
    cr_assert_eq(engine_submit(rig.engine, &request, &sequence, &error), STATUS_BAD_INPUT);
    request.sampling.top_p = 1;
    request.max_tokens = 991;
    cr_assert_eq(engine_submit(rig.engine, &request, &sequence, &error), STATUS_OVER_LIMIT);
    cr_assert(engine_is_idle(rig.engine));
    rig_close(&rig);
}

Test(engine, clocks_and_counts_of_a_sequence_are_in_order) {
    struct rig rig;
    struct engine_totals totals;
    struct job first = job_of(1, 200, 300, 10), second = job_of(2, 200, 300, 10);
    rig_open(&rig, options_of(100, 8, 100, true), 1);
    submit(&rig, &first, 0);
    submit(&rig, &second, 0);
    run_all(&rig);
    for (int i = 0; i < 2; i++) {
        const struct sequence_stats *stats = engine_stats(i ? second.sequence : first.sequence);
        cr_assert(stats->submitted_ns > 0 && stats->submitted_ns <= stats->scheduled_ns);
        cr_assert_lt(stats->scheduled_ns, stats->first_token_ns);
        cr_assert_lt(stats->first_token_ns, stats->last_token_ns);
        cr_assert_eq(stats->cached_tokens, i ? 192 : 0);
        cr_assert_eq(stats->cached_tokens + stats->computed_tokens, 300);
        cr_assert_eq(stats->chunks, i ? 2 : 3);
        cr_assert(stats->stalled_ns == 0 && stats->recomputed_tokens == 0);
    }
    engine_read_totals(rig.engine, &totals);
    cr_assert_eq(totals.prefill_tokens, 300 + 108);
    cr_assert_eq(totals.cached_tokens, 192);
    cr_assert_eq(totals.decode_tokens, 18);
    cr_assert_eq(totals.running_peak, 2);
    cr_assert_eq(totals.pages_peak[0], 5 + 2);
    cr_assert_geq(totals.pages_touched[0], totals.pages_peak[0]);
    cr_assert_geq(totals.pages_max[0], totals.pages_touched[0]);
    cr_assert(totals.batch_fill > 0 && totals.batch_fill <= 1);
    cr_assert_eq(totals.prefill_rows_ns + totals.decode_rows_ns,
                 totals.planning_ns + totals.backend_ns + totals.sampling_ns);
    rig_close(&rig);
}

Test(engine, the_dry_run_foretells_steps_rows_hits_and_pages) {
    static struct job jobs[JOBS];
    static const uint64_t page_bytes[] = {PAGE_BYTES, PAGE_BYTES};
    struct engine_options options = options_of(100, 6, 40, true);
    struct engine_totals totals;
    struct simulate *simulate;
    struct simulate_costs costs = {0};
    struct simulate_result foretold;
    struct rig rig;
    make_jobs(jobs);
    rig_open(&rig, options, 1);
    cr_assert_eq(simulate_create(&model, &options, page_bytes, &costs, &simulate, NULL), STATUS_OK);
    for (int i = 0; i < JOBS; i++) {
        struct engine_request request = {
            .tokens = jobs[i].tokens, .token_count = jobs[i].count, .max_tokens = 20 + i};
        cr_assert_eq(simulate_submit(simulate, &request, 20 + i, NULL), STATUS_OK);
        submit(&rig, &jobs[i], 0);
    }
    run_all(&rig);
    while (simulate_step(simulate))
        ;
    engine_read_totals(rig.engine, &totals);
    simulate_read(simulate, &foretold);
    cr_assert_eq(foretold.steps, totals.steps);
    cr_assert_eq(foretold.prefill_tokens, totals.prefill_tokens);
    cr_assert_eq(foretold.decode_tokens, totals.decode_tokens);
    cr_assert_eq(foretold.cached_tokens, totals.cached_tokens);
    cr_assert_eq(foretold.running_peak, totals.running_peak);
    cr_assert_eq(foretold.batch_fill, totals.batch_fill);
    cr_assert_arr_eq(foretold.pages_peak, totals.pages_peak, sizeof totals.pages_peak);
    cr_assert_arr_eq(foretold.pages_touched, totals.pages_touched, sizeof totals.pages_touched);
    cr_assert_arr_eq(foretold.pages_max, totals.pages_max, sizeof totals.pages_max);
    simulate_destroy(simulate);
    rig_close(&rig);
}

Test(engine, too_little_memory_for_a_page_is_said_with_numbers) {
    struct rig rig = {.backend = {.base = {&fake_ops}}};
    struct engine_options options = options_of(64, 2, 1, true);
    struct error error;
    cr_assert_eq(thread_pool_create(1, false, &rig.pool, NULL), STATUS_OK);
    cr_assert_eq(engine_create(&model, &rig.backend.base, rig.pool, &options, &rig.engine, &error),
                 STATUS_OVER_LIMIT);
    cr_assert_str_eq(error.text, "1000 bytes of KV memory are too few: a page of 64 tokens has "
                                 "1000 bytes; give more with --kv-memory");
    options.batch_tokens = 0;
    cr_assert_eq(engine_create(&model, &rig.backend.base, rig.pool, &options, &rig.engine, &error),
                 STATUS_BAD_INPUT);
    thread_pool_destroy(rig.pool);
}

Test(engine, a_step_allocates_nothing) {
    static struct job jobs[JOBS];
    struct rig rig;
    if (!COUNTS_ALLOCATIONS)
        cr_skip_test("a sanitizer owns the allocator");
    make_jobs(jobs);
    struct engine_options options = options_of(64, 4, 30, true);
    options.speculate = true;
    rig_open(&rig, options, 3);
    rig.backend.device.echo = true;
    for (int i = 0; i < JOBS; i++)
        submit(&rig, &jobs[i], (uint64_t)i);
    cr_assert_eq(step(&rig), STATUS_OK);
    while (!engine_is_idle(rig.engine)) {
        const struct engine_event *events;
        size_t count;
        long before = allocations;
        enum status status = engine_step(rig.engine, &events, &count, NULL);
        long after = allocations;
        cr_assert_eq(status, STATUS_OK);
        cr_assert_eq(after, before);
        take_events(&rig, events, count);
    }
    rig_close(&rig);
}

/* Every allocation of creation and submission in turn fails: an ordinary status each time. */
Test(engine, any_allocation_may_fail) {
    struct engine_options options = options_of(64, 4, 30, true);
    options.speculate = true;
    struct job job = job_of(1, 0, 100, 5);
    if (!COUNTS_ALLOCATIONS)
        cr_skip_test("a sanitizer owns the allocator");
    int failures = 0;
    for (bool failed = true; failed;) {
        struct rig rig = {.backend = {.base = {&fake_ops}, .device = {.group_count = 2}}};
        struct engine_request request = {
            .tokens = job.tokens, .token_count = 100, .max_tokens = 5, .sampling = job.sampling};
        cr_assert_eq(thread_pool_create(2, false, &rig.pool, NULL), STATUS_OK);
        fail_at = allocations + 1 + failures;
        enum status status =
            engine_create(&model, &rig.backend.base, rig.pool, &options, &rig.engine, NULL);
        if (status == STATUS_OK) {
            status = engine_submit(rig.engine, &request, &job.sequence, NULL);
            engine_destroy(rig.engine);
        }
        failed = status != STATUS_OK;
        cr_assert(!failed || status == STATUS_NO_MEMORY);
        failures += failed;
        fail_at = 0;
        free(rig.backend.logits);
        fake_close(&rig.backend.device);
        thread_pool_destroy(rig.pool);
    }
    cr_assert_gt(failures, 20);
}
