/* Memory by what it is for, at its peaks and over time, and what one contiguous piece of KV a
 * sequence would have taken instead of pages. */
#include "core/profile/report_memory.h"

static void set(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static json_t *memory_json(const struct span_memory *memory) {
    json_t *object = json_object();
    set(object, "kv_used", json_integer(memory->kv_used));
    set(object, "kv_reserved", json_integer(memory->kv_reserved));
    set(object, "kv_shared", json_integer(memory->kv_shared));
    set(object, "kv_tokens", json_integer(memory->kv_tokens));
    set(object, "kv_contiguous", json_integer(memory->kv_contiguous));
    set(object, "activations", json_integer(memory->activations));
    return object;
}

json_t *report_memory_json(const struct report *report) {
    json_t *object = json_object();
    set(object, "weights", json_integer((json_int_t)report->weight_bytes));
    set(object, "scratch", json_integer((json_int_t)report->scratch_bytes));
    set(object, "kv_pool", json_integer((json_int_t)report->kv_bytes));
    set(object, "fragmentation", json_real(report->facts->fragmentation));
    set(object, "peaks", memory_json(&report->recorder->memory_peak));
    return object;
}

static json_t *step_json(const struct span_recorder *recorder, const struct span_step *step) {
    json_t *object = json_object();
    double start = (double)(step->start_ns - recorder->first_start_ns) * 1e-9;
    set(object, "number", json_integer(step->number));
    set(object, "phase", json_string(span_phase_name(step->phase)));
    set(object, "at_seconds", json_real(start));
    set(object, "seconds", json_real((double)(step->end_ns - step->start_ns) * 1e-9));
    set(object, "rows", json_integer(step->rows));
    set(object, "prefill_rows", json_integer(step->prefill_rows));
    set(object, "sequences", json_integer(step->runs));
    set(object, "attention_seconds", json_real((double)step->kind_ns[SITE_ATTENTION] * 1e-9));
    set(object, "memory", memory_json(&step->memory));
    return object;
}

json_t *report_memory_steps(const struct span_recorder *recorder) {
    json_t *array = json_array();
    for (int i = 0; i < recorder->steps_kept; i++)
        json_array_append_new(array, step_json(recorder, &recorder->steps[i]));
    return array;
}
