/* Times are microseconds from the first step, with three decimals: absolute nanoseconds would not
 * fit a double. Events on one thread nest or follow each other, as their stamps do. */
#include "core/profile/trace.h"

#include <stdio.h>

enum { TAIL_ROOM = 64 }; /* what must still fit behind the last event */

struct writer {
    struct text *out;
    const struct report *report;
    bool any;  /* an event stands there */
    bool full; /* no more events fit */
    bool failed;
};

static double microseconds(const struct writer *writer, int64_t ns) {
    return (double)(ns - writer->report->recorder->first_start_ns) * 1e-3;
}

/* An event that is complete, or leaves no trace. */
static void add_event(struct writer *writer, const char *event) {
    struct text *out = writer->out;
    struct view view = view_of(event);
    if (writer->full || writer->failed)
        return;
    if (out->length + view.length + TAIL_ROOM > out->max) {
        writer->full = true;
        return;
    }
    writer->failed = (writer->any && !text_append_string(out, ",\n")) ||
                     !text_append(out, view.bytes, view.length);
    writer->any = true;
}

/* Names are put in quotes and escaped by the JSON layer. */
static void add_name(struct writer *writer, const char *what, int thread, const char *name) {
    struct text text;
    text_init(&text, 1 << 12);
    if (text_append_format(&text, "{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"%s\",\"args\":{",
                           thread, what) &&
        text_append_string(&text, "\"name\":") &&
        json_append_string(&text, name, view_of(name).length) && text_append_string(&text, "}}"))
        add_event(writer, text.bytes);
    else
        writer->failed = true;
    text_deinit(&text);
}

static void add_slice(struct writer *writer, int thread, const char *name,
                      struct thread_pool_slot slot, const char *arguments) {
    char event[768];
    int length =
        snprintf(event, sizeof event,
                 "{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":\"%s\","
                 "\"args\":{%s}}",
                 thread, microseconds(writer, slot.start_ns),
                 (double)(slot.end_ns - slot.start_ns) * 1e-3, name, arguments);
    if (length > 0 && (size_t)length < sizeof event)
        add_event(writer, event);
}

static void add_op(struct writer *writer, const struct span_sample *sample, int index) {
    const struct op_site *site = &writer->report->recorder->sites.sites[index];
    char path[96], arguments[256];
    report_path(writer->report, site->kind, path, sizeof path);
    snprintf(arguments, sizeof arguments, "\"layer\":%d,\"path\":\"%s\"", site->layer, path);
    add_slice(writer, 0, op_site_kind_name(site->kind),
              (struct thread_pool_slot){sample->stamps[index], sample->stamps[index + 1]},
              arguments);
}

static void add_sections(struct writer *writer, const struct span_sample *sample) {
    const struct span_recorder *recorder = writer->report->recorder;
    for (int i = 0; i < sample->section_count; i++) {
        const struct op_site *site = &recorder->sites.sites[sample->section_sites[i]];
        for (int t = 0; t < recorder->threads; t++) {
            struct thread_pool_slot slot = sample->slots[i * recorder->threads + t];
            if (slot.end_ns > slot.start_ns)
                add_slice(writer, t + 1, op_site_kind_name(site->kind), slot, "");
        }
    }
}

static void add_sample(struct writer *writer, const struct span_sample *sample) {
    const struct span_step *step = &sample->step;
    char name[64], arguments[256];
    snprintf(name, sizeof name, "step %lld, %s", (long long)step->number,
             span_phase_name(step->phase));
    snprintf(arguments, sizeof arguments,
             "\"rows\":%d,\"prefill_rows\":%d,\"sequences\":%d,\"sampled\":%d", step->rows,
             step->prefill_rows, step->runs, step->samples);
    add_slice(writer, 0, name, (struct thread_pool_slot){step->start_ns, step->end_ns}, arguments);
    for (int i = 0; i < writer->report->recorder->sites.count; i++)
        add_op(writer, sample, i);
    add_sections(writer, sample);
}

static void add_counters(struct writer *writer, const struct span_step *step) {
    char event[512];
    snprintf(event, sizeof event,
             "{\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"name\":\"KV bytes\",\"args\":{\"used\":%lld,"
             "\"reserved\":%lld}}",
             microseconds(writer, step->start_ns), (long long)step->memory.kv_used,
             (long long)step->memory.kv_reserved);
    add_event(writer, event);
    snprintf(event, sizeof event,
             "{\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"name\":\"rows\",\"args\":{\"prefill\":%d,"
             "\"decode\":%d}}",
             microseconds(writer, step->start_ns), step->prefill_rows,
             step->rows - step->prefill_rows);
    add_event(writer, event);
}

static void add_threads(struct writer *writer) {
    char name[32];
    add_name(writer, "process_name", 0, writer->report->model_name);
    add_name(writer, "thread_name", 0, "engine");
    for (int t = 0; t < writer->report->recorder->threads; t++) {
        snprintf(name, sizeof name, "worker %d", t);
        add_name(writer, "thread_name", t + 1, name);
    }
}

bool trace_write(struct text *out, const struct report *report) {
    const struct span_recorder *recorder = report->recorder;
    struct writer writer = {.out = out, .report = report};
    if (!text_append_string(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"))
        return false;
    add_threads(&writer);
    for (int i = 0; i < recorder->sample_count; i++)
        if (recorder->samples[i].step.end_ns != 0)
            add_sample(&writer, &recorder->samples[i]);
    for (int i = 0; i < recorder->steps_kept; i++)
        add_counters(&writer, &recorder->steps[i]);
    return !writer.failed && text_append_string(out, "\n]}\n");
}
