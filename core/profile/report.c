/* The JSON form: every number that the text and the advice are made of. */
#include "core/profile/report.h"

#include <math.h>
#include <stdio.h>

#include "core/kernels/attention_block.h"
#include "core/profile/report_memory.h"

enum { SCHEMA_VERSION = 1 };

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static void set(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static json_t *text_or_null(const char *value) {
    return value != NULL ? json_string(value) : json_null();
}

static double rate(double amount, double seconds) {
    return seconds > 0 ? amount / seconds : 0;
}

void report_path(const struct report *report, enum op_site_kind kind, char *path, size_t bytes) {
    const struct kernels *kernels = report->kernels;
    const char *name = op_site_kind_name(kind);
    bool int8 = report->facts->settings.matmul_int8 && kind != SITE_LOGITS;
    if (kind == SITE_ATTENTION)
        snprintf(path, bytes, "%s/%s/tile%d", name, kernels->attention->name,
                 report->recorder->options.block_positions * report->facts->gqa_group);
    else if (op_site_is_matmul(kind))
        snprintf(path, bytes, "%s/%s/panel%d", name,
                 int8 && kernels->linear_int8 ? kernels->linear_int8->name : kernels->linear->name,
                 PANEL_COLUMNS);
    else
        snprintf(path, bytes, "%s/%s", name, kernels->elementwise->name);
}

static const struct op_site *first_site(const struct span_recorder *recorder,
                                        enum op_site_kind kind) {
    for (int i = 0; i < recorder->sites.count; i++)
        if (recorder->sites.sites[i].kind == kind)
            return &recorder->sites.sites[i];
    return NULL;
}

void report_shape(const struct report *report, enum op_site_kind kind, char *shape, size_t bytes) {
    const struct model *model = report->recorder->model;
    const struct op_site *site = first_site(report->recorder, kind);
    if (site != NULL && site->linear != NULL)
        snprintf(shape, bytes, "%dx%d %s", site->linear->in, site->linear->out,
                 site->linear->parts[0]->type->name);
    else if (kind == SITE_ATTENTION || kind == SITE_KV_WRITE)
        snprintf(shape, bytes, "%d heads of %d over %d", model->head_count, model->head_dim,
                 model->kv_head_count);
    else
        snprintf(shape, bytes, "%d", kind == SITE_ACTIVATION ? model->ffn_width : model->width);
}

static json_t *ceilings_json(const struct machine *machine) {
    json_t *object = json_object(), *ladder = json_array();
    for (int i = 0; i < machine->step_count; i++) {
        json_t *step = json_object();
        set(step, "threads", json_integer(machine->steps[i].threads));
        set(step, "flops", number(machine->steps[i].flops));
        set(step, "memory_bytes", number(machine->steps[i].memory));
        json_array_append_new(ladder, step);
    }
    set(object, "by_threads", ladder);
    set(object, "int8_flops", number(machine->int8_flops));
    set(object, "exponentials", number(machine->exponentials));
    set(object, "cache_bytes", number(machine->cache_bytes));
    set(object, "cache_size", number(machine->cache_size));
    set(object, "dispatch_seconds", number(machine->dispatch_seconds));
    return object;
}

static json_t *machine_json(const struct report *report) {
    json_t *object = json_object();
    set(object, "cpu", text_or_null(report->cpu_name));
    set(object, "isa", text_or_null(report->isa));
    set(object, "numerics", text_or_null(report->numerics));
    set(object, "threads", json_integer(report->facts->settings.threads));
    set(object, "threads_max", json_integer(report->facts->machine.threads_max));
    set(object, "ceilings", ceilings_json(&report->facts->machine));
    set(object, "drift", number(report->drift));
    set(object, "stolen_share", number(report->others.stolen_share));
    set(object, "others_share", number(report->others.others_share));
    set(object, "unreliable", text_or_null(report->unreliable));
    return object;
}

static json_t *model_json(const struct report *report) {
    const struct model *model = report->recorder->model;
    json_t *object = json_object();
    set(object, "name", text_or_null(report->model_name));
    set(object, "layers", json_integer(model->layer_count));
    set(object, "width", json_integer(model->width));
    set(object, "heads", json_integer(model->head_count));
    set(object, "kv_heads", json_integer(model->kv_head_count));
    set(object, "head_dim", json_integer(model->head_dim));
    return object;
}

static json_t *run_json(const struct report *report) {
    const struct facts *facts = report->facts;
    json_t *object = json_object();
    set(object, "documents", number(facts->documents));
    set(object, "documents_at_once", number(facts->documents_at_once));
    set(object, "documents_waiting", number(facts->documents_waiting));
    set(object, "steps", json_integer(report->recorder->step_count));
    set(object, "load_seconds", number(report->load_seconds));
    set(object, "seconds", number(facts->seconds));
    set(object, "sampling_seconds", number(facts->sampling));
    set(object, "host_seconds", number(facts->host));
    set(object, "waiting_seconds", number(facts->waiting));
    set(object, "input_seconds", number(facts->input_busy));
    set(object, "overhead_seconds", number(facts->overhead));
    set(object, "overhead_share", number(rate(facts->overhead, facts->seconds)));
    set(object, "noise", number(facts->noise));
    set(object, "prompt_tokens", number(facts->prompt_tokens));
    set(object, "repeated_tokens", number(facts->repeated_tokens));
    set(object, "major_faults", number(facts->major_faults));
    set(object, "batch_tokens", json_integer(facts->settings.batch_tokens));
    set(object, "max_sequences", json_integer(facts->settings.max_sequences));
    return object;
}

static json_t *phase_json(const struct facts_phase *phase, enum span_phase number_of) {
    json_t *object = json_object();
    set(object, "phase", json_string(span_phase_name(number_of)));
    set(object, "steps", number(phase->steps));
    set(object, "seconds", number(phase->seconds));
    set(object, "between_seconds", number(phase->between));
    set(object, "rows", number(phase->rows));
    set(object, "prefill_rows", number(phase->prefill_rows));
    set(object, "decode_rows", number(phase->decode_rows));
    set(object, "sampled_rows", number(phase->samples));
    set(object, "mean_context", number(phase->context));
    return object;
}

static json_t *op_json(const struct report *report, enum span_phase phase, enum op_site_kind kind) {
    const struct facts_op *op = &report->facts->phases[phase].ops[kind];
    char path[96], shape[96];
    json_t *object = json_object();
    report_path(report, kind, path, sizeof path);
    report_shape(report, kind, shape, sizeof shape);
    set(object, "phase", json_string(span_phase_name(phase)));
    set(object, "op", json_string(op_site_kind_name(kind)));
    set(object, "path", json_string(path));
    set(object, "shape", json_string(shape));
    set(object, "seconds", number(op->seconds));
    set(object, "share", number(rate(op->seconds, report->facts->seconds)));
    set(object, "sections", json_integer(op->sections));
    set(object, "flops", number(op->work.flops));
    set(object, "flops_issued", number(op->work.flops_issued));
    set(object, "exponentials", number(op->work.exponentials));
    set(object, "bytes_min", number(op->work.stream_min + op->work.local));
    set(object, "bytes_moved", number(op->work.stream_moved + op->work.local));
    set(object, "flops_per_second", number(rate(op->work.flops, op->seconds)));
    set(object, "bytes_per_second",
        number(rate(op->work.stream_min + op->work.local, op->seconds)));
    set(object, "floor_seconds", number(op->result.floor));
    set(object, "gap_seconds", number(op->result.gap));
    set(object, "efficiency", number(op->result.efficiency));
    set(object, "verdict", json_string(classify_verdict_name(op->result.verdict)));
    set(object, "leans_to", json_string(op->result.leans_to_memory ? "memory" : "compute"));
    set(object, "wait_share", number(op->result.wait_share));
    set(object, "imbalance", number(op->result.imbalance));
    return object;
}

static json_t *ops_json(const struct report *report) {
    json_t *array = json_array();
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        for (int kind = 0; kind < SITE_KIND_COUNT; kind++)
            if (report->facts->phases[phase].ops[kind].seconds > 0)
                json_array_append_new(
                    array, op_json(report, (enum span_phase)phase, (enum op_site_kind)kind));
    return array;
}

static json_t *attention_json(const struct report *report) {
    const struct facts *facts = report->facts;
    double seconds = facts_op_seconds(facts, SITE_ATTENTION), flops = 0, bytes = 0;
    json_t *object = json_object();
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        flops += facts->phases[phase].ops[SITE_ATTENTION].work.flops;
        bytes += facts->phases[phase].ops[SITE_ATTENTION].work.stream_min;
    }
    set(object, "seconds", number(seconds));
    set(object, "share", number(rate(seconds, facts->seconds)));
    set(object, "flops_per_second", number(rate(flops, seconds)));
    set(object, "kv_bytes_per_second", number(rate(bytes, seconds)));
    return object;
}

/* Seconds of a layer's ops in each phase. */
static json_t *layer_json(const struct span_recorder *recorder, int layer) {
    json_t *object = json_object();
    set(object, "layer", json_integer(layer));
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        double seconds = 0, attention = 0;
        for (int i = 0; i < recorder->sites.count; i++) {
            const struct op_site *site = &recorder->sites.sites[i];
            double here = (double)recorder->totals[phase][i].ns * 1e-9;
            seconds += site->layer == layer ? here : 0;
            attention += site->layer == layer && site->kind == SITE_ATTENTION ? here : 0;
        }
        char key[48];
        snprintf(key, sizeof key, "%s_seconds", span_phase_name((enum span_phase)phase));
        set(object, key, number(seconds));
        snprintf(key, sizeof key, "%s_attention_seconds", span_phase_name((enum span_phase)phase));
        set(object, key, number(attention));
    }
    return object;
}

static json_t *layers_json(const struct span_recorder *recorder) {
    json_t *array = json_array();
    for (int layer = 0; layer < recorder->model->layer_count; layer++)
        json_array_append_new(array, layer_json(recorder, layer));
    return array;
}

static json_t *advice_json(const struct advice *advice) {
    json_t *object = json_object();
    set(object, "rule", json_integer(advice->rule));
    set(object, "name", json_string(advice->name));
    set(object, "setting", text_or_null(advice->setting));
    set(object, "from", text_or_null(advice->from[0] ? advice->from : NULL));
    set(object, "to", text_or_null(advice->to[0] ? advice->to : NULL));
    set(object, "consent", json_string(rules_consent_name(advice->consent)));
    set(object, "evidence", json_string(advice->evidence));
    set(object, "predicted_gain", number(advice->gain));
    set(object, "predicted_gain_low", number(advice->gain_low));
    set(object, "predicted_gain_high", number(advice->gain_high));
    set(object, "saved_seconds", number(advice->saved));
    set(object, "confidence", json_string(advice->confidence));
    return object;
}

json_t *report_json(const struct report *report) {
    json_t *root = json_object(), *phases = json_array(), *advice = json_array();
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        if (report->facts->phases[phase].steps > 0)
            json_array_append_new(
                phases, phase_json(&report->facts->phases[phase], (enum span_phase)phase));
    for (int i = 0; i < report->advice->count && i < RULES_SHOWN_MAX; i++)
        json_array_append_new(advice, advice_json(&report->advice->items[i]));
    set(root, "schema", json_integer(SCHEMA_VERSION));
    set(root, "version", text_or_null(report->version));
    set(root, "machine", machine_json(report));
    set(root, "model", model_json(report));
    set(root, "run", run_json(report));
    set(root, "phases", phases);
    set(root, "ops", ops_json(report));
    set(root, "attention", attention_json(report));
    set(root, "layers", layers_json(report->recorder));
    set(root, "memory", report_memory_json(report));
    set(root, "steps", report_memory_steps(report->recorder));
    set(root, "advice", advice);
    return root;
}
