/* Three questions about a waiting sequence: how much of its prompt is in the index, whether it fits
 * now, and (for one that would pass the head) what a forecast says about the head's start with and
 * without it. The forecast is exact under its assumption: prefill is served in order of submission,
 * so the step at which a running sequence ends follows from the prompt tokens before it; pages
 * shared by several sequences come back with the last of them, counted on a copy of the holder
 * counts. */
#include "core/engine/admission.h"

#include <assert.h>

/* A prefix found in the index, and more of it that a running sequence is about to compute. */
struct hit {
    const int32_t *entries;
    int count;                     /* pages found */
    int coming;                    /* pages to come: worth waiting for */
    const struct sequence *source; /* who computes them; NULL: none are */
};

/* What the pool would look like, and still has to give, at some step of the forecast. */
struct forecast {
    struct scheduler *scheduler;
    int64_t used[MODEL_KV_GROUPS_MAX];
    int64_t reserved[MODEL_KV_GROUPS_MAX];
    int running_count;
};

/* Add a page to each group's run of pages present up to here; false: a global group lacks it. */
static bool count_present(const struct scheduler *scheduler, int32_t entry, int *present) {
    for (int group = 0; group < scheduler->options.group_count; group++) {
        bool there = scheduler->index.entries[entry].pages[group] >= 0;
        if (!there && scheduler->options.groups[group].window == 0)
            return false;
        present[group] = there ? present[group] + 1 : 0;
    }
    return true;
}

/* Do the window groups have all that the position after `count` pages looks back on? */
static bool windows_covered(const struct scheduler *scheduler, int count, const int *present) {
    for (int group = 0; group < scheduler->options.group_count; group++) {
        int window = scheduler->options.groups[group].window;
        int first = sequence_window_first(count * KV_PAGE_TOKENS, window);
        if (present[group] < count - first)
            return false;
    }
    return true;
}

/* Does one that runs go on like this prompt, beyond what is found and what it has computed itself?
 * Hashes suffice: a collision costs a wait, never a wrong page. */
static void find_coming(const struct scheduler *scheduler, const struct sequence *sequence,
                        struct hit *hit) {
    for (int i = 0; i < scheduler->running_count; i++) {
        const struct sequence *other = scheduler->running[i];
        int first = other->computed / KV_PAGE_TOKENS;
        if (first < hit->count)
            first = hit->count;
        int page = first;
        while (page < other->full_count && page < sequence_hit_max(sequence) &&
               other->hashes[page] == sequence->hashes[page])
            page++;
        if (page - first > hit->coming) {
            hit->coming = page - first;
            hit->source = other;
        }
    }
}

/* The longest prefix that every group can supply. */
static struct hit find_prefix(const struct scheduler *scheduler, const struct sequence *sequence,
                              int32_t *entries) {
    struct hit hit = {.entries = entries};
    int present[MODEL_KV_GROUPS_MAX] = {0};
    uint64_t parent_serial = 0;
    if (!scheduler->options.prefix_cache)
        return hit;
    for (int page = 0; page < sequence_hit_max(sequence); page++) {
        entries[page] = prefix_index_find(&scheduler->index, sequence->hashes[page], parent_serial,
                                          sequence->tokens + (size_t)page * KV_PAGE_TOKENS);
        if (entries[page] < 0 || !count_present(scheduler, entries[page], present))
            break;
        parent_serial = scheduler->index.entries[entries[page]].serial;
        if (windows_covered(scheduler, page + 1, present))
            hit.count = page + 1;
    }
    find_coming(scheduler, sequence, &hit);
    return hit;
}

static int64_t reservation(const struct scheduler *scheduler, const struct sequence *sequence,
                           int group, int hit_count) {
    int window = scheduler->options.groups[group].window;
    if (window == 0)
        return sequence->page_count_max - hit_count;
    return sequence_window_pages(sequence, window, scheduler_chunk_max(scheduler, sequence));
}

static bool never_fits(const struct scheduler *scheduler, const struct sequence *sequence) {
    for (int group = 0; group < scheduler->options.group_count; group++)
        if (reservation(scheduler, sequence, group, 0) >
            scheduler->options.groups[group].page_count)
            return true;
    return false;
}

/* Pages of a hit that nobody holds at the moment: they count once held. */
static int64_t idle_pages(const struct scheduler *scheduler, struct hit hit, int group) {
    int64_t count = 0;
    for (int page = 0; page < hit.count; page++) {
        int32_t id = scheduler->index.entries[hit.entries[page]].pages[group];
        count += kv_pool_holders(&scheduler->pools[group], id) == 0;
    }
    return count;
}

static bool fits_now(const struct scheduler *scheduler, const struct sequence *sequence,
                     struct hit hit) {
    if (scheduler->running_count >= scheduler->options.max_sequences)
        return false;
    for (int group = 0; group < scheduler->options.group_count; group++) {
        int64_t pages =
            scheduler->reserved[group] + reservation(scheduler, sequence, group, hit.count);
        if (scheduler->options.groups[group].window == 0)
            pages += scheduler->pools[group].used_count + idle_pages(scheduler, hit, group);
        if (pages > scheduler->options.groups[group].page_count)
            return false;
    }
    return true;
}

static void link_prefix(struct scheduler *scheduler, struct sequence *sequence, struct hit hit) {
    for (int group = 0; group < scheduler->options.group_count; group++) {
        struct sequence_pages *pages = &sequence->groups[group];
        pages->first = sequence_window_first(hit.count * KV_PAGE_TOKENS,
                                             scheduler->options.groups[group].window);
        pages->end = hit.count;
        for (int page = pages->first; page < pages->end; page++) {
            pages->table[page] = scheduler->index.entries[hit.entries[page]].pages[group];
            kv_pool_hold(&scheduler->pools[group], pages->table[page]);
        }
    }
    if (hit.count > 0) {
        sequence->publish_entry = hit.entries[hit.count - 1];
        sequence->publish_serial = scheduler->index.entries[sequence->publish_entry].serial;
    }
    sequence->published = hit.count;
    sequence->computed = sequence->written = hit.count * KV_PAGE_TOKENS;
    sequence->stats.cached_tokens = sequence->computed;
}

static void insert_running(struct scheduler *scheduler, struct sequence *sequence) {
    int at = scheduler->running_count++;
    for (; at > 0 && scheduler->running[at - 1]->order > sequence->order; at--)
        scheduler->running[at] = scheduler->running[at - 1];
    scheduler->running[at] = sequence;
    if (scheduler->running_count > scheduler->running_peak)
        scheduler->running_peak = scheduler->running_count;
}

static void admit(struct scheduler *scheduler, struct sequence *sequence, struct hit hit) {
    scheduler_list_remove(&scheduler->waiting, sequence);
    sequence->state = SEQUENCE_RUNNING;
    for (int group = 0; group < scheduler->options.group_count; group++) {
        int64_t pages = reservation(scheduler, sequence, group, hit.count);
        sequence->groups[group].reserved = pages;
        scheduler->reserved[group] += pages;
    }
    link_prefix(scheduler, sequence, hit);
    insert_running(scheduler, sequence);
}

/* Count `sequence` as a holder of the pages of its hit, and reserve its rest. Pages to come are
 * their source's, until that ends. */
static void forecast_admit(struct forecast *forecast, const struct sequence *sequence,
                           struct hit hit) {
    const struct scheduler *scheduler = forecast->scheduler;
    for (int group = 0; group < scheduler->options.group_count; group++) {
        forecast->reserved[group] += reservation(scheduler, sequence, group, hit.count);
        if (scheduler->options.groups[group].window != 0)
            continue;
        forecast->reserved[group] -= hit.coming;
        for (int page = 0; page < hit.count; page++) {
            int32_t id = scheduler->index.entries[hit.entries[page]].pages[group];
            forecast->used[group] += scheduler->holders[group][id]++ == 0;
        }
    }
}

static void forecast_drop(struct forecast *forecast, int group, int32_t page) {
    forecast->used[group] -= --forecast->scheduler->holders[group][page] == 0;
}

/* The end of a running sequence: what it holds, and what it had reserved, comes back, except what
 * the head waits for. */
static void forecast_end(struct forecast *forecast, const struct sequence *sequence,
                         struct hit head_hit) {
    const struct scheduler *scheduler = forecast->scheduler;
    for (int group = 0; group < scheduler->options.group_count; group++) {
        const struct sequence_pages *pages = &sequence->groups[group];
        forecast->reserved[group] -= pages->reserved;
        if (scheduler->options.groups[group].window != 0)
            continue;
        if (sequence == head_hit.source)
            forecast->reserved[group] += head_hit.coming;
        for (int page = pages->first; page < pages->end; page++)
            forecast_drop(forecast, group, pages->table[page]);
    }
    forecast->running_count--;
}

/* The end of the one that would pass: it is not running yet, its pages are those of its hit. */
static void forecast_end_passing(struct forecast *forecast, const struct sequence *sequence,
                                 struct hit hit) {
    const struct scheduler *scheduler = forecast->scheduler;
    for (int group = 0; group < scheduler->options.group_count; group++) {
        forecast->reserved[group] -= reservation(scheduler, sequence, group, hit.count);
        if (scheduler->options.groups[group].window != 0)
            continue;
        for (int page = 0; page < hit.count; page++)
            forecast_drop(forecast, group,
                          scheduler->index.entries[hit.entries[page]].pages[group]);
    }
    forecast->running_count--;
}

static bool forecast_fits(const struct forecast *forecast) {
    const struct scheduler *scheduler = forecast->scheduler;
    if (forecast->running_count >= scheduler->options.max_sequences)
        return false;
    for (int group = 0; group < scheduler->options.group_count; group++)
        if (forecast->used[group] + forecast->reserved[group] >
            scheduler->options.groups[group].page_count)
            return false;
    return true;
}

static struct forecast forecast_start(struct scheduler *scheduler) {
    struct forecast forecast = {.scheduler = scheduler, .running_count = scheduler->running_count};
    for (int group = 0; group < scheduler->options.group_count; group++) {
        const struct kv_pool *pool = &scheduler->pools[group];
        forecast.reserved[group] = scheduler->reserved[group];
        if (scheduler->options.groups[group].window != 0)
            continue;
        forecast.used[group] = pool->used_count;
        for (int32_t page = 0; page < pool->fresh; page++)
            scheduler->holders[group][page] = pool->pages[page].holders;
    }
    return forecast;
}

/* Shell's sort: qsort may allocate, and there are a few hundred at most. */
static void sort_ends(struct scheduler_end *ends, int count) {
    static const int gaps[] = {701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof gaps[0]; g++) {
        for (int i = gaps[g]; i < count; i++) {
            struct scheduler_end end = ends[i];
            int at = i;
            for (; at >= gaps[g] && ends[at - gaps[g]].step > end.step; at -= gaps[g])
                ends[at] = ends[at - gaps[g]];
            ends[at] = end;
        }
    }
}

/* The step after which `sequence` has all its tokens, `prompt_tokens` of prompts up to its own
 * first. */
static int64_t end_step(const struct scheduler *scheduler, const struct sequence *sequence,
                        int64_t prompt_tokens, bool prefilling) {
    int batch_tokens = scheduler->options.batch_tokens;
    if (!prefilling)
        return sequence->max_tokens - sequence->output_count;
    return (prompt_tokens + batch_tokens - 1) / batch_tokens + sequence->max_tokens - 1;
}

/* Ends of the running sequences, and of `passing` (or NULL), soonest first. */
static int list_ends(struct scheduler *scheduler, const struct sequence *passing, struct hit hit) {
    int count = 0;
    int64_t prompt_tokens = 0;
    for (int i = 0; i <= scheduler->running_count; i++) {
        const struct sequence *next = i < scheduler->running_count ? scheduler->running[i] : NULL;
        if (passing && (!next || next->order > passing->order)) {
            prompt_tokens += passing->prompt_count - hit.count * KV_PAGE_TOKENS;
            scheduler->ends[count++] =
                (struct scheduler_end){passing, end_step(scheduler, passing, prompt_tokens, true)};
            passing = NULL;
        }
        if (!next)
            break;
        int left = sequence_prefill_left(next);
        prompt_tokens += left;
        scheduler->ends[count++] =
            (struct scheduler_end){next, end_step(scheduler, next, prompt_tokens, left > 0)};
    }
    sort_ends(scheduler->ends, count);
    return count;
}

/* Steps until `head` fits, if `passing` (or NULL) is admitted now. */
static int64_t head_start(struct scheduler *scheduler, const struct sequence *head,
                          struct hit head_hit, const struct sequence *passing, struct hit hit) {
    struct forecast forecast = forecast_start(scheduler);
    forecast_admit(&forecast, head, head_hit);
    if (passing) {
        forecast_admit(&forecast, passing, hit);
        forecast.running_count++;
    }
    int count = list_ends(scheduler, passing, hit);
    int64_t step = 0;
    for (int i = 0; i < count && !forecast_fits(&forecast); i++) {
        const struct scheduler_end *end = &scheduler->ends[i];
        step = end->step;
        if (end->sequence == passing)
            forecast_end_passing(&forecast, passing, hit);
        else
            forecast_end(&forecast, end->sequence, head_hit);
    }
    assert(forecast_fits(&forecast));
    return step;
}

/* Admit sequences behind a head that cannot start yet, as far as that does not delay it. */
static void pass_head(struct scheduler *scheduler, struct sequence *head, struct hit head_hit) {
    if (scheduler->running_count >= scheduler->options.max_sequences)
        return;
    struct hit none = {0};
    int64_t promised = head_start(scheduler, head, head_hit, NULL, none);
    struct sequence *next = head->next;
    for (int looked = 0; next && looked < ADMISSION_PASS_MAX; looked++) {
        struct sequence *sequence = next;
        next = sequence->next;
        if (never_fits(scheduler, sequence))
            continue;
        struct hit hit = find_prefix(scheduler, sequence, scheduler->entries[1]);
        if (hit.coming == 0 && fits_now(scheduler, sequence, hit) &&
            head_start(scheduler, head, head_hit, sequence, hit) <= promised)
            admit(scheduler, sequence, hit);
    }
}

static void refuse(struct scheduler *scheduler, struct sequence *sequence) {
    scheduler_list_remove(&scheduler->waiting, sequence);
    scheduler_list_append(&scheduler->over, sequence);
    sequence->state = SEQUENCE_OVER;
    scheduler->refused[scheduler->refused_count++] = sequence;
}

void admission_run(struct scheduler *scheduler) {
    scheduler->refused_count = 0;
    if (!scheduler->changed)
        return;
    scheduler->changed = false;
    while (scheduler->waiting.first) {
        struct sequence *head = scheduler->waiting.first;
        if (never_fits(scheduler, head)) {
            scheduler->changed = scheduler->refused_count == scheduler->options.max_sequences;
            if (scheduler->changed)
                return;
            refuse(scheduler, head);
            continue;
        }
        struct hit hit = find_prefix(scheduler, head, scheduler->entries[0]);
        if (hit.coming > 0 || !fits_now(scheduler, head, hit)) {
            pass_head(scheduler, head, hit);
            return;
        }
        admit(scheduler, head, hit);
    }
}
