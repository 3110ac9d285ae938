/* The CUDA backend on simulated devices of every class, with the kernels that ship: close to the
 * float64 reference on every op, the same bits however a sequence is cut and whoever its neighbours
 * are, and no failing call leaves anything behind. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backend_cuda.h"
#include "tests/core/engine/cpu_run.h"
#include "tests/fakecuda/fakecuda.h"

static const int capabilities[] = {61, 70, 75, 80, 89};
enum { CAPABILITY_COUNT = sizeof capabilities / sizeof capabilities[0] };

/* What a llama, a qwen2 and a gemma3 do, small. */
static const struct random_model_shape llama = {.layers = 2,
                                                .width = 128,
                                                .heads = 4,
                                                .kv_heads = 2,
                                                .head_dim = 64,
                                                .ffn_width = 160,
                                                .vocab = 130,
                                                .pairing = ROPE_ADJACENT,
                                                .gate = GATE_SILU,
                                                .type = QUANT_Q4_1};
static const struct random_model_shape qwen = {.layers = 2,
                                               .width = 192,
                                               .heads = 6,
                                               .kv_heads = 1,
                                               .head_dim = 80,
                                               .ffn_width = 96,
                                               .vocab = 100,
                                               .pairing = ROPE_HALVES,
                                               .gate = GATE_SILU,
                                               .biases = true,
                                               .type = QUANT_Q8_0};
static const struct random_model_shape gemma = {.layers = 3,
                                                .width = 128,
                                                .heads = 2,
                                                .kv_heads = 1,
                                                .head_dim = 128,
                                                .ffn_width = 192,
                                                .vocab = 140,
                                                .pairing = ROPE_HALVES,
                                                .window = 24,
                                                .gate = GATE_GELU_TANH,
                                                .head_norms = true,
                                                .post_norms = true,
                                                .softcap = 30,
                                                .type = QUANT_Q5_0};

static const struct cpu_course usual = {.sequence_count = 3,
                                        .lengths = {70, 9, 33},
                                        .seed = 5,
                                        .chunk_max = 40,
                                        .threads = 2,
                                        .kv_type = KV_BF16};

static struct backend *open_backend(const struct fakecuda_settings *settings) {
    struct device_options options = {.driver_path = FAKECUDA_PATH};
    struct backend *backend = NULL;
    struct error error = {0};
    fakecuda_configure(settings);
    cr_assert_eq(backend_cuda_create(&options, &backend, &error), STATUS_OK, "%s", error.text);
    return backend;
}

static void close_backend(struct backend *backend) {
    struct fakecuda_report report;
    backend->ops->destroy(backend);
    fakecuda_report(&report);
    cr_assert_eq(report.objects, 0, "%lld objects are left", (long long)report.objects);
    cr_assert_str_eq(report.fault, "");
}

/* The course's logits on a device; the type of KV is the device's where the course says bf16. */
static float *logits_of(const struct model *model, const struct fakecuda_settings *settings,
                        struct cpu_course course) {
    struct error error = {0};
    struct cpu_run run = {.model = model, .backend = open_backend(settings)};
    enum kv_type kv =
        course.kv_type == KV_BF16 ? backend_cuda_kv_type(run.backend) : course.kv_type;
    struct backend_limits limits = cpu_run_limits(model, kv);
    struct backend_memory need = run.backend->ops->memory(run.backend, model, &limits);
    cr_assert_eq(run.backend->ops->prepare(run.backend, model, &error), STATUS_OK, "%s",
                 error.text);
    cr_assert_eq(run.backend->ops->reserve(run.backend, &limits, &error), STATUS_OK, "%s",
                 error.text);
    uint64_t stated = need.weights + need.scratch, held = 0;
    for (int g = 0; g < model->kv_group_count; g++)
        stated += need.kv_page[g] * (uint64_t)limits.page_count_max[g];
    for (int tag = 0; tag < DEVICE_MEMORY_STAGING; tag++)
        held += backend_cuda_device(run.backend)->used_bytes[tag];
    cr_expect_leq(held, stated);
    cr_expect_geq(held, stated - stated / 50);
    float *logits = cpu_run_logits_on(&run, course);
    close_backend(run.backend);
    return logits;
}

static size_t logit_count(const struct model *model, const struct cpu_course *course) {
    size_t positions = 0;
    for (int i = 0; i < course->sequence_count; i++)
        positions += (size_t)course->lengths[i];
    return positions * (size_t)model->vocab_count;
}

static double relative_l2(const float *found, const float *expected, size_t count) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)found[i] - (double)expected[i];
        difference += d * d;
        norm += (double)expected[i] * (double)expected[i];
    }
    return sqrt(difference / norm);
}

/* What the matmul's element and the pages' allow, on weights that make scores sharp. */
struct bounds {
    double f16, bf16;
};

static void check_close(struct model *model, struct cpu_course course, struct bounds bounds) {
    size_t count = logit_count(model, &course);
    struct cpu_course reference = course;
    reference.reference = true;
    float *expected = cpu_run_logits(model, NULL, reference);
    for (int i = 0; i < CAPABILITY_COUNT; i++) {
        struct fakecuda_settings settings = {.capability = capabilities[i], .host_threads = 2};
        float *found = logits_of(model, &settings, course);
        double error = relative_l2(found, expected, count);
        cr_expect_lt(error, capabilities[i] < 80 ? bounds.f16 : bounds.bf16, "capability %d: %g",
                     capabilities[i], error);
        free(found);
    }
    free(expected);
}

static void check_random(const struct random_model_shape *shape, struct cpu_course course,
                         struct bounds bounds) {
    struct model *model = random_model_create(shape, 11);
    check_close(model, course, bounds);
    random_model_destroy(model);
}

/* The tiny models of the command line's tests: files, weights of all types, parts of unequal ones.
 * With bf16 inputs the CPU's error on them is as large. */
static void check_file(const char *name, struct cpu_course course, struct bounds bounds) {
    char path[1024];
    struct error error;
    struct model *model = NULL;
    snprintf(path, sizeof path, SHEAF_BINARY_DIR "/tiny/%s", name);
    cr_assert_eq(model_open(path, NULL, &model, &error), STATUS_OK, "%s", error.text);
    check_close(model, course, bounds);
    model_close(model);
}

TestSuite(backend_cuda, .timeout = 600);

Test(backend_cuda, close_to_the_reference_as_llama) {
    check_random(&llama, usual, (struct bounds){1e-2, 5e-2});
}

Test(backend_cuda, close_to_the_reference_as_qwen2) {
    check_random(&qwen, usual, (struct bounds){1e-2, 5e-2});
}

Test(backend_cuda, close_to_the_reference_as_gemma3) {
    check_random(&gemma, usual, (struct bounds){1e-2, 5e-2});
}

Test(backend_cuda, close_to_the_reference_with_8_bits_of_kv) {
    struct cpu_course course = usual;
    course.kv_type = KV_INT8;
    check_random(&llama, course, (struct bounds){2e-2, 5e-2});
    course.kv_type = KV_FP8;
    check_random(&llama, course, (struct bounds){0.1, 0.1});
}

Test(backend_cuda, close_to_the_reference_on_the_tiny_models) {
    struct cpu_course course = usual;
    course.lengths[0] = 40;
    check_file("tiny-qwen2.gguf", course, (struct bounds){1e-2, 2e-2});
    check_file("tiny-gemma3.gguf", course, (struct bounds){1e-2, 3e-2});
    course.sequence_count = 1;
    check_file("tiny-types.gguf", course, (struct bounds){1e-2, 0.12});
}

/* Alone and in one piece, in a batch and in pieces of any size, with tasks cut into spans and not:
 * a device of one multiprocessor is full at once. */
Test(backend_cuda, the_same_bits_however_it_is_cut) {
    struct model *model = random_model_create(&llama, 12);
    for (int i = 0; i < CAPABILITY_COUNT; i += 2) {
        struct cpu_course course = usual, alone = usual;
        course.lengths[0] = 530;
        course.chunk_max = 170;
        struct fakecuda_settings settings = {.capability = capabilities[i], .host_threads = 2};
        float *expected = logits_of(model, &settings, course);
        settings.multiprocessors = 1;
        course.seed = 99;
        course.chunk_max = 64;
        float *found = logits_of(model, &settings, course);
        cr_expect_eq(memcmp(found, expected, logit_count(model, &course) * sizeof *found), 0,
                     "capability %d", capabilities[i]);
        free(found);
        alone.sequence_count = 1;
        alone.lengths[0] = 530;
        alone.chunk_max = CPU_RUN_ROWS;
        found = logits_of(model, &settings, alone);
        cr_expect_eq(memcmp(found, expected, logit_count(model, &alone) * sizeof *found), 0,
                     "alone, capability %d", capabilities[i]);
        free(found);
        free(expected);
    }
    random_model_destroy(model);
}

/* Norms a million times larger: rows of fp16 inputs are scaled and counted; bf16 needs neither. */
Test(backend_cuda, rows_too_large_for_fp16_are_scaled_and_counted) {
    struct model *model = random_model_create(&llama, 13);
    struct cpu_course course = usual;
    course.sequence_count = 1;
    course.lengths[0] = 20;
    for (int i = 0; i < model->op_count; i++) {
        if (model->ops[i].kind != OP_NORM)
            continue;
        const struct tensor *weight = model->ops[i].norm.weight;
        float *values = (float *)(uintptr_t)weight->bytes;
        for (uint64_t j = 0; j < weight->dims[0]; j++)
            values[j] *= 1e6f;
    }
    static const int some[] = {70, 75, 80};
    for (int i = 0; i < 3; i++) {
        struct error error = {0};
        struct backend_cuda_counts counts;
        struct fakecuda_settings settings = {.capability = some[i], .host_threads = 2};
        struct cpu_run run = {.model = model, .backend = open_backend(&settings)};
        struct backend_limits limits = cpu_run_limits(model, backend_cuda_kv_type(run.backend));
        cr_assert_eq(run.backend->ops->prepare(run.backend, model, &error), STATUS_OK);
        cr_assert_eq(run.backend->ops->reserve(run.backend, &limits, &error), STATUS_OK);
        free(cpu_run_logits_on(&run, course));
        cr_assert_eq(backend_cuda_counts(run.backend, &counts, &error), STATUS_OK);
        cr_expect_eq(counts.scaled_rows > 0, some[i] < 80, "capability %d: %u", some[i],
                     counts.scaled_rows);
        close_backend(run.backend);
    }
    random_model_destroy(model);
}
