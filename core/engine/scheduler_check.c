/* Every invariant of the scheduler's state, recomputed from scratch and compared: run after each
 * step in debug builds, and in tests. Returns the broken invariant in words. */
#include "core/engine/scheduler.h"

static const char *check_table(const struct sequence *sequence, int group) {
    const struct sequence_pages *pages = &sequence->groups[group];
    if (pages->first < 0 || pages->first > pages->end || pages->end > sequence->page_count_max)
        return "a page table holds more than its sequence can have";
    for (int page = 0; page < sequence->page_count_max; page++) {
        bool held = page >= pages->first && page < pages->end;
        if (held != (pages->table[page] >= 0))
            return "a page table has a hole, or a page outside what is held";
    }
    return NULL;
}

static const char *check_held(const struct scheduler *scheduler, const struct sequence *sequence,
                              int group) {
    const struct sequence_pages *pages = &sequence->groups[group];
    int window = scheduler->options.groups[group].window;
    if ((int64_t)pages->end * KV_PAGE_TOKENS < sequence->written)
        return "a sequence holds fewer pages than it has written";
    if (pages->first > sequence_window_first(sequence->computed, window))
        return "a page inside the window was given back";
    if (window == 0 && pages->end + pages->reserved != sequence->page_count_max)
        return "a sequence has not reserved exactly what it may still take";
    if (window != 0 && pages->end - pages->first > pages->reserved)
        return "a sequence holds more of a window group than it reserved";
    return NULL;
}

static const char *check_running(const struct scheduler *scheduler,
                                 const struct sequence *sequence) {
    int known = sequence->prompt_count + sequence->output_count;
    if (sequence->state != SEQUENCE_RUNNING)
        return "a sequence among the running ones is not running";
    if (sequence->computed > known || sequence->output_count > sequence->max_tokens)
        return "a sequence has computed more than it has tokens";
    if (sequence->output_count > 0 && sequence->computed != known - 1)
        return "a decoding sequence is not exactly one token ahead";
    if (sequence->written < sequence->computed)
        return "a sequence has computed more than it has written";
    if (sequence->lookup && (sequence->guesses_no_more || sequence->output_count == 0))
        return "a sequence keeps an index of guesses that it does not make";
    if (sequence->published > sequence->full_count ||
        sequence->published * KV_PAGE_TOKENS > sequence->computed)
        return "a sequence has published a page that is not full";
    for (int group = 0; group < scheduler->options.group_count; group++) {
        const char *broken = check_table(sequence, group);
        if (!broken)
            broken = check_held(scheduler, sequence, group);
        if (broken)
            return broken;
    }
    return NULL;
}

static const char *check_list(const struct scheduler *scheduler, const struct sequence_list *list,
                              enum sequence_state state) {
    size_t count = 0;
    for (const struct sequence *s = list->first; s; s = s->next, count++) {
        if (s->state != state)
            return "a sequence is in the list of another state";
        if (state == SEQUENCE_WAITING && s->next && s->next->order <= s->order)
            return "the queue is out of order";
        for (int group = 0; group < scheduler->options.group_count; group++)
            if (s->groups[group].first != s->groups[group].end || s->groups[group].reserved != 0)
                return "a sequence that is not running holds or reserves pages";
    }
    return count == list->count ? NULL : "a list's count is wrong";
}

/* Holder counts are the page tables' references, one for one. */
static const char *check_holders(struct scheduler *scheduler, int group) {
    const struct kv_pool *pool = &scheduler->pools[group];
    int32_t *holders = scheduler->holders[group];
    for (int32_t page = 0; page < pool->fresh; page++)
        holders[page] = 0;
    for (int i = 0; i < scheduler->running_count; i++) {
        const struct sequence_pages *pages = &scheduler->running[i]->groups[group];
        for (int page = pages->first; page < pages->end; page++)
            holders[pages->table[page]]++;
    }
    for (int32_t page = 0; page < pool->fresh; page++)
        if (holders[page] != pool->pages[page].holders)
            return "a page's holders are not the page tables that name it";
    return NULL;
}

/* Published pages and index entries name each other. */
static const char *check_published(const struct scheduler *scheduler, int group) {
    const struct kv_pool *pool = &scheduler->pools[group];
    int64_t published = 0, attached = 0;
    for (int32_t page = 0; page < pool->fresh; page++) {
        const struct kv_page *record = &pool->pages[page];
        if (record->serial == 0)
            continue;
        const struct prefix_entry *entry = &scheduler->index.entries[record->entry];
        if (entry->serial != record->serial || entry->pages[group] != page)
            return "a published page and its index entry disagree";
        published++;
    }
    for (int32_t number = 0; number < scheduler->index.fresh; number++) {
        const struct prefix_entry *entry = &scheduler->index.entries[number];
        attached += entry->serial != 0 && entry->pages[group] >= 0;
    }
    return published == attached ? NULL : "an index entry names a page that is not published";
}

static const char *check_reserved(const struct scheduler *scheduler, int group) {
    int64_t reserved = 0;
    for (int i = 0; i < scheduler->running_count; i++)
        reserved += scheduler->running[i]->groups[group].reserved;
    if (reserved != scheduler->reserved[group])
        return "the sum of reservations is wrong";
    if (scheduler->options.groups[group].window == 0)
        reserved += scheduler->pools[group].used_count;
    if (reserved > scheduler->options.groups[group].page_count)
        return "more pages are promised than there are";
    return NULL;
}

static const char *check_group(struct scheduler *scheduler, int group) {
    const char *broken = kv_pool_check(&scheduler->pools[group]);
    if (!broken)
        broken = check_holders(scheduler, group);
    if (!broken)
        broken = check_published(scheduler, group);
    return broken ? broken : check_reserved(scheduler, group);
}

/* Each index of guesses is one running sequence's, or free. */
static const char *check_lookups(const struct scheduler *scheduler) {
    int count = 0, max = scheduler->options.speculate ? scheduler->options.max_sequences : 0;
    for (const struct lookup *l = scheduler->lookups_free; l && count <= max; l = l->next)
        count++;
    for (int i = 0; i < scheduler->running_count; i++) {
        const struct lookup *lookup = scheduler->running[i]->lookup;
        count += lookup != NULL;
        for (int j = 0; j < i && lookup; j++)
            if (scheduler->running[j]->lookup == lookup)
                return "two sequences have the same index of guesses";
    }
    return count == max ? NULL : "an index of guesses is lost";
}

const char *scheduler_check(struct scheduler *scheduler) {
    const char *broken = prefix_index_check(&scheduler->index);
    if (!broken)
        broken = check_list(scheduler, &scheduler->waiting, SEQUENCE_WAITING);
    if (!broken)
        broken = check_list(scheduler, &scheduler->over, SEQUENCE_OVER);
    if (scheduler->running_count > scheduler->options.max_sequences)
        broken = "more sequences run than may";
    if (!broken)
        broken = check_lookups(scheduler);
    for (int i = 0; i < scheduler->running_count && !broken; i++)
        broken = check_running(scheduler, scheduler->running[i]);
    for (int group = 0; group < scheduler->options.group_count && !broken; group++)
        broken = check_group(scheduler, group);
    return broken;
}
