/* A column a figure; predictions (floor) stand beside what was measured. Variants whose arrays take
 * more than half the free memory are listed with what they need, not run. */
#include "cmd/bench_batches.h"

#include <math.h>

#include "core/job/budget.h"
#include "core/kernels/bench_variants.h"

static const double memory_share = 0.5;

static void add_measured(struct bench_report *report, const struct bench_variants_row *row) {
    double seconds = row->bound == BENCH_BOUND_NOT_RUN ? NAN : row->seconds;
    bench_report_number(report, "time", seconds * 1e3, "ms");
    bench_report_number(report, "spread", row->spread * 100, "%");
    bench_report_number(report, "useful", row->work.flops / seconds / 1e9, "GFLOP/s");
    bench_report_number(report, "issued", row->work.flops_issued / seconds / 1e9, "GFLOP/s");
    bench_report_number(report, "floor", row->floor_seconds * 1e3, "ms");
    bench_report_number(report, "gap", seconds / row->floor_seconds, "x");
}

static void add_row(struct bench_report *report, const char *batch,
                    const struct bench_variants_row *row,
                    const struct bench_variants_result *result) {
    bench_report_begin(report);
    bench_report_text(report, "batch", batch);
    bench_report_text(report, "variant", row->name);
    bench_report_text(report, "path", row->path);
    bench_report_number(report, "passes", row->passes, "");
    bench_report_number(report, "bytes", row->work.bytes_moved / row->work.bytes, "x min");
    bench_report_number(report, "arrays", row->needed_bytes / 1e6, "MB");
    add_measured(report, row);
    bench_report_text(report, "bound", bench_variants_bound_name(row->bound));
    bench_report_number(report, "peak", row->peak / 1e9, "GFLOP/s");
    bench_report_number(report, "memory", result->bandwidth / 1e9, "GB/s");
}

enum status bench_batches_add(struct bench_report *report, const struct runtime *runtime,
                              const char *batch, struct error *error) {
    const struct settings *settings = runtime->settings;
    struct bench_variants_case what = {
        .heads = (int)settings->heads,
        .kv_heads = (int)(settings->kv_heads > 0 ? settings->kv_heads : settings->heads),
        .head_dim = (int)settings->head_dim,
        .causal = !settings->bidirectional,
        .window = (int)settings->window,
        .softcap = (float)settings->softcap,
        .backward = settings->backward,
        .page_type =
            settings->kv_dtype == KV_CHOICE_INT8 ? ATTENTION_PAGE_INT8 : ATTENTION_PAGE_BF16,
    };
    struct bench_variants_result result;
    TRY(bench_batch_parse(batch, &what.batch, error));
    TRY(bench_variants_run(&what, &runtime->features, runtime->pool,
                           memory_share * (double)budget_available_bytes(), &result, error));
    for (int i = 0; i < result.row_count; i++)
        add_row(report, batch, &result.rows[i], &result);
    return STATUS_OK;
}
