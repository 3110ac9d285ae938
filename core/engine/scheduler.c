/* Plans and commits. A plan lays the decoding rows first, then prompt chunks in order of
 * submission, and takes the pages the rows will be written to. A commit advances the sequences,
 * publishes prompt pages that became full, drops pages that fell behind a window, and ends what has
 * all its tokens. */
#include "core/engine/scheduler.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/admission.h"
#include "core/engine/speculation.h"

void scheduler_list_append(struct sequence_list *list, struct sequence *sequence) {
    sequence->next = NULL;
    sequence->previous = list->last;
    if (list->last)
        list->last->next = sequence;
    else
        list->first = sequence;
    list->last = sequence;
    list->count++;
}

void scheduler_list_remove(struct sequence_list *list, struct sequence *sequence) {
    if (sequence->previous)
        sequence->previous->next = sequence->next;
    else
        list->first = sequence->next;
    if (sequence->next)
        sequence->next->previous = sequence->previous;
    else
        list->last = sequence->previous;
    sequence->previous = sequence->next = NULL;
    list->count--;
}

int scheduler_chunk_max(const struct scheduler *scheduler, const struct sequence *sequence) {
    int chunk = scheduler->options.batch_tokens;
    return sequence->prompt_count < chunk ? sequence->prompt_count : chunk;
}

static enum status check_options(const struct scheduler_options *options, struct error *error) {
    if (options->batch_tokens < 1 || options->max_sequences < 1 || options->context < 2)
        return error_set(error, STATUS_BAD_INPUT,
                         "batch tokens %d, sequences %d and context %d must be positive",
                         options->batch_tokens, options->max_sequences, options->context);
    if (options->group_count < 1 || options->group_count > MODEL_KV_GROUPS_MAX)
        return error_set(error, STATUS_UNSUPPORTED, "a model with %d KV groups",
                         options->group_count);
    return STATUS_OK;
}

static enum status init_pools(struct scheduler *scheduler, struct error *error) {
    int64_t page_count = 0;
    for (int group = 0; group < scheduler->options.group_count; group++) {
        int64_t count = scheduler->options.groups[group].page_count;
        TRY(kv_pool_init(&scheduler->pools[group], count, error));
        scheduler->holders[group] = calloc((size_t)count, sizeof(int32_t));
        if (!scheduler->holders[group])
            return error_no_memory(error, "the scheduler");
        page_count += count;
    }
    return prefix_index_init(&scheduler->index, page_count, error);
}

static enum status init_arrays(struct scheduler *scheduler, struct error *error) {
    const struct scheduler_options *options = &scheduler->options;
    size_t sequences = (size_t)options->max_sequences;
    size_t guesses = options->speculate ? (size_t)lookup_more_rows(options->max_sequences) : 0;
    size_t pages = (size_t)options->context / KV_PAGE_TOKENS + 1;
    scheduler->running = calloc(sequences, sizeof *scheduler->running);
    scheduler->refused = calloc(sequences, sizeof *scheduler->refused);
    scheduler->row_count_max = options->batch_tokens + options->max_sequences + (int)guesses;
    scheduler->tokens = calloc((size_t)scheduler->row_count_max, sizeof *scheduler->tokens);
    scheduler->runs = calloc(sequences, sizeof *scheduler->runs);
    scheduler->work = calloc(sequences, sizeof *scheduler->work);
    scheduler->sample_rows = calloc(sequences + guesses, sizeof *scheduler->sample_rows);
    scheduler->ends = calloc(sequences + 1, sizeof *scheduler->ends);
    scheduler->entries[0] = calloc(pages, sizeof(int32_t));
    scheduler->entries[1] = calloc(pages, sizeof(int32_t));
    if (!scheduler->running || !scheduler->refused || !scheduler->tokens || !scheduler->runs ||
        !scheduler->work || !scheduler->sample_rows || !scheduler->ends || !scheduler->entries[0] ||
        !scheduler->entries[1])
        return error_no_memory(error, "the scheduler");
    scheduler->plan.tokens = scheduler->tokens;
    scheduler->plan.runs = scheduler->runs;
    scheduler->plan.sample_rows = scheduler->sample_rows;
    return STATUS_OK;
}

enum status scheduler_init(struct scheduler *scheduler, const struct scheduler_options *options,
                           struct error *error) {
    *scheduler = (struct scheduler){.options = *options};
    TRY(check_options(options, error));
    enum status status = init_pools(scheduler, error);
    if (status == STATUS_OK)
        status = init_arrays(scheduler, error);
    if (status == STATUS_OK)
        status = speculation_init(scheduler, error);
    if (status != STATUS_OK)
        scheduler_deinit(scheduler);
    return status;
}

static void destroy_list(struct sequence_list *list) {
    while (list->first) {
        struct sequence *sequence = list->first;
        scheduler_list_remove(list, sequence);
        sequence_destroy(sequence);
    }
}

void scheduler_deinit(struct scheduler *scheduler) {
    for (int i = 0; i < scheduler->running_count; i++)
        sequence_destroy(scheduler->running[i]);
    destroy_list(&scheduler->waiting);
    destroy_list(&scheduler->over);
    for (int group = 0; group < MODEL_KV_GROUPS_MAX; group++) {
        kv_pool_deinit(&scheduler->pools[group]);
        free(scheduler->holders[group]);
    }
    prefix_index_deinit(&scheduler->index);
    speculation_deinit(scheduler);
    free(scheduler->running);
    free(scheduler->refused);
    free(scheduler->tokens);
    free(scheduler->runs);
    free(scheduler->work);
    free(scheduler->sample_rows);
    free(scheduler->ends);
    free(scheduler->entries[0]);
    free(scheduler->entries[1]);
    *scheduler = (struct scheduler){0};
}

enum status scheduler_submit(struct scheduler *scheduler, const struct engine_request *request,
                             struct sequence **sequence, struct error *error) {
    int context = scheduler->options.context;
    if (request->token_count < 1 || request->max_tokens < 1)
        return error_set(error, STATUS_BAD_INPUT,
                         "a sequence needs a prompt and room for output, got %d and %d tokens",
                         request->token_count, request->max_tokens);
    if (request->token_count > context || request->max_tokens > context - request->token_count)
        return error_set(error, STATUS_OVER_LIMIT,
                         "%d prompt and %d output tokens exceed the context of %d",
                         request->token_count, request->max_tokens, context);
    TRY(sequence_create(request, scheduler->options.group_count, sequence, error));
    (*sequence)->order = scheduler->order_next++;
    scheduler_list_append(&scheduler->waiting, *sequence);
    scheduler->changed = true;
    return STATUS_OK;
}

/* A page for a running sequence, out of its reservation; what had to be evicted leaves the index.
 */
static void take_page(struct scheduler *scheduler, struct sequence *sequence, int group) {
    int32_t evicted;
    int32_t page = kv_pool_take(&scheduler->pools[group], &evicted);
    assert(page >= 0);
    if (evicted >= 0)
        prefix_index_detach(&scheduler->index, evicted, group);
    struct sequence_pages *pages = &sequence->groups[group];
    pages->table[pages->end++] = page;
    if (scheduler->options.groups[group].window == 0) {
        pages->reserved--;
        scheduler->reserved[group]--;
    }
}

/* Sample the rows of a run from the last known token on; returns the first one's index in
 * plan.sample_rows, -1 when more of what the sequence knows is to come. */
static int plan_sample(struct scheduler *scheduler, const struct sequence *sequence, int count) {
    struct step_plan *plan = &scheduler->plan;
    int first = plan->sample_count;
    int known = sequence->prompt_count + sequence->output_count - sequence->computed;
    for (int i = known - 1; i < count; i++)
        scheduler->sample_rows[plan->sample_count++] = plan->row_count + i;
    return known <= count ? first : -1;
}

/* Zeroed behind the run, unless the run's own write has not reached so far. */
static int stale_behind(struct sequence *sequence, int end) {
    int stale = sequence->written - end;
    if (stale > 0)
        return stale;
    sequence->written = end;
    return 0;
}

/* The next `count` positions of a sequence, as the next run of the plan; the last `guess_count` of
 * them are guesses. */
static void plan_run(struct scheduler *scheduler, struct sequence *sequence, int count,
                     int guess_count) {
    struct step_plan *plan = &scheduler->plan;
    struct step_run *run = &scheduler->runs[plan->run_count];
    struct scheduler_run *work = &scheduler->work[plan->run_count];
    int page_end = (sequence->computed + count - 1) / KV_PAGE_TOKENS + 1;
    *run = (struct step_run){
        .sequence = plan->run_count,
        .row_first = plan->row_count,
        .row_count = count,
        .position_first = sequence->computed,
        .stale_count = stale_behind(sequence, sequence->computed + count),
        .prefill = sequence_prefill_left(sequence) > 0,
    };
    for (int group = 0; group < scheduler->options.group_count; group++) {
        while (sequence->groups[group].end < page_end)
            take_page(scheduler, sequence, group);
        run->pages[group] = sequence->groups[group].table;
    }
    memcpy(scheduler->tokens + plan->row_count, sequence->tokens + sequence->computed,
           (size_t)count * sizeof(int32_t));
    *work = (struct scheduler_run){
        .sequence = sequence,
        .sample = plan_sample(scheduler, sequence, count),
        .prefill = run->prefill,
        .guess_count = guess_count,
    };
    plan->row_count += count;
    plan->run_count++;
}

/* The room is shared out evenly; what one sequence leaves the later ones may use. */
static void plan_decoding(struct scheduler *scheduler) {
    int decoding, room = speculation_room(scheduler, &decoding);
    for (int i = 0; i < scheduler->running_count; i++) {
        struct sequence *sequence = scheduler->running[i];
        if (sequence_prefill_left(sequence) > 0)
            continue;
        int guesses = speculation_guess(scheduler, sequence, room / decoding--);
        plan_run(scheduler, sequence, 1 + guesses, guesses);
        room -= guesses;
    }
}

const struct step_plan *scheduler_plan(struct scheduler *scheduler) {
    admission_run(scheduler);
    scheduler->plan.row_count = scheduler->plan.run_count = scheduler->plan.sample_count = 0;
    plan_decoding(scheduler);
    int budget = scheduler->options.batch_tokens;
    for (int i = 0; i < scheduler->running_count && budget > 0; i++) {
        struct sequence *sequence = scheduler->running[i];
        int count = sequence_prefill_left(sequence);
        int chunk_max = scheduler_chunk_max(scheduler, sequence);
        if (count == 0)
            continue;
        if (count > chunk_max)
            count = chunk_max;
        if (count > budget)
            count = budget;
        plan_run(scheduler, sequence, count, 0);
        budget -= count;
    }
    return &scheduler->plan;
}

/* Leave the page in the index; where another sequence's page already stands for it, ours stays
 * private. */
static void publish_page(struct scheduler *scheduler, struct sequence *sequence, int page) {
    int32_t number =
        prefix_index_publish(&scheduler->index, sequence->hashes[page], sequence->publish_serial,
                             sequence->tokens + (size_t)page * KV_PAGE_TOKENS);
    const struct prefix_entry *entry = &scheduler->index.entries[number];
    for (int group = 0; group < scheduler->options.group_count; group++) {
        int32_t id = sequence->groups[group].table[page];
        if (id < 0 || entry->pages[group] >= 0)
            continue;
        prefix_index_attach(&scheduler->index, number, group, id);
        kv_pool_publish(&scheduler->pools[group], id, number, entry->serial);
    }
    sequence->publish_entry = number;
    sequence->publish_serial = entry->serial;
}

/* Is the entry of the last page we published still the one we published? */
static bool chain_holds(const struct scheduler *scheduler, const struct sequence *sequence) {
    return sequence->published == 0 ||
           scheduler->index.entries[sequence->publish_entry].serial == sequence->publish_serial;
}

static void publish(struct scheduler *scheduler, struct sequence *sequence) {
    int full = sequence->computed / KV_PAGE_TOKENS;
    if (!scheduler->options.prefix_cache)
        return;
    if (full > sequence->full_count)
        full = sequence->full_count;
    for (; sequence->published < full && chain_holds(scheduler, sequence); sequence->published++) {
        publish_page(scheduler, sequence, sequence->published);
        scheduler->changed = true;
    }
}

/* Pages [first, end) of a group go back, the last one first. */
static void drop_pages(struct scheduler *scheduler, struct sequence *sequence, int group, int end) {
    struct sequence_pages *pages = &sequence->groups[group];
    for (int page = end - 1; page >= pages->first; page--) {
        kv_pool_drop(&scheduler->pools[group], pages->table[page]);
        pages->table[page] = -1;
    }
    pages->first = end;
}

/* Window groups: give back what no later position sees; a decoding sequence needs no room for
 * chunks. */
static void slide_windows(struct scheduler *scheduler, struct sequence *sequence) {
    for (int group = 0; group < scheduler->options.group_count; group++) {
        struct sequence_pages *pages = &sequence->groups[group];
        int window = scheduler->options.groups[group].window;
        if (window == 0)
            continue;
        int first = sequence_window_first(sequence->computed, window);
        if (first > pages->first)
            drop_pages(scheduler, sequence, group, first);
        if (sequence_prefill_left(sequence) > 0)
            continue;
        int64_t needed =
            sequence_window_pages(sequence, window, speculation_run_max(scheduler, sequence));
        if (needed < pages->reserved) {
            scheduler->reserved[group] -= pages->reserved - needed;
            pages->reserved = needed;
            scheduler->changed = true;
        }
    }
}

static void leave_running(struct scheduler *scheduler, const struct sequence *sequence) {
    int at = 0;
    while (scheduler->running[at] != sequence)
        at++;
    scheduler->running_count--;
    memmove(scheduler->running + at, scheduler->running + at + 1,
            (size_t)(scheduler->running_count - at) * sizeof *scheduler->running);
}

static void end_running(struct scheduler *scheduler, struct sequence *sequence) {
    leave_running(scheduler, sequence);
    speculation_end(scheduler, sequence);
    for (int group = 0; group < scheduler->options.group_count; group++) {
        drop_pages(scheduler, sequence, group, sequence->groups[group].end);
        scheduler->reserved[group] -= sequence->groups[group].reserved;
        sequence->groups[group].reserved = 0;
    }
    sequence->state = SEQUENCE_OVER;
    scheduler_list_append(&scheduler->over, sequence);
    scheduler->changed = true;
}

static void commit_run(struct scheduler *scheduler, struct scheduler_run *work, int count,
                       const struct scheduler_outcome *outcomes) {
    struct sequence *sequence = work->sequence;
    sequence->computed += count;
    sequence->written = sequence->computed;
    if (work->prefill) {
        sequence->stats.computed_tokens += count;
        sequence->stats.chunks++;
    }
    if (outcomes && !speculation_take(scheduler, work, outcomes)) {
        end_running(scheduler, sequence);
        return;
    }
    publish(scheduler, sequence);
    slide_windows(scheduler, sequence);
    bool prefilled = sequence_prefill_left(sequence) == 0;
    if (work->prefill && prefilled) /* nothing comes from it any more that one would wait for */
        scheduler->changed = true;
    if (sequence->output_count == sequence->max_tokens)
        end_running(scheduler, sequence);
}

void scheduler_commit(struct scheduler *scheduler, const struct scheduler_outcome *outcomes) {
    for (int i = 0; i < scheduler->plan.run_count; i++) {
        struct scheduler_run *work = &scheduler->work[i];
        bool sampled = work->sample >= 0;
        assert(!sampled || outcomes);
        commit_run(scheduler, work, scheduler->runs[i].row_count,
                   sampled ? &outcomes[work->sample] : NULL);
    }
}

void scheduler_release(struct scheduler *scheduler, struct sequence *sequence) {
    if (sequence->state == SEQUENCE_RUNNING)
        end_running(scheduler, sequence);
    if (sequence->state == SEQUENCE_WAITING)
        scheduler_list_remove(&scheduler->waiting, sequence);
    else
        scheduler_list_remove(&scheduler->over, sequence);
    scheduler->changed = true;
    sequence_destroy(sequence);
}
