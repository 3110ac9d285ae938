/* The CPU backend: close to the float64 reference on every op and KV type, and to the bit the same
 * whatever the chunks, neighbours, page numbers, rubbish in pages and threads. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/kernels/kernels.h"
#include "tests/core/engine/cpu_run.h"
#include "tests/support/kernel_variants.h"

static const struct random_model_shape plain = {.layers = 2,
                                                .width = 64,
                                                .heads = 6,
                                                .kv_heads = 2,
                                                .head_dim = 16,
                                                .ffn_width = 96,
                                                .vocab = 131,
                                                .pairing = ROPE_ADJACENT,
                                                .gate = GATE_SILU,
                                                .type = QUANT_Q8_0};

static const struct random_model_shape everything = {.layers = 3,
                                                     .width = 96,
                                                     .heads = 4,
                                                     .kv_heads = 1,
                                                     .head_dim = 24,
                                                     .ffn_width = 100,
                                                     .vocab = 77,
                                                     .pairing = ROPE_HALVES,
                                                     .window = 70,
                                                     .gate = GATE_GELU_TANH,
                                                     .biases = true,
                                                     .head_norms = true,
                                                     .post_norms = true,
                                                     .softcap = 20,
                                                     .type = QUANT_Q4_1};

/* No rope, an odd width of everything, one head a KV head. */
static const struct random_model_shape odd = {.layers = 1,
                                              .width = 33,
                                              .heads = 3,
                                              .kv_heads = 3,
                                              .head_dim = 10,
                                              .ffn_width = 51,
                                              .vocab = 19,
                                              .pairing = ROPE_NONE,
                                              .gate = GATE_SILU,
                                              .biases = true,
                                              .type = QUANT_F32};

/* Every path this CPU can take: its best first, then AMX over emulated tiles, then narrower ones;
 * at last the widest, AVX2 and the narrowest with int8 matmuls.
 */
enum { KERNELS_MAX = 8 };

static struct kernels narrowed(enum isa isa) {
    struct cpu_features features = cpu_features_detect();
    cpu_features_mask(&features, isa);
    if (isa == ISA_AVX512)
        features.avx512_bf16 = features.avx512_bf16_fast = false;
    return kernels_select(&features);
}

static int list_kernels(struct kernels kernels[KERNELS_MAX]) {
    static const enum isa isas[] = {ISA_AVX512, ISA_AVX2, ISA_SCALAR};
    struct cpu_features features = cpu_features_detect();
    struct kernels emulated = kernels_select(&features);
    int count = 0;
    kernels[count++] = emulated;
    emulated.linear = kernel_variants_linear_at(0);
    emulated.attention = kernel_variants_attention_at(0);
    snprintf(emulated.numerics, sizeof emulated.numerics, "cpu-%s", emulated.linear->name);
    if (emulated.linear->available(&features))
        kernels[count++] = emulated;
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        if (isas[i] <= cpu_features_best(&features))
            kernels[count++] = narrowed(isas[i]);
    kernels[count] = kernels[0];
    kernels_add_int8(&kernels[count++], &features);
    for (size_t i = 1; i < sizeof isas / sizeof isas[0]; i++) {
        if (isas[i] > cpu_features_best(&features))
            continue;
        kernels[count] = narrowed(isas[i]);
        cpu_features_mask(&features, isas[i]);
        kernels_add_int8(&kernels[count++], &features);
    }
    return count;
}

static int total_length(const struct cpu_course *course) {
    int total = 0;
    for (int i = 0; i < course->sequence_count; i++)
        total += course->lengths[i];
    return total;
}

static double distance(const float *found, const float *expected, size_t count) {
    double error = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        error += ((double)found[i] - expected[i]) * ((double)found[i] - expected[i]);
        size += (double)expected[i] * expected[i];
    }
    return sqrt(error / size);
}

/* Random weights make sharp scores, which magnify the rounding of keys. */
static void check_accuracy(const struct random_model_shape *shape) {
    struct model *model = random_model_create(shape, 1);
    struct kernels kernels[KERNELS_MAX];
    int count = list_kernels(kernels);
    struct cpu_course course = {
        .sequence_count = 2, .lengths = {150, 40}, .chunk_max = 50, .threads = 2};
    size_t values = (size_t)total_length(&course) * (size_t)model->vocab_count;
    course.reference = true;
    float *expected = cpu_run_logits(model, NULL, course);
    course.reference = false;
    for (int i = 0; i < count; i++)
        for (int type = KV_BF16; type <= KV_INT8; type++) {
            course.kv_type = type;
            float *found = cpu_run_logits(model, &kernels[i], course);
            double off = distance(found, expected, values);
            double allowed = type == KV_INT8                        ? 0.08
                             : kernels[i].linear_int8 != NULL       ? 0.06
                             : kernels[i].linear->unit == UNIT_BF16 ? 0.03
                                                                    : 0.02;
            cr_expect(off < allowed, "%s, %d wide, KV type %d: off by %g", kernels[i].numerics,
                      shape->width, type, off);
            free(found);
        }
    free(expected);
    random_model_destroy(model);
}

Test(backend_cpu, close_to_the_reference) {
    check_accuracy(&plain);
    check_accuracy(&everything);
    check_accuracy(&odd);
}

/* Zero queries in dimension 2 and in what either pairing turns it into. */
static void forget_queries(const struct random_model_shape *shape, const struct tensor *weights) {
    float *rows = (void *)(uintptr_t)weights->bytes;
    int partners[] = {2, 3, 2 + shape->head_dim / 2};
    for (int head = 0; head < shape->heads; head++)
        for (int i = 0; i < 3; i++)
            memset(rows + (head * shape->head_dim + partners[i]) * shape->width, 0,
                   (size_t)shape->width * sizeof *rows);
}

/* A key bias that is large in one pair, as Qwen2's: it must not cost the other dimensions their
 * int8 steps. */
static void check_large_bias(enum rope_pairing pairing) {
    struct random_model_shape shape = plain;
    shape.pairing = pairing;
    shape.type = QUANT_F32;
    struct model *model = random_model_create(&shape, 1);
    int count = shape.kv_heads * shape.head_dim;
    struct tensor bias = random_tensor_create(quant_type_find(QUANT_F32), count, 1, 5);
    float *values = (void *)(uintptr_t)bias.bytes;
    for (int head = 0; head < shape.kv_heads; head++)
        values[head * shape.head_dim + 2] = 1000;
    for (int i = 0; i < model->op_count; i++)
        if (model->ops[i].kind == OP_ATTENTION) {
            model->ops[i].attention.qkv.biases[1] = &bias;
            forget_queries(&shape, model->ops[i].attention.qkv.parts[0]);
        }
    struct kernels kernels[KERNELS_MAX];
    list_kernels(kernels);
    struct cpu_course course = {
        .sequence_count = 1, .lengths = {100}, .chunk_max = 50, .threads = 2};
    course.kv_type = KV_BF16;
    size_t logits = (size_t)total_length(&course) * (size_t)model->vocab_count;
    float *expected = cpu_run_logits(model, &kernels[0], course);
    course.kv_type = KV_INT8;
    float *found = cpu_run_logits(model, &kernels[0], course);
    double off = distance(found, expected, logits);
    cr_expect(off < 0.05, "pairing %d: off by %g", pairing, off);
    free(expected);
    free(found);
    random_model_destroy(model);
    random_tensor_destroy(&bias);
}

Test(backend_cpu, int8_keys_with_a_large_bias) {
    check_large_bias(ROPE_ADJACENT);
    check_large_bias(ROPE_HALVES);
}

static void set_lengths(struct cpu_course *course, const int lengths[4], enum kv_type kv_type) {
    memcpy(course->lengths, lengths, 4 * sizeof lengths[0]);
    course->sequence_count = 0;
    while (course->sequence_count < 4 && lengths[course->sequence_count] > 0)
        course->sequence_count++;
    course->kv_type = kv_type;
}

/* Every course must give the bits of the first: one thread, large chunks, clean pages. Token 0,
 * which only soiling sequences and wrong guesses use, has an embedding of NaN. */
static void check_invariance(const struct random_model_shape *shape, enum kv_type kv_type,
                             const int lengths[4], int kernels_max) {
    struct cpu_course courses[] = {
        {.chunk_max = CPU_RUN_ROWS, .threads = 1},
        {.chunk_max = 1, .threads = 2, .seed = 1, .soil = true},
        {.chunk_max = 7, .threads = 3, .seed = 2, .soil = true},
        {.chunk_max = 64, .threads = 1, .seed = 3},
        {.chunk_max = CPU_RUN_ROWS, .threads = 2, .seed = 4, .soil = true},
        {.chunk_max = 1, .threads = 2, .seed = 5, .guesses = 7},
        {.chunk_max = 7, .threads = 1, .seed = 6, .guesses = 5, .soil = true},
    };
    struct model *model = random_model_create(shape, 2);
    const struct tensor *table = model->ops[0].embed.table;
    memset((void *)(uintptr_t)table->bytes, 0xff, table->row_bytes);
    struct kernels kernels[KERNELS_MAX];
    int count = list_kernels(kernels);
    for (int i = 0; i < count && i < kernels_max; i++) {
        float *expected = NULL;
        for (size_t c = 0; c < sizeof courses / sizeof courses[0]; c++) {
            set_lengths(&courses[c], lengths, kv_type);
            float *found = cpu_run_logits(model, &kernels[i], courses[c]);
            size_t values = (size_t)total_length(&courses[c]) * (size_t)model->vocab_count;
            expected = expected == NULL ? found : expected;
            cr_expect(memcmp(found, expected, values * sizeof *found) == 0,
                      "%s, course %zu differs", kernels[i].numerics, c);
            cr_expect(isfinite(found[values - 1]));
            if (found != expected)
                free(found);
        }
        free(expected);
    }
    random_model_destroy(model);
}

Test(backend_cpu, bits_do_not_depend_on_the_schedule) {
    check_invariance(&plain, KV_BF16, (int[]){130, 1, 65, 40}, KERNELS_MAX);
    check_invariance(&everything, KV_BF16, (int[]){100, 64, 3, 75}, KERNELS_MAX);
    check_invariance(&everything, KV_INT8, (int[]){100, 64, 3, 75}, KERNELS_MAX);
    check_invariance(&odd, KV_BF16, (int[]){20, 33, 1, 64}, KERNELS_MAX);
}

/* Long enough that the spans of the few blocks are spread over threads; the cutting is the same for
 * all instruction sets. */
Test(backend_cpu, bits_do_not_depend_on_spans_being_tasks) {
    struct random_model_shape shape = plain;
    shape.layers = 1;
    check_invariance(&shape, KV_BF16, (int[]){1100, 0, 0, 0}, 1);
    shape = everything;
    shape.layers = 2, shape.window = 600;
    check_invariance(&shape, KV_INT8, (int[]){1100, 0, 0, 0}, 1);
}

/* A beginning of two spans and a bit, in pages of its own for each sequence or in shared ones. */
static void check_sharing(const struct random_model_shape *shape, enum kv_type kv_type) {
    struct model *model = random_model_create(shape, 2);
    struct kernels kernels[KERNELS_MAX];
    int count = list_kernels(kernels), common = 1088;
    struct cpu_course course = {.sequence_count = 5,
                                .lengths = {1100, 1130, 1089, 1120, 1090},
                                .chunk_max = CPU_RUN_ROWS,
                                .common = common,
                                .threads = 2,
                                .kv_type = kv_type};
    size_t vocab = (size_t)model->vocab_count;
    for (int i = 0; i < count; i++) {
        course.share = false, course.chunk_max = CPU_RUN_ROWS;
        float *expected = cpu_run_logits(model, &kernels[i], course);
        course.share = true, course.chunk_max = 4;
        float *found = cpu_run_logits(model, &kernels[i], course);
        size_t start = 0;
        for (int s = 0; s < course.sequence_count; start += (size_t)course.lengths[s++] * vocab)
            cr_expect(memcmp(found + start + (size_t)common * vocab,
                             expected + start + (size_t)common * vocab,
                             (size_t)(course.lengths[s] - common) * vocab * sizeof *found) == 0,
                      "%s, sequence %d differs", kernels[i].numerics, s);
        free(expected);
        free(found);
    }
    random_model_destroy(model);
}

Test(backend_cpu, bits_do_not_depend_on_sharing_spans) {
    struct random_model_shape shape = plain;
    shape.layers = 1;
    check_sharing(&shape, KV_BF16);
    shape = everything;
    shape.layers = 2, shape.window = 600;
    check_sharing(&shape, KV_INT8);
}

/* What is foretold is what is taken: weights, scratch and a page of every group. */
Test(backend_cpu, memory_is_foretold) {
    struct model *model = random_model_create(&everything, 3);
    struct cpu_features features = cpu_features_detect();
    struct kernels kernels = kernels_select(&features);
    struct cpu_course course = {.threads = 2};
    struct cpu_run run;
    struct backend_limits limits = cpu_run_limits(model, KV_BF16);
    cpu_run_open(&run, model, &kernels, &course);
    struct backend_memory need = run.backend->ops->memory(run.backend, model, &limits);
    cr_expect_eq(need.kv_page[0], (uint64_t)2 * 1 * 64 * 32 * 2 * 2);
    cr_expect_eq(need.kv_page[1], (uint64_t)1 * 1 * 64 * 32 * 2 * 2);
    cr_expect_gt(need.scratch, (uint64_t)CPU_RUN_ROWS * 96 * 4 * 2);
    cr_expect_gt(need.weights, model->parameter_count / 2);
    limits.kv_type = KV_INT8;
    cr_expect_lt(run.backend->ops->memory(run.backend, model, &limits).kv_page[0],
                 need.kv_page[0] * 6 / 10);
    cpu_run_close(&run);
    random_model_destroy(model);
}

Test(backend_cpu, double_kv_is_refused) {
    struct model *model = random_model_create(&plain, 3);
    struct cpu_features features = cpu_features_detect();
    struct thread_pool *pool;
    struct backend *backend;
    struct error error;
    cr_assert_eq(thread_pool_create(1, false, &pool, &error), STATUS_OK);
    cr_assert_eq(backend_cpu_create(pool, &features, &backend, &error), STATUS_OK);
    cr_assert_eq(backend->ops->prepare(backend, model, &error), STATUS_OK);
    struct backend_limits limits = cpu_run_limits(model, KV_F64);
    cr_expect_eq(backend->ops->reserve(backend, &limits, &error), STATUS_UNSUPPORTED);
    backend->ops->destroy(backend);
    thread_pool_destroy(pool);
    random_model_destroy(model);
}
