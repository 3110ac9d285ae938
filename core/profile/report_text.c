/* The form for a terminal: where the time went, the floor of each op and the gap to it, attention
 * by itself, memory, advice. */
#include <stdio.h>

#include "core/profile/report.h"

enum { ROWS_MAX = 12 };

static const double SHOWN_SHARE = 0.005;

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

static double rate(double amount, double seconds) {
    return seconds > 0 ? amount / seconds * 1e-9 : 0;
}

static bool append_head(struct text *out, const struct report *report) {
    const struct facts *facts = report->facts;
    struct ceilings_step run = machine_with(&facts->machine, facts->settings.threads);
    return text_append_format(out, "%s on %s, %d of %d threads, %s\n", report->model_name,
                              report->cpu_name, facts->settings.threads, facts->machine.threads_max,
                              report->numerics) &&
           text_append_format(out,
                              "ceilings: %.0f GFLOP/s, %.1f G exp/s, memory %.1f GB/s, cache %.1f "
                              "GB/s, a parallel section %.1f us; drift %.0f %%\n",
                              run.flops * 1e-9, facts->machine.exponentials * 1e-9,
                              run.memory * 1e-9, facts->machine.cache_bytes * 1e-9,
                              facts->machine.dispatch_seconds * 1e6, report->drift * 100);
}

static bool append_phases(struct text *out, const struct report *report) {
    const struct facts *facts = report->facts;
    bool fine =
        text_append_format(out, "%.0f documents in %.2f s and %lld steps\n", facts->documents,
                           facts->seconds, (long long)report->recorder->step_count);
    for (int i = 0; i < PHASE_COUNT; i++) {
        const struct facts_phase *phase = &facts->phases[i];
        if (phase->steps > 0)
            fine =
                fine && text_append_format(
                            out, "  %-8s %6.2f s %4.0f %%  %.0f steps of %.1f rows, context %.0f\n",
                            span_phase_name((enum span_phase)i), phase->seconds,
                            percent(phase->seconds, facts->seconds), phase->steps,
                            phase->rows / phase->steps, phase->context);
    }
    return fine &&
           text_append_format(out,
                              "  sampling %.2f s, planning and following %.2f s, waiting for "
                              "documents %.2f s; recording took %.2f %%\n",
                              facts->sampling, facts->host, facts->waiting,
                              percent(facts->overhead, facts->seconds));
}

struct row {
    enum span_phase phase;
    enum op_site_kind kind;
    const struct facts_op *op;
};

/* The ops that took most, longest first. */
static int list_rows(const struct facts *facts, struct row *rows) {
    int count = 0;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        for (int kind = 0; kind < SITE_KIND_COUNT; kind++) {
            const struct facts_op *op = &facts->phases[phase].ops[kind];
            int place = count;
            if (op->seconds < SHOWN_SHARE * facts->seconds)
                continue;
            while (place > 0 && rows[place - 1].op->seconds < op->seconds)
                place--;
            if (place == ROWS_MAX)
                continue;
            count = count < ROWS_MAX ? count + 1 : count;
            for (int i = count - 1; i > place; i--)
                rows[i] = rows[i - 1];
            rows[place] = (struct row){(enum span_phase)phase, (enum op_site_kind)kind, op};
        }
    return count;
}

static bool append_row(struct text *out, const struct report *report, const struct row *row) {
    const struct facts_op *op = row->op;
    char path[96];
    report_path(report, row->kind, path, sizeof path);
    return text_append_format(out, "%-8s%-34s%8.3f%6.1f%9.3f%7.0f%9.0f%8.1f  %s%s\n",
                              span_phase_name(row->phase), path, op->seconds,
                              percent(op->seconds, report->facts->seconds), op->result.floor,
                              op->result.efficiency * 100, rate(op->work.flops, op->seconds),
                              rate(op->work.stream_min + op->work.local, op->seconds),
                              classify_verdict_name(op->result.verdict),
                              op->result.verdict != VERDICT_POOR_KERNEL ? ""
                              : op->result.leans_to_memory              ? " (memory)"
                                                                        : " (compute)");
}

static bool append_ops(struct text *out, const struct report *report) {
    struct row rows[ROWS_MAX];
    int count = list_rows(report->facts, rows);
    bool fine = text_append_format(out, "%-8s%-34s%8s%6s%9s%7s%9s%8s  %s\n", "phase", "op", "s",
                                   "%", "floor s", "eff %", "GFLOP/s", "GB/s", "bound by");
    for (int i = 0; i < count; i++)
        fine = fine && append_row(out, report, &rows[i]);
    return fine;
}

static bool append_attention(struct text *out, const struct report *report) {
    const struct facts *facts = report->facts;
    double seconds = facts_op_seconds(facts, SITE_ATTENTION), flops = 0, issued = 0, bytes = 0,
           moved = 0;
    for (int i = 0; i < PHASE_COUNT; i++) {
        const struct account_work *work = &facts->phases[i].ops[SITE_ATTENTION].work;
        flops += work->flops;
        issued += work->flops_issued;
        bytes += work->stream_min;
        moved += work->stream_moved;
    }
    return text_append_format(out,
                              "attention: %.2f s, %.1f %% of the run; %.0f useful GFLOP/s (%.2f "
                              "times as many issued), %.1f GB/s of KV (read %.1f times)\n",
                              seconds, percent(seconds, facts->seconds), rate(flops, seconds),
                              flops > 0 ? issued / flops : 0, rate(bytes, seconds),
                              bytes > 0 ? moved / bytes : 0);
}

static bool append_memory(struct text *out, const struct report *report) {
    const struct span_memory *peak = &report->recorder->memory_peak;
    return text_append_format(out,
                              "memory: weights %.0f MB, workspace %.0f MB, KV %.1f MB used of "
                              "%.0f, %.1f MB saved by sharing, %.1f %% of its slots empty; one "
                              "piece a sequence would take %.1f MB\n",
                              (double)report->weight_bytes * 1e-6,
                              (double)report->scratch_bytes * 1e-6, (double)peak->kv_used * 1e-6,
                              (double)report->kv_bytes * 1e-6, (double)peak->kv_shared * 1e-6,
                              report->facts->fragmentation * 100,
                              (double)peak->kv_contiguous * 1e-6);
}

static bool append_item(struct text *out, int number, const struct advice *advice) {
    char setting[96] = "";
    if (advice->setting != NULL)
        snprintf(setting, sizeof setting, ": --%s %s -> %s", advice->setting, advice->from,
                 advice->to);
    return text_append_format(out,
                              "  %d. %s%s: %.0f %% faster (%.0f to %.0f), saves %.2f s; %s%s\n"
                              "     %s\n",
                              number, advice->name, setting, advice->gain * 100,
                              advice->gain_low * 100, advice->gain_high * 100, advice->saved,
                              advice->consent == ADVICE_CONSENT ? "changes results, " : "",
                              advice->confidence, advice->evidence);
}

static bool append_advice(struct text *out, const struct report *report) {
    if (report->unreliable != NULL)
        return text_append_format(out, "no advice: %s\n", report->unreliable);
    if (report->advice->count == 0)
        return text_append_string(out, "no advice: no setting is predicted to gain more than the "
                                       "noise\n");
    bool fine = text_append_string(out, "advice, best first (confidence, then the numbers):\n");
    for (int i = 0; i < report->advice->count && i < RULES_SHOWN_MAX; i++)
        fine = fine && append_item(out, i + 1, &report->advice->items[i]);
    return fine;
}

bool report_text_write(struct text *out, const struct report *report) {
    return append_head(out, report) && append_phases(out, report) && append_ops(out, report) &&
           append_attention(out, report) && append_memory(out, report) &&
           append_advice(out, report);
}
