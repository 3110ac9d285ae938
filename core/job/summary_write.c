/* The summary's two forms: a few lines for a person, one JSON object for a program. */
#include "core/job/summary.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/json.h"

static const char *const part_names[PART_COUNT] = {
    [PART_READ] = "read_ms",
    [PART_TOKENIZE] = "tokenize_ms",
    [PART_QUEUED] = "queued_ms",
    [PART_PREFILL] = "prefill_ms",
    [PART_FIRST_TOKEN] = "first_token_ms",
    [PART_DECODE] = "decode_ms",
    [PART_STALLED] = "stalled_ms",
    [PART_LATENCY] = "latency_ms",
};

static double per_second(int64_t count, int64_t nanoseconds) {
    return nanoseconds > 0 ? (double)count / ((double)nanoseconds * 1e-9) : NAN;
}

static double share(double part_ms, double whole_ms) {
    return whole_ms > 0 ? part_ms / whole_ms : NAN;
}

static double cost_of_run(const struct summary *summary, const struct settings *settings) {
    return settings->price_per_hour * summary->facts.wall_ms / 3.6e6;
}

/* ---- text ---- */

static bool append_reasons(struct text *out, const struct summary *summary) {
    bool fine = true;
    for (int i = 0; i < summary->reason_count; i++)
        fine = fine && text_append_format(out, "  %s\n", summary->first_reasons[i]);
    return fine;
}

static bool append_rate(struct text *out, const char *before, int64_t count, int64_t nanoseconds) {
    return count == 0 || nanoseconds <= 0 ||
           text_append_format(out, "%s %.0f tokens/s", before, per_second(count, nanoseconds));
}

static bool append_rates(struct text *out, const struct summary *summary) {
    const struct engine_totals *engine = &summary->engine;
    if (engine->prefill_tokens == 0)
        return true;
    return text_append_format(
               out,
               "tokens: %lld prompt (%lld from the prefix cache, %lld computed), %lld generated",
               summary->prompt_tokens, summary->cached_tokens, summary->computed_tokens,
               summary->completion_tokens) &&
           append_rate(out, "; prefill", engine->prefill_tokens, engine->prefill_rows_ns) &&
           append_rate(out, ", decode", engine->decode_tokens, engine->decode_rows_ns) &&
           (summary->guessed_tokens == 0 ||
            text_append_format(out, "; %lld of %lld guesses were right", summary->accepted_tokens,
                               summary->guessed_tokens)) &&
           text_append_char(out, '\n');
}

static bool append_latency_line(struct text *out, const struct summary *summary) {
    const struct histogram *latency = &summary->parts[PART_LATENCY];
    if (latency->count == 0)
        return true;
    return text_append_format(out, "latency: p50 %.0f ms, p90 %.0f, p99 %.0f, max %.0f\n",
                              summary_histogram_percentile(latency, 50),
                              summary_histogram_percentile(latency, 90),
                              summary_histogram_percentile(latency, 99), latency->max);
}

/* ---- computing ---- */

struct rates {
    double flops, bytes; /* useful ones a second, while the backend computed */
};

static struct rates rates_of(const struct summary *summary) {
    const struct summary_work *work = &summary->work;
    double seconds = (double)summary->engine.backend_ns * 1e-9;
    double bytes = summary_work_weight_bytes(work, summary->engine.steps) + work->kv_bytes;
    if (seconds <= 0)
        return (struct rates){NAN, NAN};
    return (struct rates){(work->matmul_flops + work->attention_flops) / seconds, bytes / seconds};
}

static bool append_op_shares(struct text *out, const struct summary_facts *facts) {
    double ops_ms = facts->attention_ms + facts->matmul_ms + facts->other_ops_ms;
    return ops_ms <= 0 ||
           text_append_format(out, "; attention %.0f %%, matmuls %.0f %% of it",
                              facts->attention_ms * 100 / ops_ms, facts->matmul_ms * 100 / ops_ms);
}

static bool append_compute_line(struct text *out, const struct summary *summary) {
    struct rates rates = rates_of(summary);
    const struct summary_facts *facts = &summary->facts;
    if (!isfinite(rates.flops))
        return true;
    return text_append_format(out, "compute: %.1f useful GFLOP/s", rates.flops * 1e-9) &&
           (facts->flops_ceiling <= 0 ||
            text_append_format(out, " of %.0f measured", facts->flops_ceiling * 1e-9)) &&
           text_append_format(out, ", %.1f GB/s", rates.bytes * 1e-9) &&
           (facts->bytes_ceiling <= 0 ||
            text_append_format(out, " of %.0f", facts->bytes_ceiling * 1e-9)) &&
           append_op_shares(out, facts) && text_append_char(out, '\n');
}

static bool append_streaming_line(struct text *out, const struct summary_facts *facts) {
    if (facts->streamed_bytes == 0)
        return true;
    if (facts->streaming_ms <= 0) /* a GPU's copies are not timed */
        return text_append_format(out, "weights: %.1f GB copied to the device in steps\n",
                                  (double)facts->streamed_bytes / 1e9);
    return text_append_format(
        out, "weights: %.1f GB read in steps at %.2f GB/s, which steps waited %.1f s for\n",
        (double)facts->streamed_bytes / 1e9,
        (double)facts->streamed_bytes / facts->streaming_ms / 1e6, facts->streaming_wait_ms / 1e3);
}

static bool append_cost_line(struct text *out, const struct summary *summary,
                             const struct settings *settings) {
    double cost = cost_of_run(summary, settings);
    long long tokens = summary->prompt_tokens + summary->completion_tokens;
    if (cost <= 0 || summary->done == 0 || tokens == 0)
        return true;
    return text_append_format(out, "cost: %.4f a thousand documents, %.4f a million tokens\n",
                              cost * 1e3 / (double)summary->done, cost * 1e6 / (double)tokens);
}

bool summary_write_text(struct text *out, const struct summary *summary,
                        const struct settings *settings) {
    const struct summary_facts *facts = &summary->facts;
    return text_append_format(out, "%lld done, %lld failed, %lld resumed in %.1f s (load %.2f s)\n",
                              summary->done, summary->failed, summary->resumed,
                              facts->wall_ms / 1e3, facts->load_ms / 1e3) &&
           append_reasons(out, summary) && append_rates(out, summary) &&
           append_latency_line(out, summary) && append_compute_line(out, summary) &&
           append_streaming_line(out, facts) &&
           text_append_format(out, "memory: peak %.0f MB, stated %.0f MB; %s\n",
                              (double)facts->peak_rss_bytes / 1e6,
                              (double)facts->stated_bytes / 1e6, facts->numerics) &&
           append_cost_line(out, summary, settings);
}

/* ---- JSON ---- */

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text_or_null(const char *value) {
    return value ? json_string(value) : json_null();
}

static void set(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static json_t *count_object(const struct summary *summary) {
    json_t *documents = json_object();
    set(documents, "done", json_integer(summary->done));
    set(documents, "failed", json_integer(summary->failed));
    set(documents, "skipped", json_integer(summary->skipped));
    set(documents, "resumed", json_integer(summary->resumed));
    json_t *errors = json_object();
    for (size_t i = 0; i < codes_error_count(); i++) {
        if (summary->errors[i] > 0)
            set(errors, codes_error_at(i)->name, json_integer(summary->errors[i]));
    }
    set(documents, "errors", errors);
    json_t *warnings = json_object();
    for (int i = 0; i < WARNING_COUNT; i++) {
        if (summary->warnings[i] > 0)
            set(warnings, codes_warning_name((enum warning)i), json_integer(summary->warnings[i]));
    }
    set(documents, "warnings", warnings);
    return documents;
}

static json_t *token_object(const struct summary *summary) {
    const struct engine_totals *engine = &summary->engine;
    json_t *tokens = json_object();
    set(tokens, "document", json_integer(summary->document_tokens));
    set(tokens, "prompt", json_integer(summary->prompt_tokens));
    set(tokens, "cached", json_integer(summary->cached_tokens));
    set(tokens, "computed", json_integer(summary->computed_tokens));
    set(tokens, "recomputed", json_integer(summary->recomputed_tokens));
    set(tokens, "completion", json_integer(summary->completion_tokens));
    set(tokens, "guessed", json_integer(summary->guessed_tokens));
    set(tokens, "accepted", json_integer(summary->accepted_tokens));
    set(tokens, "prefill_per_second",
        number(per_second(engine->prefill_tokens, engine->prefill_rows_ns)));
    set(tokens, "decode_per_second",
        number(per_second(engine->decode_tokens, engine->decode_rows_ns)));
    return tokens;
}

static json_t *latency_object(const struct summary *summary) {
    json_t *latency = json_object();
    for (int i = 0; i < PART_COUNT; i++) {
        const struct histogram *histogram = &summary->parts[i];
        json_t *part = json_object();
        set(part, "p50", number(summary_histogram_percentile(histogram, 50)));
        set(part, "p90", number(summary_histogram_percentile(histogram, 90)));
        set(part, "p99", number(summary_histogram_percentile(histogram, 99)));
        set(part, "max", number(histogram->count ? histogram->max : NAN));
        set(latency, part_names[i], part);
    }
    return latency;
}

static json_t *slowest_array(const struct summary *summary) {
    json_t *slowest = json_array();
    for (int i = 0; i < summary->slowest_count; i++) {
        json_t *item = json_object();
        set(item, "id", json_string(summary->slowest[i].id));
        set(item, "latency_ms", number(summary->slowest[i].latency_ms));
        json_array_append_new(slowest, item);
    }
    return slowest;
}

static json_t *engine_object(const struct summary *summary) {
    const struct engine_totals *engine = &summary->engine;
    json_t *object = json_object();
    set(object, "steps", json_integer(engine->steps));
    set(object, "batch_fill", number(engine->batch_fill));
    set(object, "running_peak", json_integer(engine->running_peak));
    json_t *peak = json_array(), *max = json_array();
    for (int i = 0; i < MODEL_KV_GROUPS_MAX && engine->pages_max[i] > 0; i++) {
        json_array_append_new(peak, json_integer(engine->pages_peak[i]));
        json_array_append_new(max, json_integer(engine->pages_max[i]));
    }
    set(object, "kv_pages_peak", peak);
    set(object, "kv_pages_max", max);
    set(object, "prefix_hit_share",
        number(share((double)summary->cached_tokens, (double)summary->prompt_tokens)));
    return object;
}

static json_t *time_object(const struct summary *summary) {
    double wall = summary->facts.wall_ms;
    const struct engine_totals *engine = &summary->engine;
    json_t *object = json_object();
    set(object, "wall_ms", number(wall));
    set(object, "load_ms", number(summary->facts.load_ms));
    set(object, "reading_share", number(share(summary->read_ms, wall)));
    set(object, "tokenizing_share", number(share(summary->tokenize_ms, wall)));
    set(object, "computing_share", number(share((double)engine->backend_ns * 1e-6, wall)));
    double ops_wall = summary->facts.other_ops_ms > 0 ? wall : 0; /* ops are not always timed */
    set(object, "attention_share", number(share(summary->facts.attention_ms, ops_wall)));
    set(object, "matmul_share", number(share(summary->facts.matmul_ms, ops_wall)));
    set(object, "other_ops_share", number(share(summary->facts.other_ops_ms, ops_wall)));
    set(object, "planning_share", number(share((double)engine->planning_ns * 1e-6, wall)));
    set(object, "sampling_share", number(share((double)engine->sampling_ns * 1e-6, wall)));
    set(object, "writing_share", number(share(summary->write_ms, wall)));
    set(object, "waiting_share", number(share(summary->wait_ms, wall)));
    return object;
}

static json_t *positive(double value) {
    return value > 0 ? number(value) : json_null();
}

static json_t *compute_object(const struct summary *summary) {
    const struct summary_work *work = &summary->work;
    const struct engine_totals *engine = &summary->engine;
    struct rates rates = rates_of(summary);
    json_t *object = json_object();
    set(object, "matmul_flops", number(work->matmul_flops));
    set(object, "attention_flops", number(work->attention_flops));
    set(object, "weight_bytes", number(summary_work_weight_bytes(work, engine->steps)));
    set(object, "kv_bytes", number(work->kv_bytes));
    set(object, "seconds", number((double)engine->backend_ns * 1e-9));
    set(object, "flops_per_second", number(rates.flops));
    set(object, "flops_per_second_ceiling", positive(summary->facts.flops_ceiling));
    set(object, "bytes_per_second", number(rates.bytes));
    set(object, "bytes_per_second_ceiling", positive(summary->facts.bytes_ceiling));
    return object;
}

static json_t *memory_object(const struct summary_facts *facts) {
    json_t *memory = json_object();
    set(memory, "stated_bytes", json_integer((json_int_t)facts->stated_bytes));
    set(memory, "peak_rss_bytes", json_integer((json_int_t)facts->peak_rss_bytes));
    set(memory, "weights_bytes", json_integer((json_int_t)facts->weight_bytes));
    set(memory, "kv_bytes", json_integer((json_int_t)facts->kv_bytes));
    set(memory, "scratch_bytes", json_integer((json_int_t)facts->scratch_bytes));
    return memory;
}

static json_t *streaming_object(const struct summary_facts *facts) {
    if (facts->streamed_bytes == 0)
        return json_null();
    json_t *streaming = json_object();
    set(streaming, "bytes", number((double)facts->streamed_bytes));
    set(streaming, "reading_ms", number(facts->streaming_ms));
    set(streaming, "waited_ms", number(facts->streaming_wait_ms));
    return streaming;
}

static json_t *setting_value(const struct settings *settings, const struct option *option) {
    const void *field = (const char *)settings + option->offset;
    if (option->kind == OPTION_SWITCH)
        return json_boolean(*(const bool *)field);
    if (option->kind == OPTION_INTEGER)
        return json_integer(*(const long long *)field);
    if (option->kind == OPTION_NUMBER)
        return json_real(*(const double *)field);
    if (option->kind == OPTION_CHOICE || option->kind == OPTION_DEVICE)
        return json_string(option->choices[*(const int *)field]);
    if (option->kind == OPTION_TEXT)
        return text_or_null(*(const char *const *)field);
    if (option->kind == OPTION_SIZE) {
        const struct memory_size *size = field;
        return size->percent > 0 ? json_sprintf("%g%%", size->percent)
                                 : json_integer((json_int_t)size->bytes);
    }
    const struct text_list *list = field;
    json_t *array = json_array();
    for (int i = 0; i < list->count; i++)
        json_array_append_new(array, json_string(list->items[i]));
    return array;
}

static json_t *settings_object(const struct settings *settings) {
    json_t *object = json_object();
    for (size_t i = 0; i < settings_option_count(); i++) {
        const struct option *option = settings_option_at(i);
        if (option->commands & COMMAND_RUN)
            set(object, option->name, setting_value(settings, option));
    }
    return object;
}

static json_t *cost_object(const struct summary *summary, const struct settings *settings) {
    double cost = cost_of_run(summary, settings);
    if (cost <= 0)
        return json_null();
    double tokens = (double)(summary->prompt_tokens + summary->completion_tokens);
    json_t *object = json_object();
    set(object, "total", number(cost));
    set(object, "per_thousand_documents", number(cost * 1e3 / (double)summary->done));
    set(object, "per_million_tokens", number(cost * 1e6 / tokens));
    return object;
}

static json_t *machine_object(const struct summary_facts *facts) {
    json_t *object = json_object();
    set(object, "device", text_or_null(facts->device));
    set(object, "isa", text_or_null(facts->isa));
    set(object, "numerics", text_or_null(facts->numerics));
    set(object, "threads", json_integer(facts->threads));
    return object;
}

static json_t *model_object(const struct summary_facts *facts) {
    json_t *object = json_object();
    set(object, "name", text_or_null(facts->model_name));
    set(object, "path", text_or_null(facts->model_path));
    set(object, "sha256", text_or_null(facts->model_sha256));
    return object;
}

bool summary_write_json(struct text *out, const struct summary *summary,
                        const struct settings *settings) {
    const struct summary_facts *facts = &summary->facts;
    json_t *root = json_object();
    set(root, "version", text_or_null(facts->version));
    set(root, "build", text_or_null(facts->build));
    set(root, "started", json_string(facts->started));
    set(root, "ended", json_string(facts->ended));
    set(root, "machine", machine_object(facts));
    set(root, "model", model_object(facts));
    set(root, "documents", count_object(summary));
    set(root, "tokens", token_object(summary));
    set(root, "latency", latency_object(summary));
    set(root, "slowest", slowest_array(summary));
    set(root, "engine", engine_object(summary));
    set(root, "time", time_object(summary));
    set(root, "compute", compute_object(summary));
    set(root, "memory", memory_object(facts));
    set(root, "streaming", streaming_object(facts));
    set(root, "cost", cost_object(summary, settings));
    set(root, "settings", settings_object(settings));
    set(root, "exit_code", json_integer(facts->exit_code));
    char *bytes = json_dumps(root, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    bool fine = bytes && text_append_string(out, bytes) && text_append_char(out, '\n');
    free(bytes);
    json_decref(root);
    return fine;
}
