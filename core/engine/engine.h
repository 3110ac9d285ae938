/* The engine: sequences in, tokens out. One thread owns it; it owns scheduler, KV pool, prefix
 * index and sampler, and calls the backend. No callbacks: each step returns the tokens it produced
 * and the caller (core/job) decides what they mean (text, stop strings, ends). */
#ifndef CORE_ENGINE_ENGINE_H
#define CORE_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/model/backend.h"
#include "core/model/model.h"

struct sampling {
    double temperature;    /* 0: greedy */
    int top_k;             /* 0: off */
    double top_p;          /* 1: off */
    double min_p;          /* 0: off */
    double repeat_penalty; /* 1: off; over prompt and output */
    uint64_t seed;
};

struct elementwise_kernels;

struct engine_options {
    int batch_tokens;  /* prefill rows of a step */
    int max_sequences; /* running at once */
    int context;       /* positions of a sequence, prompt + output */
    enum kv_type kv_type;
    uint64_t kv_bytes; /* budget for pages of all groups */
    bool prefix_cache;
    bool speculate; /* guess what sequences quote and compute it ahead: faster, the same tokens */
    const struct elementwise_kernels *kernels; /* for sampling; what only plans needs none */
};

struct engine_request {
    const int32_t *tokens; /* prompt, copied */
    int token_count;       /* ≥ 1 */
    int max_tokens;        /* ≥ 1; token_count + max_tokens ≤ context */
    struct sampling sampling;
    uint64_t key; /* hash of the document's id: with the seed and position it keys sampling */
    void *user;   /* handed back in events */
};

/* What a sequence went through; clocks are clock_now_ns stamps, 0: not yet. */
struct sequence_stats {
    int64_t submitted_ns;
    int64_t scheduled_ns;   /* first step that computed some of it began */
    int64_t first_token_ns; /* first token sampled */
    int64_t last_token_ns;
    int64_t stalled_ns;  /* decoding, but left out of steps: 0, every step has all decoding rows */
    int cached_tokens;   /* prompt tokens found in the prefix index */
    int computed_tokens; /* prompt tokens computed */
    int recomputed_tokens; /* 0: nothing is preempted */
    int chunks;            /* steps that computed prompt tokens */
    int preemptions;       /* 0 */
    int guessed_tokens;    /* rows computed for guesses of what comes next */
    int accepted_tokens;   /* ... that were right: each saved the sequence a step */
};

struct sequence; /* engine-owned handle */

enum engine_event_kind {
    ENGINE_TOKENS,       /* tokens were sampled; the sequence stops by itself after max_tokens */
    ENGINE_NOT_A_NUMBER, /* logits were not finite: the sequence is over */
    ENGINE_NEVER_FITS,   /* more KV pages than the whole pool: refused at admission, over */
};

struct engine_event {
    enum engine_event_kind kind;
    struct sequence *sequence;
    void *user;
    const int32_t *tokens; /* valid until the sequence is released */
    int token_count;       /* 1, and 1 more for each guess that was right */
    bool last; /* nothing more comes from this sequence: max_tokens reached, or one of the other
                  kinds */
};

struct engine;

/* Reserves the backend's KV space and scratch from the options. The backend stays the caller's and
 * is already prepared; it must outlive the engine. `pool` runs sampling tasks. */
enum status engine_create(const struct model *model, struct backend *backend,
                          struct thread_pool *pool, const struct engine_options *options,
                          struct engine **engine, struct error *error);
void engine_destroy(struct engine *engine);

/* Queue a request. Order of submission is the order of admission, except that a later one may pass
 * a head that cannot start yet if the head's start is not delayed. */
enum status engine_submit(struct engine *engine, const struct engine_request *request,
                          struct sequence **sequence, struct error *error);

/* Plan and compute one step. `*events` is valid until the next call. With nothing to do,
 * *event_count is 0 and engine_is_idle is true. A device error leaves all sequences as they were.
 */
enum status engine_step(struct engine *engine, const struct engine_event **events,
                        size_t *event_count, struct error *error);

bool engine_is_idle(const struct engine *engine);
size_t engine_waiting_count(const struct engine *engine);
size_t engine_running_count(const struct engine *engine);

const struct sequence_stats *engine_stats(const struct sequence *sequence);

/* The caller is done with a sequence (finished, stopped early, or cancelled): its pages go back,
 * full prompt pages staying findable in the prefix index. The handle is dead. */
void engine_release(struct engine *engine, struct sequence *sequence);

/* Sums over the run for the summary. */
struct engine_totals {
    int64_t steps;
    int64_t prefill_tokens, decode_tokens, cached_tokens;
    int64_t prefill_rows_ns; /* step time shared out by rows */
    int64_t decode_rows_ns;
    int64_t sampling_ns, planning_ns, backend_ns;
    double batch_fill;                          /* mean rows of a step / rows possible */
    int64_t pages_peak[MODEL_KV_GROUPS_MAX];    /* held by sequences at once */
    int64_t pages_touched[MODEL_KV_GROUPS_MAX]; /* ever written: what they cost in memory */
    int64_t pages_max[MODEL_KV_GROUPS_MAX];
    int running_peak;
};
void engine_read_totals(const struct engine *engine, struct engine_totals *totals);

/* Pages at this moment, also while a step is computed. */
struct engine_pages {
    int64_t used[MODEL_KV_GROUPS_MAX];     /* held by sequences */
    int64_t reserved[MODEL_KV_GROUPS_MAX]; /* promised to running ones, not taken yet */
    int64_t positions_max; /* of the running sequences, were each to take all its max_tokens */
};
void engine_read_pages(const struct engine *engine, struct engine_pages *pages);

#endif
