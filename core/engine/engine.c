/* One cycle of the engine: plan (scheduler), compute (decoder over the backend), sample (tasks on
 * the pool), commit (scheduler), events. Clocks are read here only; everything else a step decides
 * is a function of the requests. All memory of the cycle is taken at creation. */
#include "core/engine/engine.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/engine/page_budget.h"
#include "core/engine/sampler.h"
#include "core/engine/scheduler.h"
#include "core/model/decoder.h"

struct engine {
    const struct model *model;
    struct backend *backend;
    struct thread_pool *pool;
    struct scheduler scheduler;

    int worker_count;
    struct sampler *samplers;             /* [worker_count] */
    const struct scheduler_run **sampled; /* [max_sequences]: runs with rows to sample */
    struct scheduler_outcome *outcomes;   /* [max_sequences + guesses] */
    const float *logits;                  /* of the step being sampled */

    struct engine_event *events; /* [2 × max_sequences]: refusals, then results */
    size_t event_count;
    bool delivered; /* the caller has seen the events; after a failed step it has not */

    struct engine_totals totals;
    double fill_sum; /* over steps, rows / rows possible */
};

static enum status init_scheduler(struct engine *engine, const struct engine_options *options,
                                  struct error *error) {
    TRY(page_budget_check(options, error));
    int guesses = options->speculate ? lookup_more_rows(options->max_sequences) : 0;
    struct backend_limits limits = {
        .row_count_max = options->batch_tokens + options->max_sequences + guesses,
        .run_count_max = options->max_sequences,
        .sample_count_max = options->max_sequences + guesses,
        .context_max = options->context,
        .kv_type = options->kv_type,
    };
    struct scheduler_options scheduling;
    struct backend_memory memory =
        engine->backend->ops->memory(engine->backend, engine->model, &limits);
    TRY(page_budget_scheduling(engine->model, options, memory.kv_page, &scheduling, error));
    scheduling.speculate = options->speculate;
    for (int group = 0; group < scheduling.group_count; group++)
        limits.page_count_max[group] = engine->totals.pages_max[group] =
            scheduling.groups[group].page_count;
    TRY(scheduler_init(&engine->scheduler, &scheduling, error));
    return engine->backend->ops->reserve(engine->backend, &limits, error);
}

static enum status init_sampling(struct engine *engine, const struct elementwise_kernels *kernels,
                                 struct error *error) {
    size_t sequences = (size_t)engine->scheduler.options.max_sequences;
    size_t rows = sequences;
    if (engine->scheduler.options.speculate)
        rows += (size_t)lookup_more_rows((int)sequences);
    engine->sampled = calloc(sequences, sizeof *engine->sampled);
    engine->outcomes = calloc(rows, sizeof *engine->outcomes);
    engine->events = calloc(2 * sequences, sizeof *engine->events);
    engine->samplers = calloc((size_t)thread_pool_count(engine->pool), sizeof *engine->samplers);
    if (!engine->sampled || !engine->outcomes || !engine->events || !engine->samplers)
        return error_no_memory(error, "the engine");
    for (; engine->worker_count < thread_pool_count(engine->pool); engine->worker_count++)
        TRY(sampler_init(&engine->samplers[engine->worker_count], kernels,
                         engine->model->vocab_count, error));
    return STATUS_OK;
}

enum status engine_create(const struct model *model, struct backend *backend,
                          struct thread_pool *pool, const struct engine_options *options,
                          struct engine **engine, struct error *error) {
    struct engine *made = calloc(1, sizeof *made);
    assert(options->kernels);
    *engine = NULL;
    if (!made)
        return error_no_memory(error, "the engine");
    made->model = model;
    made->backend = backend;
    made->pool = pool;
    made->delivered = true;
    enum status status = init_scheduler(made, options, error);
    if (status == STATUS_OK)
        status = init_sampling(made, options->kernels, error);
    if (status != STATUS_OK) {
        engine_destroy(made);
        return status;
    }
    *engine = made;
    return STATUS_OK;
}

void engine_destroy(struct engine *engine) {
    if (!engine)
        return;
    for (int worker = 0; worker < engine->worker_count; worker++)
        sampler_deinit(&engine->samplers[worker]);
    scheduler_deinit(&engine->scheduler);
    free(engine->samplers);
    free(engine->sampled);
    free(engine->outcomes);
    free(engine->events);
    free(engine);
}

static enum status check_tokens(const struct engine *engine, const int32_t *tokens, int count,
                                struct error *error) {
    for (int i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= engine->model->vocab_count)
            return error_set(error, STATUS_BAD_INPUT, "token %d at %d is outside the vocabulary",
                             (int)tokens[i], i);
    return STATUS_OK;
}

enum status engine_submit(struct engine *engine, const struct engine_request *request,
                          struct sequence **sequence, struct error *error) {
    TRY(sampler_check(&request->sampling, error));
    TRY(check_tokens(engine, request->tokens, request->token_count, error));
    TRY(scheduler_submit(&engine->scheduler, request, sequence, error));
    (*sequence)->stats.submitted_ns = clock_now_ns();
    return STATUS_OK;
}

/* The rows of a run in order, up to the first guess that is not what its row before it says: each
 * row's history is what the sequence would have by then without guesses. */
static void sample_run(void *context, int task, int worker) {
    struct engine *engine = context;
    const struct scheduler_run *work = engine->sampled[task];
    const struct sequence *sequence = work->sequence;
    int known = sequence->prompt_count + sequence->output_count;
    size_t vocab = (size_t)engine->model->vocab_count;
    for (int i = 0; i <= work->guess_count; i++) {
        struct scheduler_outcome *outcome = &engine->outcomes[work->sample + i];
        struct sampler_row row = {
            .logits = engine->logits + (size_t)(work->sample + i) * vocab,
            .history = sequence->tokens,
            .history_count = known + i,
            .sampling = &sequence->sampling,
            .key = sequence->key,
        };
        outcome->finite = sampler_pick(&engine->samplers[worker], &row, &outcome->token);
        if (!outcome->finite || (i < work->guess_count && outcome->token != row.history[known + i]))
            return;
    }
}

static void sample(struct engine *engine, const struct step_plan *plan) {
    int run_count = 0;
    for (int i = 0; i < plan->run_count; i++) {
        const struct scheduler_run *work = &engine->scheduler.work[i];
        if (work->sample >= 0)
            engine->sampled[run_count++] = work;
    }
    engine->logits = engine->backend->ops->logits_view(engine->backend);
    if (run_count > 0)
        thread_pool_run(engine->pool, run_count, sample_run, engine);
}

static void add_event(struct engine *engine, enum engine_event_kind kind,
                      struct sequence *sequence) {
    engine->events[engine->event_count++] = (struct engine_event){
        .kind = kind,
        .sequence = sequence,
        .user = sequence->user,
        .last = sequence->state == SEQUENCE_OVER,
    };
}

/* After the commit: what became of each sampled run. None of its tokens may stand: then the
 * sequence goes on without its guesses. */
static void add_results(struct engine *engine, const struct step_plan *plan, int64_t now_ns) {
    for (int i = 0; i < plan->run_count; i++) {
        const struct scheduler_run *work = &engine->scheduler.work[i];
        struct sequence *sequence = work->sequence;
        struct sequence_stats *stats = &sequence->stats;
        if (work->sample >= 0 && work->token_count == 0 && sequence->state == SEQUENCE_OVER)
            add_event(engine, ENGINE_NOT_A_NUMBER, sequence);
        if (work->token_count == 0)
            continue;
        if (stats->first_token_ns == 0)
            stats->first_token_ns = now_ns;
        stats->last_token_ns = now_ns;
        add_event(engine, ENGINE_TOKENS, sequence);
        struct engine_event *event = &engine->events[engine->event_count - 1];
        event->token_count = work->token_count;
        event->tokens =
            sequence->tokens + sequence->prompt_count + sequence->output_count - work->token_count;
    }
}

/* Before the commit: the clocks and counts of sequences that this step is the first for. */
static void note_beginnings(struct engine *engine, const struct step_plan *plan, int64_t start_ns) {
    for (int i = 0; i < plan->run_count; i++) {
        struct sequence_stats *stats = &engine->scheduler.work[i].sequence->stats;
        if (stats->scheduled_ns != 0)
            continue;
        stats->scheduled_ns = start_ns;
        engine->totals.cached_tokens += stats->cached_tokens;
    }
}

/* Prompt rows, and what came of the others; returns the prompt rows. */
static int count_rows(struct engine *engine, const struct step_plan *plan) {
    struct engine_totals *totals = &engine->totals;
    int rows = 0;
    for (int i = 0; i < plan->run_count; i++) {
        const struct scheduler_run *work = &engine->scheduler.work[i];
        if (work->prefill)
            rows += plan->runs[i].row_count;
        else
            totals->decode_tokens += work->token_count;
    }
    totals->prefill_tokens += rows;
    return rows;
}

/* `stamps`: before planning, before computing, before sampling, at the end. */
static void add_totals(struct engine *engine, const struct step_plan *plan,
                       const int64_t stamps[4]) {
    struct engine_totals *totals = &engine->totals;
    int prefill_rows = count_rows(engine, plan);
    int64_t step_ns = stamps[3] - stamps[0];
    int64_t prefill_ns = (int64_t)((double)step_ns * prefill_rows / plan->row_count);
    totals->steps++;
    totals->prefill_rows_ns += prefill_ns;
    totals->decode_rows_ns += step_ns - prefill_ns;
    totals->planning_ns += stamps[1] - stamps[0];
    totals->backend_ns += stamps[2] - stamps[1];
    totals->sampling_ns += stamps[3] - stamps[2];
    engine->fill_sum += (double)plan->row_count / engine->scheduler.row_count_max;
}

static enum status compute(struct engine *engine, const struct step_plan *plan, int64_t start_ns,
                           struct error *error) {
    int64_t stamps[4] = {start_ns, clock_now_ns()};
    TRY(decoder_step(engine->model, engine->backend, plan, error));
    stamps[2] = clock_now_ns();
    sample(engine, plan);
    stamps[3] = clock_now_ns();
    note_beginnings(engine, plan, start_ns);
    scheduler_commit(&engine->scheduler, engine->outcomes);
    add_results(engine, plan, stamps[3]);
    add_totals(engine, plan, stamps);
    return STATUS_OK;
}

static enum status deliver(struct engine *engine, const struct engine_event **events,
                           size_t *event_count) {
    engine->delivered = true;
    *events = engine->events;
    *event_count = engine->event_count;
    return STATUS_OK;
}

enum status engine_step(struct engine *engine, const struct engine_event **events,
                        size_t *event_count, struct error *error) {
    int64_t start_ns = clock_now_ns();
    *event_count = 0;
    if (!engine->delivered && engine->event_count > 0)
        return deliver(engine, events, event_count);
    engine->event_count = 0;
    engine->delivered = false;
    const struct step_plan *plan = scheduler_plan(&engine->scheduler);
    for (int i = 0; i < engine->scheduler.refused_count; i++)
        add_event(engine, ENGINE_NEVER_FITS, engine->scheduler.refused[i]);
    if (plan->row_count > 0)
        TRY(compute(engine, plan, start_ns, error));
    assert(!scheduler_check(&engine->scheduler));
    return deliver(engine, events, event_count);
}

bool engine_is_idle(const struct engine *engine) {
    return engine->scheduler.waiting.count == 0 && engine->scheduler.running_count == 0 &&
           (engine->delivered || engine->event_count == 0);
}

size_t engine_waiting_count(const struct engine *engine) {
    return engine->scheduler.waiting.count;
}

size_t engine_running_count(const struct engine *engine) {
    return (size_t)engine->scheduler.running_count;
}

const struct sequence_stats *engine_stats(const struct sequence *sequence) {
    return &sequence->stats;
}

/* Events that a failed step left for the next one die with their sequence. */
static void forget_events(struct engine *engine, const struct sequence *sequence) {
    size_t kept = 0;
    for (size_t i = 0; i < engine->event_count; i++)
        if (engine->events[i].sequence != sequence)
            engine->events[kept++] = engine->events[i];
    engine->event_count = kept;
}

void engine_release(struct engine *engine, struct sequence *sequence) {
    if (!engine->delivered)
        forget_events(engine, sequence);
    scheduler_release(&engine->scheduler, sequence);
}

void engine_read_totals(const struct engine *engine, struct engine_totals *totals) {
    *totals = engine->totals;
    if (totals->steps > 0)
        totals->batch_fill = engine->fill_sum / (double)totals->steps;
    totals->running_peak = engine->scheduler.running_peak;
    for (int group = 0; group < engine->scheduler.options.group_count; group++) {
        totals->pages_peak[group] = engine->scheduler.pools[group].used_peak;
        totals->pages_touched[group] = engine->scheduler.pools[group].fresh;
    }
}

void engine_read_pages(const struct engine *engine, struct engine_pages *pages) {
    const struct scheduler *scheduler = &engine->scheduler;
    *pages = (struct engine_pages){0};
    for (int group = 0; group < scheduler->options.group_count; group++) {
        int64_t used = scheduler->pools[group].used_count;
        int64_t reserved = scheduler->reserved[group];
        bool most = scheduler->options.groups[group].window > 0; /* what is held included */
        pages->used[group] = used;
        pages->reserved[group] = !most ? reserved : reserved > used ? reserved - used : 0;
    }
    for (int i = 0; i < scheduler->running_count; i++)
        pages->positions_max +=
            scheduler->running[i]->prompt_count + scheduler->running[i]->max_tokens;
}
