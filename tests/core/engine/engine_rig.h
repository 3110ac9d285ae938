/* An engine over a backend of pages that remember, and requests with what came of them. */
#ifndef TESTS_CORE_ENGINE_ENGINE_RIG_H
#define TESTS_CORE_ENGINE_ENGINE_RIG_H

#include <criterion/criterion.h>
#include <string.h>

#include "core/engine/engine.h"
#include "core/kernels/kernels.h"
#include "tests/core/engine/fake_backend.h"

static struct op ops[] = {{.kind = OP_ATTENTION}, {.kind = OP_ATTENTION}, {.kind = OP_LOGITS}};

/* One global group and one of window 100. */
static struct model model = {
    .vocab_count = VOCAB,
    .op_count = 3,
    .ops = ops,
    .kv_group_count = 2,
    .kv_groups = {{1, 0}, {1, 100}},
};

struct rig {
    struct fake_backend backend;
    struct thread_pool *pool;
    struct engine *engine;
};

static inline struct engine_options options_of(int batch_tokens, int max_sequences, int pages,
                                               bool prefix_cache) {
    struct cpu_features none = {0};
    return (struct engine_options){.batch_tokens = batch_tokens,
                                   .max_sequences = max_sequences,
                                   .context = 1000,
                                   .kv_bytes = (uint64_t)pages * PAGE_BYTES,
                                   .prefix_cache = prefix_cache,
                                   .kernels = kernels_select(&none).elementwise};
}

static inline void rig_open(struct rig *rig, struct engine_options options, int threads) {
    *rig = (struct rig){.backend = {.base = {&fake_ops}}};
    rig->backend.device.group_count = 2;
    rig->backend.device.windows[1] = 100;
    cr_assert_eq(thread_pool_create(threads, false, &rig->pool, NULL), STATUS_OK);
    cr_assert_eq(engine_create(&model, &rig->backend.base, rig->pool, &options, &rig->engine, NULL),
                 STATUS_OK);
}

static inline void rig_close(struct rig *rig) {
    cr_assert_eq(rig->backend.device.faults, 0);
    engine_destroy(rig->engine);
    thread_pool_destroy(rig->pool);
    fake_close(&rig->backend.device);
    free(rig->backend.logits);
}

/* A request and what came of it. */
struct job {
    int32_t tokens[600];
    int count, max_tokens;
    struct sampling sampling;
    struct sequence *sequence;
    int32_t output[64];
    int output_count;
    bool over;
    enum engine_event_kind end;
};

static inline struct job job_of(int seed, int shared, int count, int max_tokens) {
    struct job job = {.count = count, .max_tokens = max_tokens};
    job.sampling = (struct sampling){.top_p = 1, .repeat_penalty = 1};
    for (int i = 0; i < count; i++)
        job.tokens[i] = (int32_t)(fake_mix(i < shared ? 1 : (uint64_t)seed + 2, (uint64_t)i) % 250);
    return job;
}

static inline void submit(struct rig *rig, struct job *job, uint64_t key) {
    struct engine_request request = {.tokens = job->tokens,
                                     .token_count = job->count,
                                     .max_tokens = job->max_tokens,
                                     .sampling = job->sampling,
                                     .key = key,
                                     .user = job};
    struct error error;
    cr_assert_eq(engine_submit(rig->engine, &request, &job->sequence, &error), STATUS_OK, "%s",
                 error.text);
}

static inline void take_events(struct rig *rig, const struct engine_event *events, size_t count) {
    (void)rig;
    for (size_t i = 0; i < count; i++) {
        struct job *job = events[i].user;
        cr_assert_eq(events[i].sequence, job->sequence);
        cr_assert_not(job->over);
        job->over = events[i].last;
        job->end = events[i].kind;
        if (events[i].kind == ENGINE_TOKENS)
            for (int t = 0; t < events[i].token_count; t++)
                job->output[job->output_count++] = events[i].tokens[t];
    }
}

static inline enum status step(struct rig *rig) {
    const struct engine_event *events;
    size_t count;
    struct error error;
    enum status status = engine_step(rig->engine, &events, &count, &error);
    take_events(rig, events, status == STATUS_OK ? count : 0);
    return status;
}

static inline void run_all(struct rig *rig) {
    while (!engine_is_idle(rig->engine))
        cr_assert_eq(step(rig), STATUS_OK);
}

enum { JOBS = 14 };

/* Shared and private prompts, greedy and sampled in all ways. */
static inline void make_jobs(struct job *jobs) {
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = job_of(i, i % 3 == 0 ? 200 : 0, (i % 3 == 0 ? 190 : 30) + 25 * i, 20 + i);
        if (i % 2 == 0)
            continue;
        jobs[i].sampling.temperature = 0.7;
        jobs[i].sampling.seed = (uint64_t)i;
        jobs[i].sampling.top_k = i % 4 == 1 ? 20 : 0;
        jobs[i].sampling.top_p = i % 5 == 1 ? 0.9 : 1;
        jobs[i].sampling.min_p = i % 3 == 1 ? 0.05 : 0;
        jobs[i].sampling.repeat_penalty = i % 3 == 2 ? 1.1 : 1;
    }
}

static inline void check_same(const struct job *jobs, const struct job *expected) {
    for (int i = 0; i < JOBS; i++) {
        cr_assert(jobs[i].over && jobs[i].end == ENGINE_TOKENS);
        cr_assert_eq(jobs[i].output_count, expected[i].output_count);
        cr_assert_arr_eq(jobs[i].output, expected[i].output, sizeof jobs[i].output, "job %d", i);
    }
}

static inline void run_alone(struct job *jobs) {
    struct rig rig;
    make_jobs(jobs);
    rig_open(&rig, options_of(1000, 1, 100, false), 1);
    for (int i = 0; i < JOBS; i++) {
        submit(&rig, &jobs[i], (uint64_t)i);
        run_all(&rig);
        cr_assert_eq(jobs[i].output_count, jobs[i].max_tokens);
    }
    rig_close(&rig);
}

#endif
