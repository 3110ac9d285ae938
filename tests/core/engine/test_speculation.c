/* Guesses through the whole engine: texts that repeat themselves, and sometimes do not, give the
 * tokens they give without guesses, in fewer steps, whatever else is in the step and whatever
 * fails. */
#include <criterion/criterion.h>

#include "core/engine/lookup.h"
#include "tests/core/engine/engine_rig.h"

static struct engine_options guessing(int batch_tokens, int max_sequences, int pages,
                                      bool prefix_cache) {
    struct engine_options options = options_of(batch_tokens, max_sequences, pages, prefix_cache);
    options.speculate = true;
    return options;
}

static void open_echo(struct rig *rig, struct engine_options options, int threads) {
    rig_open(rig, options, threads);
    rig->backend.device.echo = true;
}

/* As make_jobs, with longer outputs. */
static void make_long_jobs(struct job *jobs) {
    make_jobs(jobs);
    for (int i = 0; i < JOBS; i++)
        jobs[i].max_tokens = i == 5 ? 1 : i == 6 ? 2 : 64 - i;
}

static void run_plainly(struct job *jobs) {
    struct rig rig;
    make_long_jobs(jobs);
    open_echo(&rig, options_of(1000, 1, 100, false), 1);
    for (int i = 0; i < JOBS; i++) {
        submit(&rig, &jobs[i], (uint64_t)i);
        run_all(&rig);
        cr_assert_eq(jobs[i].output_count, jobs[i].max_tokens);
    }
    rig_close(&rig);
}

Test(speculation, tokens_are_those_without_guesses) {
    static const struct {
        int batch_tokens, max_sequences, pages, threads;
        bool prefix_cache;
    } cases[] = {
        {1000, 1, 200, 1, false}, {64, 16, 400, 3, false}, {7, 16, 400, 1, true},
        {512, 3, 60, 2, true},    {100, 32, 40, 1, true},  {1, 2, 400, 3, true},
    };
    static struct job alone[JOBS], jobs[JOBS];
    run_plainly(alone);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct rig rig;
        int guessed = 0, accepted = 0;
        make_long_jobs(jobs);
        open_echo(&rig,
                  guessing(cases[c].batch_tokens, cases[c].max_sequences, cases[c].pages,
                           cases[c].prefix_cache),
                  cases[c].threads);
        for (int i = 0; i < JOBS; i++)
            submit(&rig, &jobs[i], (uint64_t)i);
        run_all(&rig);
        check_same(jobs, alone);
        for (int i = 0; i < JOBS; i++) {
            guessed += engine_stats(jobs[i].sequence)->guessed_tokens;
            accepted += engine_stats(jobs[i].sequence)->accepted_tokens;
        }
        bool may_guess = cases[c].batch_tokens > 1; /* no run is longer than a chunk */
        cr_assert(may_guess ? accepted > 30 && guessed > accepted : guessed == 0,
                  "case %zu: %d of %d guesses were right", c, accepted, guessed);
        rig_close(&rig);
    }
}

Test(speculation, every_accepted_guess_saves_a_step_and_every_row_is_counted) {
    for (int seed = 1; seed < 30; seed++) {
        struct rig rig;
        struct engine_totals totals;
        struct job job = job_of(seed, 0, 100, 64);
        open_echo(&rig, guessing(64, 1, 100, true), 1);
        submit(&rig, &job, 0);
        run_all(&rig);
        engine_read_totals(rig.engine, &totals);
        const struct sequence_stats *stats = engine_stats(job.sequence);
        cr_assert_eq(totals.steps, stats->chunks + 63 - stats->accepted_tokens);
        cr_assert_eq(totals.decode_tokens, 63);
        cr_assert_eq(totals.prefill_tokens, 100);
        cr_assert_geq(stats->guessed_tokens, stats->accepted_tokens);
        rig_close(&rig);
    }
}

Test(speculation, a_failed_step_loses_nothing) {
    static struct job alone[JOBS], jobs[JOBS];
    run_plainly(alone);
    for (int call = 3; call < 200; call += 5) {
        struct rig rig;
        make_long_jobs(jobs);
        open_echo(&rig, guessing(100, 8, 100, true), 1);
        rig.backend.fail_call = call;
        for (int i = 0; i < JOBS; i++)
            submit(&rig, &jobs[i], (uint64_t)i);
        while (!engine_is_idle(rig.engine)) {
            enum status status = step(&rig);
            cr_assert(status == STATUS_OK || status == STATUS_DEVICE);
        }
        check_same(jobs, alone);
        rig_close(&rig);
    }
}

/* What the backend of echoes mostly says behind a token. */
static int32_t said_behind(int32_t token) {
    float logits[VOCAB];
    int32_t most = 0;
    fill_logits(logits, fake_mix(23, (uint64_t)token), false);
    for (int32_t i = 1; i < VOCAB; i++)
        most = logits[i] > logits[most] ? i : most;
    return most;
}

/* Every pair of tokens that the text may come to say has been followed by one that makes a NaN. */
static struct job baited_job(void) {
    struct job job = job_of(1, 0, 571, 60);
    for (int32_t token = 0; token < 190; token++) {
        job.tokens[3 * token] = token;
        job.tokens[3 * token + 1] = said_behind(token);
        job.tokens[3 * token + 2] = POISON;
    }
    job.tokens[570] = 7;
    return job;
}

Test(speculation, a_guess_that_is_no_number_spoils_nothing) {
    struct job plain = baited_job(), guessed = baited_job();
    struct rig rig;
    open_echo(&rig, options_of(64, 2, 100, false), 1);
    submit(&rig, &plain, 0);
    run_all(&rig);
    rig_close(&rig);
    open_echo(&rig, guessing(64, 2, 100, false), 1);
    submit(&rig, &guessed, 0);
    run_all(&rig);
    cr_assert(guessed.over && guessed.end == ENGINE_TOKENS);
    cr_assert_eq(guessed.output_count, 60);
    cr_assert_arr_eq(guessed.output, plain.output, sizeof plain.output);
    int rows = engine_stats(guessed.sequence)->guessed_tokens;
    cr_assert(rows > 0 && rows <= LOOKUP_GUESSES_MAX, "%d rows: it guesses no more", rows);
    rig_close(&rig);
}

Test(speculation, logits_that_are_no_numbers_end_a_sequence_that_guesses) {
    struct rig rig;
    struct job poisoned = job_of(99, 0, 150, 20);
    poisoned.tokens[149] = POISON;
    open_echo(&rig, guessing(64, 2, 100, true), 1);
    submit(&rig, &poisoned, 0);
    run_all(&rig);
    cr_assert(poisoned.over && poisoned.end == ENGINE_NOT_A_NUMBER);
    cr_assert_eq(poisoned.output_count, 0);
    rig_close(&rig);
}

static int guesses_of(const struct job *jobs, int count) {
    int guesses = 0;
    for (int i = 0; i < count; i++)
        guesses += engine_stats(jobs[i].sequence)->guessed_tokens;
    return guesses;
}

/* A step of few rows has room for everybody's guesses; one with a long chunk for nobody's. */
Test(speculation, only_steps_of_few_rows_have_guesses) {
    struct rig rig;
    struct job jobs[3], late = job_of(9, 0, 500, 1);
    open_echo(&rig, guessing(100, 8, 400, true), 1);
    for (int i = 0; i < 3; i++) {
        jobs[i] = job_of(i, 0, 40, 64);
        submit(&rig, &jobs[i], 0);
    }
    int guessed = 0;
    for (int i = 0; i < 50 && guessed == 0; i++) {
        cr_assert_eq(step(&rig), STATUS_OK);
        guessed = guesses_of(jobs, 3);
    }
    cr_assert(guessed > 0 && guessed + 3 <= LOOKUP_ROWS_MAX);
    submit(&rig, &late, 0);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(step(&rig), STATUS_OK);
    cr_assert(late.over);
    cr_assert_eq(guesses_of(jobs, 3), guessed);
    run_all(&rig);
    cr_assert_gt(guesses_of(jobs, 3), guessed);
    rig_close(&rig);
}
