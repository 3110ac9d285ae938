/* The recorder around the CPU backend: it changes no bit, and its times add up. */
#include "core/profile/span_backend.h"

#include <criterion/criterion.h>
#include <string.h>

#include "core/base/cpu_features.h"
#include "core/weights/quant_type.h"
#include "tests/core/engine/cpu_run.h"

static struct model *make_model(void) {
    const struct random_model_shape shape = {.layers = 3,
                                             .width = 64,
                                             .heads = 4,
                                             .kv_heads = 2,
                                             .head_dim = 16,
                                             .ffn_width = 96,
                                             .vocab = 97,
                                             .pairing = ROPE_HALVES,
                                             .window = 70,
                                             .type = QUANT_Q8_0};
    return random_model_create(&shape, 5);
}

static struct span_recorder *record(const struct model *model, struct thread_pool *pool,
                                    bool detail) {
    static const uint64_t page_bytes[] = {4096, 8192};
    static const int64_t page_count[] = {CPU_RUN_PAGES, CPU_RUN_PAGES};
    const struct span_options options = {.detail = detail,
                                         .roofs = {.flops = 1e9, .memory_bytes = 1e9},
                                         .page_bytes = page_bytes,
                                         .page_count = page_count,
                                         .block_positions = 48};
    struct span_recorder *recorder;
    struct error error;
    cr_assert_eq(span_recorder_create(model, pool, &options, &recorder, &error), STATUS_OK);
    return recorder;
}

static void compute(struct cpu_run *run, struct backend *backend, int first, int count,
                    bool prefill) {
    int32_t pages[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct cpu_run_step step = {0};
    struct error error;
    cpu_run_add(&step, run->model, 0, first, count, pages);
    step.runs[0].prefill = prefill;
    cr_assert_eq(decoder_step(run->model, backend, &step.plan, &error), STATUS_OK);
}

Test(span, recording_changes_no_bit_and_times_add_up) {
    struct model *model = make_model();
    struct cpu_features features = cpu_features_detect();
    struct kernels kernels = kernels_select(&features);
    const struct cpu_course course = {.threads = 2, .kv_type = KV_BF16};
    struct cpu_run run;
    size_t bytes = 100 * (size_t)model->vocab_count * sizeof(float);
    float *plain = malloc(bytes);
    cpu_run_open(&run, model, &kernels, &course);
    for (int detail = 0; detail < 2; detail++) {
        struct span_backend spans;
        span_backend_init(&spans, run.backend);
        compute(&run, &spans.base, 0, 100, true);
        memcpy(plain, run.backend->ops->logits_view(run.backend), bytes);
        spans.recorder = record(model, run.pool, detail);
        compute(&run, &spans.base, 0, 100, true);
        cr_expect_eq(memcmp(plain, spans.base.ops->logits_view(&spans.base), bytes), 0);
        compute(&run, &spans.base, 100, 1, false);
        compute(&run, &spans.base, 101, 1, false);
        const struct span_recorder *recorder = spans.recorder;
        cr_expect_eq(recorder->phases[PHASE_PREFILL].steps, 1);
        cr_expect_eq(recorder->phases[PHASE_DECODE].steps, 2);
        cr_expect_eq(recorder->phases[PHASE_PREFILL].prefill_rows, 100);
        int64_t ns = 0;
        for (int phase = 0; phase < PHASE_COUNT; phase++)
            for (int i = 0; i < recorder->sites.count; i++)
                ns += recorder->totals[phase][i].ns;
        cr_expect_eq(ns, recorder->phases[PHASE_PREFILL].ns + recorder->phases[PHASE_DECODE].ns);
        span_recorder_destroy(spans.recorder);
    }
    free(plain);
    cpu_run_close(&run);
    random_model_destroy(model);
}

/* Ops that only queue their work: what the device says of them, a microsecond each. */
static void mark(struct backend *backend) {
    (void)backend;
}

static int64_t mark_ns(const struct backend *backend, int number) {
    (void)backend;
    return 1000 * number;
}

Test(span, queued_ops_have_the_device_s_times) {
    struct model *model = make_model();
    struct cpu_features features = cpu_features_detect();
    struct kernels kernels = kernels_select(&features);
    const struct cpu_course course = {.threads = 2, .kv_type = KV_BF16};
    struct cpu_run run;
    struct span_backend spans;
    cpu_run_open(&run, model, &kernels, &course);
    struct backend_ops queueing = *run.backend->ops;
    queueing.mark = mark;
    queueing.mark_ns = mark_ns;
    run.backend->ops = &queueing;
    span_backend_init(&spans, run.backend);
    spans.recorder = record(model, run.pool, false);
    compute(&run, &spans.base, 0, 100, true);
    const struct span_recorder *recorder = spans.recorder;
    const struct span_total *totals = recorder->totals[PHASE_PREFILL];
    int64_t ns = 0;
    for (int i = 0; i < recorder->sites.count; i++) {
        if (i > 0 && i < recorder->sites.count - 1)
            cr_expect_eq(totals[i].ns, 1000, "site %d: %lld", i, (long long)totals[i].ns);
        ns += totals[i].ns;
    }
    cr_expect_eq(ns, recorder->phases[PHASE_PREFILL].ns);
    span_recorder_destroy(spans.recorder);
    cpu_run_close(&run);
    random_model_destroy(model);
}

Test(span, detail_counts_the_work_of_each_op) {
    struct model *model = make_model();
    struct cpu_features features = cpu_features_detect();
    struct kernels kernels = kernels_select(&features);
    const struct cpu_course course = {.threads = 2, .kv_type = KV_BF16};
    struct cpu_run run;
    struct span_backend spans;
    cpu_run_open(&run, model, &kernels, &course);
    span_backend_init(&spans, run.backend);
    spans.recorder = record(model, run.pool, true);
    compute(&run, &spans.base, 0, 100, true);
    compute(&run, &spans.base, 100, 1, false);
    const struct span_recorder *recorder = spans.recorder;
    int seen = 0;
    for (int i = 0; i < recorder->sites.work_count; i++) {
        const struct op_site *site = &recorder->sites.sites[recorder->sites.work_sites[i]];
        const struct account_work *work = &recorder->works[PHASE_PREFILL][i].work;
        int window = site->kind == SITE_ATTENTION ? model->kv_groups[site->kv_group].window : 0;
        if (site->kind == SITE_ATTENTION) {
            cr_expect_float_eq(work->flops, 4.0 * 64 * (double)account_pairs(0, 100, window), 0.5);
            seen++;
        }
        if (site->kind == SITE_DOWN)
            cr_expect_float_eq(work->flops, 2.0 * 100 * 96 * 64, 0.5);
    }
    cr_expect_eq(seen, 2, "layers with and without a window");
    cr_expect_eq(recorder->census.tokens, 100);
    cr_expect_eq(recorder->steps_kept, 2);
    span_recorder_destroy(spans.recorder);
    cpu_run_close(&run);
    random_model_destroy(model);
}

Test(span, a_section_s_workers_are_timed) {
    struct model *model = make_model();
    struct cpu_features features = cpu_features_detect();
    struct kernels kernels = kernels_select(&features);
    const struct cpu_course course = {.threads = 2, .kv_type = KV_BF16};
    struct cpu_run run;
    struct span_backend spans;
    cpu_run_open(&run, model, &kernels, &course);
    span_backend_init(&spans, run.backend);
    spans.recorder = record(model, run.pool, true);
    for (int i = 0; i < 3; i++)
        compute(&run, &spans.base, 0, 190, true);
    int64_t sections = 0;
    for (int i = 0; i < spans.recorder->sites.count; i++) {
        const struct span_total *total = &spans.recorder->totals[PHASE_PREFILL][i];
        sections += total->sections;
        cr_expect_leq(total->section_ns, total->ns);
        cr_expect_leq(total->slowest_ns, total->section_ns);
        cr_expect_leq(total->busy_ns, 2 * total->section_ns);
    }
    cr_expect_gt(sections, 0);
    cr_expect_eq(spans.recorder->sample_count, 2, "the first step of a phase is cold");
    cr_expect_gt(spans.recorder->samples[0].section_count, 0);
    span_recorder_destroy(spans.recorder);
    cpu_run_close(&run);
    random_model_destroy(model);
}
