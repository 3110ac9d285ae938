/* Weights that are streamed: the same bits as when they stay, under limits down to the least, in
 * every order of the streams; memory under the limit; a step given up half way does no harm. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backend_cuda.h"
#include "tests/core/engine/cpu_run.h"
#include "tests/fakecuda/fakecuda.h"

static const struct random_model_shape shape = {.layers = 4,
                                                .width = 128,
                                                .heads = 4,
                                                .kv_heads = 2,
                                                .head_dim = 64,
                                                .ffn_width = 160,
                                                .vocab = 130,
                                                .pairing = ROPE_ADJACENT,
                                                .gate = GATE_SILU,
                                                .biases = true,
                                                .type = QUANT_Q8_0};
static const struct cpu_course course = {.sequence_count = 2,
                                         .lengths = {11, 5},
                                         .seed = 5,
                                         .chunk_max = 9,
                                         .threads = 1,
                                         .kv_type = KV_INT8};

static struct error error;

static struct backend *open_backend(const struct fakecuda_settings *settings, uint64_t limit) {
    struct device_options options = {.driver_path = FAKECUDA_PATH};
    struct backend *backend = NULL;
    fakecuda_configure(settings);
    cr_assert_eq(backend_cuda_create(&options, &backend, &error), STATUS_OK, "%s", error.text);
    backend_cuda_stream_limit(backend, limit);
    return backend;
}

static void close_backend(struct backend *backend) {
    struct fakecuda_report report;
    backend->ops->destroy(backend);
    fakecuda_report(&report);
    cr_assert_eq(report.objects, 0, "%lld objects are left", (long long)report.objects);
    cr_assert_str_eq(report.fault, "");
}

static uint64_t weights_of(struct backend *backend, const struct model *model) {
    const struct backend_limits limits = cpu_run_limits(model, course.kv_type);
    return backend->ops->memory(backend, model, &limits).weights;
}

static void prepare(struct backend *backend, const struct model *model) {
    const struct backend_limits limits = cpu_run_limits(model, course.kv_type);
    cr_assert_eq(backend->ops->prepare(backend, model, &error), STATUS_OK, "%s", error.text);
    cr_assert_eq(backend->ops->reserve(backend, &limits, &error), STATUS_OK, "%s", error.text);
}

/* Rope tables come on top of the limit. */
static uint64_t held_bytes(const struct backend *backend) {
    const struct device *device = backend_cuda_device(backend);
    return device->used_bytes[DEVICE_MEMORY_WEIGHTS] + device->used_bytes[DEVICE_MEMORY_STAGING];
}

/* The course's logits; `limit` 0: all weights stay. */
static float *logits_of(const struct model *model, const struct fakecuda_settings *settings,
                        uint64_t limit, uint64_t *step_bytes) {
    struct cpu_run run = {.model = model, .backend = open_backend(settings, limit)};
    const uint64_t stated = weights_of(run.backend, model);
    *step_bytes = backend_cuda_stream_step_bytes(run.backend, model);
    prepare(run.backend, model);
    cr_assert_leq(held_bytes(run.backend), stated);
    float *logits = cpu_run_logits_on(&run, course);
    if (*step_bytes > 0)
        cr_assert_geq(backend_cuda_stream_copied(run.backend), *step_bytes);
    else
        cr_assert_eq(backend_cuda_stream_copied(run.backend), 0);
    close_backend(run.backend);
    return logits;
}

static size_t logit_bytes(const struct model *model) {
    return (size_t)(course.lengths[0] + course.lengths[1]) * (size_t)model->vocab_count *
           sizeof(float);
}

static uint64_t all_weights(const struct model *model) {
    struct backend *backend = open_backend(NULL, 0);
    struct backend_limits limits = cpu_run_limits(model, course.kv_type);
    limits.context_max = 0;
    const uint64_t bytes = backend->ops->memory(backend, model, &limits).weights;
    close_backend(backend);
    return bytes;
}

/* Under some sixteenths of all weights; a share that is refused is left out, and counted. */
static void the_same_bits(const struct model *model, int capability, int *refused) {
    static const enum fakecuda_order orders[] = {FAKECUDA_LAZY, FAKECUDA_EAGER, FAKECUDA_RANDOM};
    struct fakecuda_settings settings = {.capability = capability, .host_threads = 2};
    const uint64_t all = all_weights(model);
    uint64_t step_bytes = 0, before = 0;
    float *expected = logits_of(model, &settings, 0, &step_bytes);
    cr_assert_eq(step_bytes, 0);
    for (int share = 15, i = 0; share > 0; share -= 6, i++) {
        settings.order = orders[i % 3];
        struct backend *probe = open_backend(&settings, all * (uint64_t)share / 16);
        const bool possible = backend_cuda_stream_step_bytes(probe, model) > 0;
        close_backend(probe);
        if (!possible) {
            ++*refused;
            continue;
        }
        float *found = logits_of(model, &settings, all * (uint64_t)share / 16, &step_bytes);
        cr_assert_eq(memcmp(found, expected, logit_bytes(model)), 0, "capability %d, %d / 16",
                     capability, share);
        cr_assert_gt(step_bytes, before);
        before = step_bytes;
        free(found);
    }
    free(expected);
}

TestSuite(backend_cuda_stream, .timeout = 600);

Test(backend_cuda_stream, no_bit_depends_on_where_weights_are) {
    struct model *model = random_model_create(&shape, 21);
    int refused = 0;
    the_same_bits(model, 80, &refused);
    the_same_bits(model, 75, &refused);
    cr_assert_leq(refused, 2);
    random_model_destroy(model);
}

/* Parts of several types: decoded once, on the device, and streamed as that. */
Test(backend_cuda_stream, nor_on_their_types) {
    struct model *model = NULL;
    int refused = 0;
    cr_assert_eq(model_open(SHEAF_BINARY_DIR "/tiny/tiny-types.gguf", NULL, &model, &error),
                 STATUS_OK, "%s", error.text);
    the_same_bits(model, 80, &refused);
    cr_assert_leq(refused, 1);
    model_close(model);
}

Test(backend_cuda_stream, too_little_is_refused) {
    struct model *model = random_model_create(&shape, 22);
    struct backend *backend = open_backend(NULL, 1000);
    cr_assert_eq(backend->ops->prepare(backend, model, &error), STATUS_OVER_LIMIT);
    cr_assert_not_null(strstr(error.text, "raise --weights-memory"), "%s", error.text);
    close_backend(backend);
    random_model_destroy(model);
}

/* One sequence's next two tokens; with `samples` rows of logits. */
static enum status step(struct backend *backend, const struct model *model, int position,
                        int samples) {
    const int32_t pages[1] = {0};
    struct cpu_run_step step = {.common = 0};
    cpu_run_add(&step, model, 0, position, 2, pages);
    step.plan.sample_count = samples;
    return decoder_step(model, backend, &step.plan, &error);
}

/* What four tokens of one sequence need. */
static struct backend_limits small_limits(const struct model *model) {
    struct backend_limits limits = {.row_count_max = 4,
                                    .run_count_max = 1,
                                    .sample_count_max = 2,
                                    .context_max = KV_PAGE_TOKENS,
                                    .kv_type = course.kv_type};
    for (int i = 0; i < model->kv_group_count; i++)
        limits.page_count_max[i] = 1;
    return limits;
}

static struct backend *open_small(const struct model *model,
                                  const struct fakecuda_settings *settings, uint64_t limit) {
    struct backend *backend = open_backend(settings, limit);
    const struct backend_limits limits = small_limits(model);
    cr_assert_eq(backend->ops->prepare(backend, model, &error), STATUS_OK, "%s", error.text);
    cr_assert_eq(backend->ops->reserve(backend, &limits, &error), STATUS_OK, "%s", error.text);
    return backend;
}

/* Two tokens from `position` on, and their logits; closes the backend. */
static float *last_logits(struct backend *backend, const struct model *model, int position) {
    const size_t bytes = 2 * (size_t)model->vocab_count * sizeof(float);
    float *logits = malloc(bytes);
    cr_assert_eq(step(backend, model, position, 2), STATUS_OK, "%s", error.text);
    memcpy(logits, backend->ops->logits_view(backend), bytes);
    close_backend(backend);
    return logits;
}

/* After steps with and without logits and one that was given up. */
static float *logits_after(const struct model *model, uint64_t limit, bool give_up) {
    struct backend *backend = open_small(model, NULL, limit);
    cr_assert_eq(step(backend, model, 0, 0), STATUS_OK, "%s", error.text);
    if (give_up) {
        const int32_t pages[1] = {0};
        struct cpu_run_step begun = {.common = 0};
        cpu_run_add(&begun, model, 0, 2, 2, pages);
        cr_assert_eq(backend->ops->begin_step(backend, &begun.plan, &error), STATUS_OK);
        backend->ops->embed(backend, &model->ops[0].embed);
        cr_assert_eq(backend->ops->end_step(backend, &error), STATUS_OK);
    }
    cr_assert_eq(step(backend, model, 2, 0), STATUS_OK, "%s", error.text);
    return last_logits(backend, model, 2);
}

Test(backend_cuda_stream, steps_with_and_without_logits_and_half_of_one) {
    struct model *model = random_model_create(&shape, 23);
    float *expected = logits_after(model, 0, false);
    for (int i = 0; i < 2; i++) {
        float *found = logits_after(model, all_weights(model) / 2, i == 1);
        cr_assert_eq(memcmp(found, expected, 2 * (size_t)model->vocab_count * sizeof *found), 0);
        free(found);
    }
    free(expected);
    random_model_destroy(model);
}

/* Ten times what the whole device holds. */
Test(backend_cuda_stream, larger_than_the_device) {
    const struct fakecuda_settings tiny = {.memory_bytes = 2 << 20, .multiprocessors = 1};
    struct random_model_shape large = shape;
    large.layers = 60;
    large.kv_heads = 1;
    large.width = 256;
    large.ffn_width = 256;
    struct model *model = random_model_create(&large, 24);
    const size_t bytes = 2 * (size_t)model->vocab_count * sizeof(float);
    cr_assert_gt(all_weights(model), 10 * tiny.memory_bytes, "%llu",
                 (unsigned long long)all_weights(model));
    float *expected = last_logits(open_small(model, NULL, 0), model, 0);
    float *found = last_logits(open_small(model, &tiny, 1 << 20), model, 0);
    cr_assert_eq(memcmp(found, expected, bytes), 0);
    free(found);
    free(expected);
    random_model_destroy(model);
}

/* Two steps on a backend whose every call may fail. */
static enum status run_failing(const struct model *model, const struct fakecuda_settings *settings,
                               uint64_t limit) {
    struct device_options options = {.driver_path = FAKECUDA_PATH};
    const struct backend_limits limits = small_limits(model);
    struct backend *backend = NULL;
    fakecuda_configure(settings);
    enum status status = backend_cuda_create(&options, &backend, &error);
    if (status != STATUS_OK)
        return status;
    backend_cuda_stream_limit(backend, limit);
    status = backend->ops->prepare(backend, model, &error);
    if (status == STATUS_OK)
        status = backend->ops->reserve(backend, &limits, &error);
    if (status == STATUS_OK)
        status = step(backend, model, 0, 0);
    if (status == STATUS_OK)
        status = step(backend, model, 2, 2);
    backend->ops->destroy(backend);
    return status;
}

Test(backend_cuda_stream, no_failing_call_leaves_anything_behind) {
    enum { STRIDE = 11 }; /* calls come in patterns of other lengths */
    struct random_model_shape small = shape;
    small.layers = 2;
    struct model *model = random_model_create(&small, 25);
    struct fakecuda_settings settings = {.multiprocessors = 1};
    const uint64_t limit = all_weights(model) / 2;
    struct fakecuda_report report;
    int failed = 0;
    cr_assert_eq(run_failing(model, &settings, limit), STATUS_OK, "%s", error.text);
    fakecuda_report(&report);
    const int64_t calls = report.calls;
    settings.fail_result = DRIVER_OUT_OF_MEMORY;
    for (settings.fail_call = 3; settings.fail_call <= calls; settings.fail_call += STRIDE) {
        failed += run_failing(model, &settings, limit) != STATUS_OK;
        fakecuda_report(&report);
        cr_assert_eq(report.objects, 0, "%lld objects are left after %s (call %lld) failed",
                     (long long)report.objects, report.failed, (long long)settings.fail_call);
    }
    cr_assert_gt(failed, calls / STRIDE / 2);
    random_model_destroy(model);
}
