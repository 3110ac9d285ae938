/* The output only ever grows by whole characters, so a stop string is found as soon as its last
 * byte is there; the text is cut at the earliest match. */
#include "core/job/generation.h"

#include <string.h>

static struct sampling sampling_of(const struct settings *settings) {
    return (struct sampling){
        .temperature = settings->temperature,
        .top_k = (int)settings->top_k,
        .top_p = settings->top_p,
        .min_p = settings->min_p,
        .repeat_penalty = settings->repeat_penalty,
        .seed = (uint64_t)settings->seed,
    };
}

struct engine_request generation_request(const struct item *item) {
    return (struct engine_request){
        .tokens = item->tokens,
        .token_count = item->token_count,
        .max_tokens = (int)item->settings.max_tokens,
        .sampling = sampling_of(&item->settings),
        .key = item->id_hash,
        .user = (struct item *)(uintptr_t)item,
    };
}

/* Earliest match that ends beyond `old_length`; of several at one place the longest. */
static bool cut_at_stop(struct item *item, size_t old_length) {
    const struct text_list *stops = &item->settings.stop;
    const char *best = NULL;
    const char *best_stop = NULL;
    for (int i = 0; i < stops->count; i++) {
        size_t length = strlen(stops->items[i]);
        size_t from = old_length + 1 > length ? old_length + 1 - length : 0;
        if (item->output.length < from + length)
            continue;
        const char *found =
            memmem(item->output.bytes + from, item->output.length - from, stops->items[i], length);
        if (found && (!best || found < best || (found == best && length > strlen(best_stop)))) {
            best = found;
            best_stop = stops->items[i];
        }
    }
    if (!best)
        return false;
    item->output.length = (size_t)(best - item->output.bytes);
    item->output.bytes[item->output.length] = '\0';
    item->stop_string = best_stop;
    return true;
}

static bool finish(struct item *item, const char *reason) {
    item->finish_reason = reason;
    return true;
}

bool generation_take_token(struct item *item, const struct tokenizer *tokenizer, int32_t token,
                           bool last) {
    size_t old_length = item->output.length;
    item->completion_tokens++;
    bool is_end = tokenizer_is_end(tokenizer, token) && !item->settings.ignore_eos;
    bool fits = is_end || decode_stream_push(tokenizer, &item->stream, token, &item->output);
    if (fits && (is_end || last))
        fits = decode_stream_finish(&item->stream, &item->output);
    if (!fits) {
        item_fail(item, "out_of_memory", "out of memory for the output text");
        return finish(item, "length");
    }
    if (cut_at_stop(item, old_length) || is_end)
        return finish(item, "stop");
    return last && finish(item, "length");
}
