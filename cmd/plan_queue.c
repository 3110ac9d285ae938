/* The reader of a real run feeds the simulated engine in the order a real run would take. */
#include "cmd/plan_queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/job/generation.h"
#include "core/job/item_queue.h"
#include "core/job/order.h"
#include "core/job/reader.h"

struct plan_run {
    const struct job *job;
    const struct runtime *runtime;
    struct item_queue ready, failed;
    struct reader *reader;
    struct order_window window;
    struct simulate *simulate;
    struct plan_report *report;
};

static void *read_all(void *context) {
    struct plan_run *run = context;
    reader_run(run->reader);
    item_queue_close(&run->failed);
    return NULL;
}

/* Of what is computed and what is too long for it. */
static void note_longest(struct plan_report *report, const struct item *item) {
    int place = report->longest_count;
    long long tokens = item->length.prompt_tokens;
    while (place > 0 && report->longest[place - 1].tokens < tokens)
        place--;
    if (place == LONGEST_MAX)
        return;
    int last = report->longest_count < LONGEST_MAX ? report->longest_count++ : LONGEST_MAX - 1;
    for (int i = last; i > place; i--)
        report->longest[i] = report->longest[i - 1];
    report->longest[place].tokens = tokens;
    report->longest[place].too_long = item->error_code != NULL;
    document_short_id(item->document.id_json, report->longest[place].id,
                      sizeof report->longest[place].id);
}

static bool is_wanted(const struct plan_run *run, const struct item *item) {
    const char *wanted = run->job->settings->show_prompt;
    if (!wanted || run->report->found_prompt)
        return false;
    json_t *id = json_loads(item->document.id_json, JSON_DECODE_ANY, NULL);
    const char *text = json_string_value(id);
    bool same = strcmp(item->document.id_json, wanted) == 0 || (text && strcmp(text, wanted) == 0);
    json_decref(id);
    return same;
}

/* Special tokens stand in double brackets; what looks like one but is not, does not. */
static void print_prompt(const struct plan_run *run, const struct item *item) {
    for (int i = 0; i < item->token_count; i++) {
        int32_t id = item->tokens[i];
        struct view bytes = tokenizer_token_bytes(run->job->tokenizer, id);
        bool special = tokenizer_is_special(run->job->tokenizer, id);
        printf("%s%.*s%s", special ? "[[" : "", (int)bytes.length, bytes.bytes,
               special ? "]]" : "");
    }
    printf("\n");
}

static void print_prompt_json(const struct item *item) {
    printf("{\"id\":%s,\"tokens\":%d,\"ids\":[", item->document.id_json, item->token_count);
    for (int i = 0; i < item->token_count; i++)
        printf("%s%d", i > 0 ? "," : "", item->tokens[i]);
    printf("]}\n");
}

static void note_ready(struct plan_run *run, const struct item *item) {
    struct plan_report *report = run->report;
    report->ready++;
    report->document_tokens += item->length.document_tokens;
    report->prompt_tokens += item->token_count;
    report->output_tokens_max += item->settings.max_tokens;
    report->shortened += item->length.shortened;
    note_longest(report, item);
    if (!is_wanted(run, item))
        return;
    report->found_prompt = true;
    if (run->job->settings->json)
        print_prompt_json(item);
    else
        print_prompt(run, item);
}

static void take_failed(struct plan_run *run) {
    struct item *item;
    while ((item = item_queue_pop(&run->failed, 0)) != NULL) {
        run->report->failed++;
        for (size_t i = 0; i < codes_error_count(); i++)
            run->report->errors[i] += strcmp(codes_error_at(i)->name, item->error_code) == 0;
        if (strcmp(item->error_code, "too_long") == 0)
            note_longest(run->report, item);
        item_destroy(item);
    }
}

static enum status submit(struct plan_run *run, struct item *item, struct error *error) {
    struct engine_request request = generation_request(item);
    enum status status =
        simulate_submit(run->simulate, &request, (int)item->settings.max_tokens, error);
    item_destroy(item);
    return status;
}

static enum status submit_window(struct plan_run *run, struct error *error) {
    size_t wanted = 2 * (size_t)run->job->settings->max_sequences;
    if (simulate_waiting_count(run->simulate) > 0)
        return STATUS_OK;
    order_window_sort(&run->window);
    for (size_t i = 0; i < wanted && !order_window_is_empty(&run->window); i++)
        TRY(submit(run, order_window_take(&run->window), error));
    return STATUS_OK;
}

/* Fill the window as far as the reader is; a plan waits for it, since reading costs no modelled
 * time. */
static enum status fill_window(struct plan_run *run, struct error *error) {
    while (!order_window_is_full(&run->window) && !item_queue_is_drained(&run->ready)) {
        struct item *item = item_queue_pop(&run->ready, 20);
        take_failed(run);
        if (!item)
            continue;
        note_ready(run, item);
        if (!order_window_add(&run->window, item)) {
            item_destroy(item);
            return error_no_memory(error, "the queue");
        }
    }
    return STATUS_OK;
}

static enum status simulate_all(struct plan_run *run, struct error *error) {
    do {
        TRY(fill_window(run, error));
        TRY(submit_window(run, error));
    } while (simulate_step(run->simulate) || !order_window_is_empty(&run->window) ||
             !item_queue_is_drained(&run->ready));
    return STATUS_OK;
}

static void fill_report(struct plan_run *run, const uint64_t *page_bytes) {
    struct plan_report *report = run->report;
    const struct reader_totals *totals = reader_result(run->reader);
    report->documents = totals->documents;
    report->skipped = totals->skipped;
    simulate_read(run->simulate, &report->simulated);
    for (int g = 0; g < run->runtime->model->kv_group_count; g++)
        report->kv_bytes_peak += (uint64_t)report->simulated.pages_touched[g] * page_bytes[g];
    const struct budget *budget = &run->runtime->budget;
    uint64_t queue_bytes = (uint64_t)report->prompt_tokens * sizeof(int32_t) +
                           (uint64_t)report->ready * sizeof(struct item);
    if (queue_bytes > BUDGET_QUEUE_BYTES)
        queue_bytes = BUDGET_QUEUE_BYTES;
    report->stated_bytes = budget_fixed_bytes(budget) + queue_bytes + report->kv_bytes_peak;
}

static enum status run_reader(struct plan_run *run, struct error *error) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, read_all, run) != 0)
        return error_set(error, STATUS_NO_MEMORY, "cannot start the reading thread");
    enum status status = simulate_all(run, error);
    if (status != STATUS_OK) {
        item_queue_cancel(&run->ready);
        item_queue_cancel(&run->failed);
    }
    pthread_join(thread, NULL);
    take_failed(run);
    if (status == STATUS_OK && reader_result(run->reader)->status != STATUS_OK) {
        *error = reader_result(run->reader)->error;
        return error->status;
    }
    return status;
}

enum status plan_queue_run(const struct job *job, const struct runtime *runtime,
                           const uint64_t *page_bytes, const struct simulate_costs *costs,
                           struct plan_report *report, struct error *error) {
    struct plan_run run = {.job = job, .runtime = runtime, .report = report};
    *report = (struct plan_report){0};
    item_queue_init(&run.ready, JOB_READY_ITEMS_MAX, JOB_READY_BYTES_MAX);
    item_queue_init(&run.failed, SIZE_MAX, SIZE_MAX);
    order_window_init(&run.window);
    struct engine_options options = runtime_engine_options(runtime);
    enum status status =
        simulate_create(runtime->model, &options, page_bytes, costs, &run.simulate, error);
    if (status == STATUS_OK)
        status = reader_create(job, &run.ready, &run.failed, &run.reader, error);
    if (status == STATUS_OK)
        status = run_reader(&run, error);
    if (status == STATUS_OK)
        fill_report(&run, page_bytes);
    reader_destroy(run.reader);
    simulate_destroy(run.simulate);
    order_window_deinit(&run.window);
    item_queue_deinit(&run.ready);
    item_queue_deinit(&run.failed);
    return status;
}
