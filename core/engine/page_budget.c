/* See page_budget.h. Counts are computed in double: they are small integers and need not be exact
 * to the page, only the same on every run. */
#include "core/engine/page_budget.h"

enum {
    PAGES_MAX = 1 << 27, /* of one group: what the prefix index can name, with four groups */
    ROWS_MAX = 1 << 20,
};

/* Pages of a group that a sequence filling the context holds at most. */
static double pages_of_sequence(const struct model *model, const struct engine_options *options,
                                int group) {
    int window = model->kv_groups[group].window;
    int64_t all = (options->context - 1 + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;
    if (window == 0)
        return (double)all;
    int64_t held = sequence_window_span(window, options->batch_tokens);
    return (double)(held < all ? held : all);
}

/* Bytes of a full sequence in window groups, or in global ones. */
static double bytes_of_sequence(const struct model *model, const struct engine_options *options,
                                const uint64_t *page_bytes, bool windowed) {
    double bytes = 0;
    for (int group = 0; group < model->kv_group_count; group++)
        if ((model->kv_groups[group].window != 0) == windowed)
            bytes += pages_of_sequence(model, options, group) * (double)page_bytes[group];
    return bytes;
}

static enum status check_count(int64_t count, uint64_t page_bytes, uint64_t kv_bytes,
                               struct error *error) {
    if (count >= 1)
        return STATUS_OK;
    return error_set(error, STATUS_OVER_LIMIT,
                     "%llu bytes of KV memory are too few: a page of %d tokens has %llu bytes; "
                     "give more with --kv-memory",
                     (unsigned long long)kv_bytes, KV_PAGE_TOKENS, (unsigned long long)page_bytes);
}

enum status page_budget_split(const struct model *model, const struct engine_options *options,
                              const uint64_t *page_bytes, int64_t *page_count,
                              struct error *error) {
    double budget = (double)options->kv_bytes;
    double windowed = bytes_of_sequence(model, options, page_bytes, true);
    double global = bytes_of_sequence(model, options, page_bytes, false);
    double share = windowed / (windowed + global);
    double windowed_max = budget * (global > 0 && share < 0.5 ? 0.5 : share);
    double sequences = (double)options->max_sequences;
    if (windowed * sequences > windowed_max)
        sequences = windowed_max / windowed;
    double global_budget = budget - windowed * sequences;
    for (int group = 0; group < model->kv_group_count; group++) {
        double pages = pages_of_sequence(model, options, group);
        double count = pages * sequences;
        if (model->kv_groups[group].window == 0) {
            count = global_budget * (pages / global);
            if (!options->prefix_cache && count > pages * options->max_sequences)
                count = pages * options->max_sequences;
        }
        page_count[group] = count < PAGES_MAX ? (int64_t)(count + 1e-6) : PAGES_MAX;
        TRY(check_count(page_count[group], page_bytes[group], options->kv_bytes, error));
    }
    return STATUS_OK;
}

enum status page_budget_check(const struct engine_options *options, struct error *error) {
    if (options->batch_tokens < 1 || options->max_sequences < 1 || options->context < 2)
        return error_set(error, STATUS_BAD_INPUT,
                         "batch tokens %d, sequences %d and context %d are too few",
                         options->batch_tokens, options->max_sequences, options->context);
    if (options->batch_tokens > ROWS_MAX || options->max_sequences > ROWS_MAX)
        return error_set(error, STATUS_BAD_INPUT,
                         "batch tokens %d and sequences %d must be at most %d",
                         options->batch_tokens, options->max_sequences, ROWS_MAX);
    return STATUS_OK;
}

enum status page_budget_scheduling(const struct model *model, const struct engine_options *options,
                                   const uint64_t *page_bytes, struct scheduler_options *scheduling,
                                   struct error *error) {
    int64_t page_count[MODEL_KV_GROUPS_MAX];
    TRY(page_budget_check(options, error));
    TRY(page_budget_split(model, options, page_bytes, page_count, error));
    *scheduling = (struct scheduler_options){
        .batch_tokens = options->batch_tokens,
        .max_sequences = options->max_sequences,
        .context = options->context,
        .prefix_cache = options->prefix_cache,
        .group_count = model->kv_group_count,
    };
    for (int group = 0; group < model->kv_group_count; group++)
        scheduling->groups[group] =
            (struct scheduler_group){model->kv_groups[group].window, page_count[group]};
    return STATUS_OK;
}
