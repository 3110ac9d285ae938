/* An item's life and its row. The timing fields are differences of stamps on one monotonic clock,
 * so the parts add up to the whole. */
#include "core/job/item.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"

enum { ITEM_ARENA_CHUNK = 4096, ITEM_ARENA_MAX = 64 << 20, OUTPUT_BYTES_MAX = 1 << 30 };

struct item *item_create(void) {
    struct item *item = calloc(1, sizeof *item);
    if (!item)
        return NULL;
    document_init(&item->document);
    arena_init(&item->arena, ITEM_ARENA_CHUNK, ITEM_ARENA_MAX);
    text_init(&item->output, OUTPUT_BYTES_MAX);
    decode_stream_init(&item->stream);
    return item;
}

void item_destroy(struct item *item) {
    if (!item)
        return;
    document_deinit(&item->document);
    arena_deinit(&item->arena);
    text_deinit(&item->output);
    free(item->tokens);
    free(item->error_message);
    free(item);
}

size_t item_bytes(const struct item *item) {
    return sizeof *item + item->document.text.length + item->document.input_bytes +
           item->output.length + (size_t)item->token_count * sizeof *item->tokens;
}

void item_fail(struct item *item, const char *code, const char *message) {
    item->error_code = code;
    free(item->error_message);
    item->error_message = strdup(message);
}

static void fill_tokens(const struct item *item, struct row *row) {
    row->has_tokens = item->length.prompt_tokens > 0;
    row->document_tokens = item->length.document_tokens;
    row->used_tokens = item->token_count > 0 ? item->length.used_tokens : 0;
    row->prompt_tokens = item->length.prompt_tokens;
    row->completion_tokens = item->completion_tokens;
    row->cached_tokens = item->stats.cached_tokens;
    row->computed_tokens = item->stats.computed_tokens;
    row->recomputed_tokens = item->stats.recomputed_tokens;
    row->chunks = item->stats.chunks;
    row->preemptions = item->stats.preemptions;
    row->speculates = item->settings.speculate != SPECULATE_OFF;
    row->guessed_tokens = item->stats.guessed_tokens;
    row->accepted_tokens = item->stats.accepted_tokens;
}

static void fill_timing(const struct item *item, struct row *row) {
    const struct sequence_stats *stats = &item->stats;
    row->has_timing = stats->first_token_ns != 0;
    if (!row->has_timing)
        return;
    struct row_timing *timing = &row->timing;
    timing->read_ms = (double)item->document.read_ns * 1e-6;
    timing->tokenize_ms = (double)item->tokenize_ns * 1e-6;
    timing->queued_ms = clock_ms_between(item->tokenized_ns, stats->scheduled_ns);
    timing->prefill_ms = clock_ms_between(stats->scheduled_ns, stats->first_token_ns);
    timing->first_token_ms =
        timing->read_ms + timing->tokenize_ms + timing->queued_ms + timing->prefill_ms;
    timing->decode_ms = clock_ms_between(stats->first_token_ns, item->finished_ns);
    timing->stalled_ms = (double)stats->stalled_ns * 1e-6;
    timing->latency_ms = timing->first_token_ms + timing->decode_ms;
    timing->tokens_per_second = item->completion_tokens > 1
                                    ? (item->completion_tokens - 1) / (timing->decode_ms * 1e-3)
                                    : NAN;
}

static void fill_warnings(const struct item *item, struct row *row) {
    row->warnings[WARNING_REPLACED_BYTES] = item->document.replaced_bytes;
    row->warnings[WARNING_SHORTENED] = item->length.shortened;
    if (item->error_code)
        return;
    row->warnings[WARNING_EMPTY_OUTPUT] = item->output.length == 0;
    row->warnings[WARNING_CUT_AT_MAX] =
        item->finish_reason && strcmp(item->finish_reason, "length") == 0;
}

void item_fill_row(const struct item *item, struct row *row) {
    const struct document *document = &item->document;
    *row = (struct row){
        .id_json = document->id_json ? document->id_json : "null",
        .index = document->index,
        .source_path = document->path,
        .source_line = document->line,
        .error_code = item->error_code,
        .error_message = item->error_message ? item->error_message : "out of memory",
        .text = text_view(&item->output),
        .finish_reason = item->finish_reason,
        .stop_string = item->stop_string,
        .kept = item->length.kept[0] ? item->length.kept : NULL,
        .input = document->input,
    };
    fill_warnings(item, row);
    fill_tokens(item, row);
    fill_timing(item, row);
}
