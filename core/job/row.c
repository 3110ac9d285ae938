/* Rows are written by hand in a fixed key order: a person reads id, status and text first. */
#include "core/job/row.h"

#include <math.h>
#include <string.h>

static bool append_key(struct text *out, const char *key) {
    return text_append_format(out, ",\"%s\":", key);
}

static bool append_member(struct text *out, const char *key, const char *value) {
    return append_key(out, key) && json_append_string(out, value, strlen(value));
}

static bool append_source(struct text *out, const struct row *row) {
    if (!text_append_string(out, ",\"source\":{\"path\":"))
        return false;
    const char *path = row->source_path ? row->source_path : "-";
    if (!json_append_string(out, path, strlen(path)))
        return false;
    if (row->source_line > 0 && !text_append_format(out, ",\"line\":%lld", row->source_line))
        return false;
    return text_append_char(out, '}');
}

static bool append_outcome(struct text *out, const struct row *row) {
    if (row->error_code) {
        const struct error_code *code = codes_error_find(row->error_code);
        return text_append_string(out, ",\"status\":\"error\",\"error\":{\"code\":") &&
               json_append_string(out, row->error_code, strlen(row->error_code)) &&
               append_member(out, "message", row->error_message) && append_key(out, "retryable") &&
               text_append_string(out, code && code->retryable ? "true}" : "false}");
    }
    if (!text_append_string(out, ",\"status\":\"ok\",\"text\":") ||
        !json_append_string(out, row->text.bytes, row->text.length) ||
        !append_member(out, "finish_reason", row->finish_reason))
        return false;
    return !row->stop_string || append_member(out, "stop_string", row->stop_string);
}

static bool append_warnings(struct text *out, const struct row *row) {
    bool fine = text_append_string(out, ",\"warnings\":[");
    bool first = true;
    for (int i = 0; i < WARNING_COUNT; i++) {
        if (row->warnings[i] == 0)
            continue;
        fine =
            fine && text_append_format(out, "%s{\"code\":\"%s\",\"count\":%lld}", first ? "" : ",",
                                       codes_warning_name((enum warning)i), row->warnings[i]);
        first = false;
    }
    return fine && text_append_char(out, ']');
}

static bool append_tokens(struct text *out, const struct row *row) {
    return text_append_format(out,
                              ",\"tokens\":{\"document\":%lld,\"used\":%lld,\"prompt\":%lld,"
                              "\"completion\":%lld}",
                              row->document_tokens, row->used_tokens, row->prompt_tokens,
                              row->completion_tokens);
}

static bool append_ms(struct text *out, const char *key, double value) {
    return text_append_format(out, "\"%s\":", key) && json_append_number(out, value, 3) &&
           text_append_char(out, ',');
}

static bool append_timing(struct text *out, const struct row_timing *timing) {
    return text_append_string(out, ",\"timing\":{") && append_ms(out, "read_ms", timing->read_ms) &&
           append_ms(out, "tokenize_ms", timing->tokenize_ms) &&
           append_ms(out, "queued_ms", timing->queued_ms) &&
           append_ms(out, "prefill_ms", timing->prefill_ms) &&
           append_ms(out, "first_token_ms", timing->first_token_ms) &&
           append_ms(out, "decode_ms", timing->decode_ms) &&
           append_ms(out, "stalled_ms", timing->stalled_ms) &&
           append_ms(out, "latency_ms", timing->latency_ms) &&
           text_append_string(out, "\"tokens_per_second\":") &&
           json_append_number(out, timing->tokens_per_second, 1) && text_append_char(out, '}');
}

static bool append_work(struct text *out, const struct row *row) {
    return text_append_format(out,
                              ",\"work\":{\"cached\":%lld,\"computed\":%lld,\"recomputed\":%lld,"
                              "\"chunks\":%lld,\"preemptions\":%lld",
                              row->cached_tokens, row->computed_tokens, row->recomputed_tokens,
                              row->chunks, row->preemptions) &&
           (!row->speculates || text_append_format(out, ",\"guessed\":%lld,\"accepted\":%lld",
                                                   row->guessed_tokens, row->accepted_tokens)) &&
           text_append_char(out, '}');
}

static bool append_input(struct text *out, const json_t *input) {
    return !input || json_object_size(input) == 0 ||
           (append_key(out, "input") && json_append(out, input));
}

bool row_append_json(struct text *out, const struct row *row) {
    size_t start = out->length;
    bool fine = text_append_string(out, "{\"id\":") && text_append_string(out, row->id_json) &&
                text_append_format(out, ",\"index\":%lld", row->index) && append_source(out, row) &&
                append_outcome(out, row) && append_warnings(out, row) &&
                (!row->kept || append_member(out, "kept", row->kept)) &&
                (!row->has_tokens || append_tokens(out, row)) &&
                (!row->has_timing || (append_timing(out, &row->timing) && append_work(out, row))) &&
                append_input(out, row->input) && append_member(out, "model", row->model) &&
                append_member(out, "numerics", row->numerics) &&
                append_member(out, "fingerprint", row->fingerprint) &&
                text_append_string(out, "}\n");
    if (!fine)
        out->length = start;
    return fine;
}
