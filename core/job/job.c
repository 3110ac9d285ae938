/* The engine's side of a job: items are ordered, submitted, followed token by token, and handed to
 * the writer when they end. What a token means (text, end, stop string) is decided here. */
#include "core/job/job.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/engine/simulate.h"
#include "core/job/generation.h"
#include "core/job/item_queue.h"
#include "core/job/order.h"
#include "core/job/reader.h"
#include "core/job/writer.h"

enum {
    SUBMITTED_TOKENS_MAX = 4 << 20, /* the engine copies what waits in it */
    READER_WAIT_MS = 500,
};

struct job_run {
    const struct job *job;
    struct engine *engine;
    struct item_queue ready, finished;
    struct reader *reader;
    struct writer writer;
    struct order_window window; /* read, not yet submitted */
    struct item **active;       /* submitted: [active_count] */
    size_t active_count, active_capacity;
    double wait_ms;
    long long unused_tokens; /* of all items */
    pthread_t reader_thread;
    bool reader_started, reader_joined, reader_abandoned;
    bool left_out; /* the user stopped and documents were not computed */
};

static void *reader_thread(void *context) {
    reader_run(context);
    return NULL;
}

static void *writer_thread(void *context) {
    writer_run(context);
    return NULL;
}

static int stop_level(const struct job_run *run) {
    return atomic_load(run->job->stop);
}

static bool is_stopping(struct job_run *run) {
    return stop_level(run) != JOB_GO_ON || atomic_load(&run->writer.failed);
}

/* ---- submitting ---- */

static bool remember_active(struct job_run *run, struct item *item) {
    if (run->active_count == run->active_capacity) {
        size_t capacity = run->active_capacity ? run->active_capacity * 2 : 64;
        struct item **active = realloc(run->active, capacity * sizeof(struct item *));
        if (!active)
            return false;
        run->active = active;
        run->active_capacity = capacity;
    }
    run->active[run->active_count++] = item;
    return true;
}

static void forget_active(struct job_run *run, const struct item *item) {
    for (size_t i = 0; i < run->active_count; i++) {
        if (run->active[i] == item) {
            run->active[i] = run->active[--run->active_count];
            return;
        }
    }
}

static void hand_to_writer(struct job_run *run, struct item *item) {
    item->finished_ns = clock_now_ns();
    item_queue_push(&run->finished, item);
}

static void submit(struct job_run *run, struct item *item) {
    struct error error;
    struct engine_request request = generation_request(item);
    enum status status = remember_active(run, item)
                             ? engine_submit(run->engine, &request, &item->sequence, &error)
                             : error_no_memory(&error, "a request");
    free(item->tokens);
    item->tokens = NULL;
    if (status == STATUS_OK)
        return;
    forget_active(run, item);
    item_fail(item, "out_of_memory", error.text);
    hand_to_writer(run, item);
}

/* Take what the reader has ready; wait only when there is nothing to compute. */
static void take_ready(struct job_run *run) {
    if (order_window_is_full(&run->window))
        return;
    bool idle = engine_is_idle(run->engine) && order_window_is_empty(&run->window);
    int64_t started_ns = clock_now_ns();
    struct item *item = item_queue_pop(&run->ready, idle ? 100 : 0);
    if (idle)
        run->wait_ms += clock_ms_between(started_ns, clock_now_ns());
    while (item) {
        if (!order_window_add(&run->window, item)) {
            item_fail(item, "out_of_memory", "out of memory for the queue");
            hand_to_writer(run, item);
        }
        item = order_window_is_full(&run->window) ? NULL : item_queue_pop(&run->ready, 0);
    }
}

static void submit_window(struct job_run *run) {
    size_t wanted = 2 * (size_t)run->job->settings->max_sequences;
    long long tokens = 0;
    if (engine_waiting_count(run->engine) > 0)
        return;
    order_window_sort(&run->window);
    for (size_t i = 0; i < wanted && tokens < SUBMITTED_TOKENS_MAX; i++) {
        if (order_window_is_empty(&run->window))
            return;
        struct item *item = order_window_take(&run->window);
        tokens += item->token_count;
        submit(run, item);
    }
}

/* ---- following ---- */

static void finish_item(struct job_run *run, struct item *item) {
    item->stats = *engine_stats(item->sequence);
    item->stats.accepted_tokens -= item->unused_tokens;
    run->unused_tokens += item->unused_tokens;
    engine_release(run->engine, item->sequence);
    item->sequence = NULL;
    forget_active(run, item);
    struct job_progress *progress = run->job->progress;
    atomic_fetch_add(&progress->prompt_tokens_done, item->token_count);
    hand_to_writer(run, item);
}

/* Group by group the pages differ; the scarcest ones are named. */
static void fail_never_fits(struct job_run *run, struct item *item) {
    struct engine_totals totals;
    engine_read_totals(run->engine, &totals);
    int64_t pages = totals.pages_max[0];
    for (int g = 1; g < MODEL_KV_GROUPS_MAX && totals.pages_max[g] > 0; g++)
        pages = totals.pages_max[g] < pages ? totals.pages_max[g] : pages;
    char message[256];
    snprintf(message, sizeof message,
             "its %d tokens and up to %lld of output need more KV memory than the whole budget of "
             "%lld tokens: raise --kv-memory, lower --max-tokens or use --kv-dtype int8",
             item->token_count, item->settings.max_tokens, (long long)pages * KV_PAGE_TOKENS);
    item_fail(item, "never_fits", message);
}

/* A step may bring tokens behind the document's last one: they are not used, and their guesses were
 * for nothing. */
static bool take_tokens(struct job_run *run, struct item *item, const struct engine_event *event) {
    for (int i = 0; i < event->token_count; i++) {
        bool last = event->last && i + 1 == event->token_count;
        atomic_fetch_add(&run->job->progress->completion_tokens, 1);
        item->unused_tokens = event->token_count - i - 1;
        if (generation_take_token(item, run->job->tokenizer, event->tokens[i], last))
            return true;
    }
    return false;
}

static void follow_event(struct job_run *run, const struct engine_event *event) {
    struct item *item = event->user;
    if (event->kind == ENGINE_TOKENS) {
        if (take_tokens(run, item, event))
            finish_item(run, item);
        return;
    }
    if (event->kind == ENGINE_NOT_A_NUMBER)
        item_fail(item, "not_a_number",
                  "the model computed logits that are not finite: the file may be damaged, or the "
                  "model not made for this number format");
    else
        fail_never_fits(run, item);
    finish_item(run, item);
}

/* ---- stopping ---- */

static void drop_item(struct job_run *run, struct item *item) {
    if (item->sequence)
        engine_release(run->engine, item->sequence);
    item_destroy(item);
    run->left_out = true;
}

/* After a stop: waiting documents are dropped, running ones too when it must be now. */
static void drop_unstarted(struct job_run *run, bool running_too) {
    while (!order_window_is_empty(&run->window))
        drop_item(run, order_window_take(&run->window));
    for (size_t i = run->active_count; i-- > 0;) {
        struct item *item = run->active[i];
        if (!running_too && engine_stats(item->sequence)->scheduled_ns != 0)
            continue;
        run->active[i] = run->active[--run->active_count];
        drop_item(run, item);
    }
}

static void heed_stop(struct job_run *run) {
    if (!is_stopping(run))
        return;
    item_queue_cancel(&run->ready);
    bool now = stop_level(run) == JOB_STOP_NOW || atomic_load(&run->writer.failed);
    run->left_out |= !item_queue_is_drained(&run->ready);
    drop_unstarted(run, now);
}

/* ---- the loop ---- */

static bool is_done(struct job_run *run) {
    return run->active_count == 0 && order_window_is_empty(&run->window) &&
           item_queue_is_drained(&run->ready);
}

static enum status compute_all(struct job_run *run, struct error *error) {
    while (!is_done(run)) {
        heed_stop(run);
        if (!is_stopping(run)) {
            take_ready(run);
            submit_window(run);
        }
        if (engine_is_idle(run->engine)) {
            if (run->active_count == 0 && is_stopping(run))
                return STATUS_OK;
            continue;
        }
        const struct engine_event *events = NULL;
        size_t event_count = 0;
        TRY(engine_step(run->engine, &events, &event_count, error));
        for (size_t i = 0; i < event_count; i++)
            follow_event(run, &events[i]);
        atomic_store(&run->job->progress->running, (long long)engine_running_count(run->engine));
    }
    return STATUS_OK;
}

static void fill_outcome(struct job_run *run, struct job_outcome *outcome) {
    static const struct reader_totals nothing;
    const struct reader_totals *reader = run->reader_joined ? reader_result(run->reader) : &nothing;
    struct summary *summary = outcome->summary;
    summary->resumed = reader->resumed;
    summary->skipped = reader->skipped;
    summary->read_ms = reader->read_ms;
    summary->tokenize_ms = reader->tokenize_ms;
    summary->write_ms = run->writer.write_ms;
    summary->wait_ms = run->wait_ms;
    engine_read_totals(run->engine, &summary->engine);
    summary->engine.decode_tokens -= run->unused_tokens;
    outcome->superseded |= reader->superseded;
    outcome->stopped_by_user = run->left_out || stop_level(run) != JOB_GO_ON;
    outcome->output_failed = atomic_load(&run->writer.failed) && !run->writer.output_closed;
    outcome->output_closed = run->writer.output_closed;
    outcome->resumed_failed = reader->resumed_failed;
    outcome->failed_by_warning = run->writer.failed_by_warning;
}

static void report_skipped(struct job_run *run) {
    struct text message;
    text_init(&message, 1 << 16);
    if (reader_skipped_message(run->reader, &message) && message.length > 0)
        log_write(run->job->log, LOG_WARNING, "%s", message.bytes);
    text_deinit(&message);
}

/* ---- opening and closing ---- */

static struct timespec deadline_after(long milliseconds) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec += milliseconds * 1000000;
    deadline.tv_sec += deadline.tv_nsec / 1000000000;
    deadline.tv_nsec %= 1000000000;
    return deadline;
}

/* A reader that waits for a pipe cannot be woken, and one deep in a long text takes its time: when
 * it is not at its end by itself it is soon left behind, with what it uses, until the process ends.
 */
static void join_reader(struct job_run *run) {
    if (!run->reader_started || run->reader_joined || run->reader_abandoned)
        return;
    item_queue_cancel(&run->ready);
    bool ended = atomic_load(&run->job->progress->reading_ended);
    struct timespec deadline = deadline_after(READER_WAIT_MS);
    run->reader_joined = (ended ? pthread_join(run->reader_thread, NULL)
                                : pthread_timedjoin_np(run->reader_thread, NULL, &deadline)) == 0;
    run->reader_abandoned = !run->reader_joined;
}

static enum status start_reader(struct job_run *run, struct error *error) {
    TRY(reader_create(run->job, &run->ready, &run->finished, &run->reader, error));
    run->reader_started =
        pthread_create(&run->reader_thread, NULL, reader_thread, run->reader) == 0;
    if (!run->reader_started)
        return error_set(error, STATUS_NO_MEMORY, "cannot start the reading thread");
    return STATUS_OK;
}

enum status job_open(const struct job *job, struct job_run **result, struct error *error) {
    struct job_run *run = calloc(1, sizeof *run);
    if (!run)
        return error_no_memory(error, "the job");
    run->job = job;
    item_queue_init(&run->ready, JOB_READY_ITEMS_MAX, JOB_READY_BYTES_MAX);
    item_queue_init(&run->finished, JOB_FINISHED_ITEMS_MAX, JOB_FINISHED_BYTES_MAX);
    order_window_init(&run->window);
    writer_init(&run->writer, job, &run->finished);
    enum status status = start_reader(run, error);
    if (status != STATUS_OK) {
        job_close(run);
        return status;
    }
    *result = run;
    return STATUS_OK;
}

bool job_close(struct job_run *run) {
    if (!run)
        return true;
    item_queue_cancel(&run->finished);
    join_reader(run);
    if (run->reader_abandoned)
        return false;
    reader_destroy(run->reader);
    writer_deinit(&run->writer);
    order_window_deinit(&run->window);
    item_queue_deinit(&run->ready);
    item_queue_deinit(&run->finished);
    free(run->active);
    free(run);
    return true;
}

/* ---- foreseeing ---- */

static enum status fill_window(struct job_run *run, int wait_ms, struct error *error) {
    int64_t deadline_ns = clock_now_ns() + (int64_t)wait_ms * 1000000;
    while (!order_window_is_full(&run->window) && !item_queue_is_drained(&run->ready) &&
           clock_now_ns() < deadline_ns && stop_level(run) == JOB_GO_ON) {
        struct item *item = item_queue_pop(&run->ready, 10);
        if (!item || order_window_add(&run->window, item))
            continue;
        item_destroy(item);
        return error_no_memory(error, "the queue");
    }
    return STATUS_OK;
}

static enum status simulate_window(struct job_run *run, struct simulate *simulate,
                                   struct error *error) {
    order_window_sort(&run->window);
    for (size_t i = run->window.count; i-- > 0;) {
        const struct item *item = run->window.items[i];
        struct engine_request request = generation_request(item);
        TRY(simulate_submit(simulate, &request, request.max_tokens, error));
    }
    while (simulate_step(simulate))
        continue;
    return STATUS_OK;
}

enum status job_foresee(struct job_run *run, const struct model *model,
                        const struct engine_options *options, const uint64_t *page_bytes,
                        int wait_ms, struct job_forecast *forecast, struct error *error) {
    *forecast = (struct job_forecast){0};
    TRY(fill_window(run, wait_ms, error));
    if (!item_queue_is_drained(&run->ready))
        return STATUS_OK;
    struct simulate *simulate = NULL;
    const struct simulate_costs costs = {.step = 1};
    TRY(simulate_create(model, options, page_bytes, &costs, &simulate, error));
    enum status status = simulate_window(run, simulate, error);
    struct simulate_result result;
    simulate_read(simulate, &result);
    simulate_destroy(simulate);
    for (int g = 0; g < model->kv_group_count; g++)
        forecast->kv_bytes += (uint64_t)result.pages_touched[g] * page_bytes[g];
    forecast->item_count = (int)run->window.count;
    forecast->whole = status == STATUS_OK && run->window.count > 0;
    return status;
}

/* ---- computing ---- */

enum status job_compute(struct job_run *run, struct engine *engine, struct job_outcome *outcome,
                        struct error *error) {
    pthread_t writer;
    run->engine = engine;
    run->writer.summary = outcome->summary;
    if (pthread_create(&writer, NULL, writer_thread, &run->writer) != 0)
        return error_set(error, STATUS_NO_MEMORY, "cannot start the writing thread");
    enum status status = compute_all(run, error);
    item_queue_cancel(&run->ready);
    drop_unstarted(run, true);
    join_reader(run);
    item_queue_close(&run->finished);
    pthread_join(writer, NULL);
    fill_outcome(run, outcome);
    if (status != STATUS_OK || !run->reader_joined)
        return status;
    report_skipped(run);
    if (outcome->output_failed)
        *error = run->writer.error;
    else if (reader_result(run->reader)->status != STATUS_OK)
        *error = reader_result(run->reader)->error;
    else
        return STATUS_OK;
    return error->status;
}
