/* The float64 reference: the logits of another implementation (scripts/make_model_golden.py), and
 * the rule that a row depends on its own sequence only. */
#include <math.h>
#include <unistd.h>

#include "tests/core/engine/reference_run.h"
#include "tests/support/failing_malloc.h"

#define GOLDEN SHEAF_SOURCE_DIR "/tests/golden/model/"
#define TINY SHEAF_BINARY_DIR "/tiny/"

struct golden {
    int id_count;
    int32_t *ids;
    int position_count;
    int32_t *positions;
    float *logits; /* [position_count][vocab] */
};

static int32_t *read_numbers(FILE *file, int *count) {
    int32_t length;
    cr_assert_eq(fread(&length, sizeof length, 1, file), 1);
    int32_t *numbers = malloc((size_t)length * sizeof *numbers);
    cr_assert_eq(fread(numbers, sizeof *numbers, (size_t)length, file), (size_t)length);
    *count = length;
    return numbers;
}

static struct golden read_golden(const char *name, int vocab_count) {
    char path[512];
    struct golden golden;
    snprintf(path, sizeof path, GOLDEN "%s.bin", name);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    golden.ids = read_numbers(file, &golden.id_count);
    golden.positions = read_numbers(file, &golden.position_count);
    size_t count = (size_t)golden.position_count * (size_t)vocab_count;
    golden.logits = malloc(count * sizeof *golden.logits);
    cr_assert_eq(fread(golden.logits, sizeof *golden.logits, count, file), count, "%s", path);
    cr_assert_eq(fgetc(file), EOF, "%s", path);
    fclose(file);
    return golden;
}

static void free_golden(struct golden *golden) {
    free(golden->ids);
    free(golden->positions);
    free(golden->logits);
}

static double relative_error(const float *found, const float *wanted, int count) {
    double errors = 0, squares = 0;
    for (int i = 0; i < count; i++) {
        double error = (double)found[i] - (double)wanted[i];
        errors += error * error;
        squares += (double)wanted[i] * (double)wanted[i];
    }
    return sqrt(errors / squares);
}

/* Golden logits are rounded to fp32 (6e-8), and so are a model's epsilons and scales. */
static void compare_with_golden(const char *folder, const char *name, const char *architecture) {
    char path[512];
    struct reference_run run;
    snprintf(path, sizeof path, "%s%s.gguf", folder, name);
    cr_assert_eq(access(path, R_OK), 0, "%s is missing: run through ctest", path);
    reference_run_open(&run, path, architecture, 2);
    int vocab = run.model->vocab_count;
    struct golden golden = read_golden(name, vocab);
    float *logits = reference_run_logits(&run, golden.ids, golden.id_count, 48);
    for (int i = 0; i < golden.position_count; i++) {
        double error = relative_error(logits + (size_t)golden.positions[i] * (size_t)vocab,
                                      golden.logits + (size_t)i * (size_t)vocab, vocab);
        cr_expect_lt(error, 5e-7, "%s, position %d: %g", name, golden.positions[i], error);
    }
    free(logits);
    free_golden(&golden);
    reference_run_close(&run);
}

Test(backend_reference, llama_matches_numpy) {
    compare_with_golden(TINY, "tiny-llama", NULL);
}

Test(backend_reference, qwen2_with_biases_and_tied_head_matches_numpy) {
    compare_with_golden(TINY, "tiny-qwen2", NULL);
}

Test(backend_reference, gemma3_with_windows_matches_numpy) {
    compare_with_golden(TINY, "tiny-gemma3", NULL);
}

Test(backend_reference, every_tensor_type_matches_numpy) {
    compare_with_golden(TINY, "tiny-types", NULL);
}

Test(backend_reference, llama3_rope_divisors_match_numpy) {
    compare_with_golden(GOLDEN, "small-llama3", NULL);
}

Test(backend_reference, qwen3_with_yarn_matches_numpy) {
    compare_with_golden(GOLDEN, "small-qwen3", NULL);
}

Test(backend_reference, gemma3_with_linear_scaling_matches_numpy) {
    compare_with_golden(GOLDEN, "small-gemma3", NULL);
}

Test(backend_reference, own_description_with_fused_weights_matches_numpy) {
    compare_with_golden(GOLDEN, "small-fused", GOLDEN "small-fused.yaml");
}

static void fill_ids(int32_t *ids, int count, int vocab) {
    for (int i = 0; i < count; i++)
        ids[i] = (i * 37 + i * i * 11 + 5) % vocab;
}

Test(backend_reference, chunks_and_threads_change_no_bit) {
    static const int chunks[] = {100, 1, 7, 64};
    int32_t ids[100];
    float *first = NULL;
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct reference_run run;
        reference_run_open(&run, GOLDEN "small-gemma3.gguf", NULL, 1 + (int)i % 3);
        fill_ids(ids, 100, run.model->vocab_count);
        size_t bytes = 100 * (size_t)run.model->vocab_count * sizeof(float);
        float *logits = reference_run_logits(&run, ids, 100, chunks[i]);
        if (first == NULL)
            first = logits;
        else
            cr_expect_eq(memcmp(first, logits, bytes), 0, "chunks of %d", chunks[i]);
        if (logits != first)
            free(logits);
        reference_run_close(&run);
    }
    free(first);
}

/* Two sequences in one step, on scattered pages, the second one not from its beginning; only the
 * last rows are sampled. */
Test(backend_reference, neighbours_and_page_ids_change_no_bit) {
    static const int32_t pages_a[] = {3, 0}, pages_b[] = {4, 1};
    int32_t ids[180];
    struct reference_run alone, together;
    reference_run_open(&alone, GOLDEN "small-llama3.gguf", NULL, 1);
    reference_run_open(&together, GOLDEN "small-llama3.gguf", NULL, 2);
    size_t vocab = (size_t)alone.model->vocab_count;
    fill_ids(ids, 180, alone.model->vocab_count);
    const int32_t *a = ids, *b = ids + 90;
    float *wanted_b = reference_run_logits(&alone, b, 80, 80);

    struct backend_limits limits = verify_limits(together.model, 90, 100, KV_F64);
    limits.run_count_max = 2;
    limits.page_count_max[0] = 5;
    reference_run_reserve(&together, &limits);
    struct step_run start = {.row_count = 60, .pages = {pages_b}};
    struct step_plan first = {60, b, 1, &start, 0, NULL};
    reference_run_step(&together, &first);
    int32_t mixed[100];
    memcpy(mixed, a, 80 * sizeof *a);
    memcpy(mixed + 80, b + 60, 20 * sizeof *b);
    struct step_run runs[] = {
        {.row_first = 0, .row_count = 80, .position_first = 0, .pages = {pages_a}},
        {.row_first = 80, .row_count = 20, .position_first = 60, .pages = {pages_b}},
    };
    static const int32_t samples[] = {79, 99};
    struct step_plan second = {100, mixed, 2, runs, 2, samples};
    reference_run_step(&together, &second);
    const float *found = together.backend->ops->logits_view(together.backend);
    cr_expect_eq(memcmp(found + vocab, wanted_b + 79 * vocab, vocab * sizeof *found), 0);
    cr_expect_neq(memcmp(found, wanted_b + 79 * vocab, vocab * sizeof *found), 0);
    free(wanted_b);
    reference_run_close(&alone);
    reference_run_close(&together);
}

/* A position sees `window` positions: one token further back cannot matter in a single layer. Pages
 * behind every window of the step may be gone. */
Test(backend_reference, pages_behind_the_window_are_not_read) {
    int32_t ids[130], global[] = {0, 1, 2}, local[] = {0, 1, 2};
    struct reference_run run, again;
    reference_run_open(&run, GOLDEN "small-gemma3.gguf", NULL, 1);
    reference_run_open(&again, GOLDEN "small-gemma3.gguf", NULL, 1);
    fill_ids(ids, 130, run.model->vocab_count);
    cr_assert_eq(run.model->kv_groups[0].window, 24);
    float *wanted = reference_run_logits(&run, ids, 130, 130);
    struct backend_limits limits = verify_limits(again.model, 130, 128, KV_F64);
    reference_run_reserve(&again, &limits);
    struct step_run step = {.row_count = 128, .pages = {local, global}};
    struct step_plan plan = {128, ids, 1, &step, 0, NULL};
    reference_run_step(&again, &plan);
    local[0] = -1; /* positions 0 to 63, seen by none from 87 on */
    step = (struct step_run){.row_count = 2, .position_first = 128, .pages = {local, global}};
    plan = (struct step_plan){2, ids + 128, 1, &step, 2, again.numbers};
    reference_run_step(&again, &plan);
    size_t vocab = (size_t)run.model->vocab_count;
    cr_expect_eq(memcmp(again.backend->ops->logits_view(again.backend), wanted + 128 * vocab,
                        2 * vocab * sizeof *wanted),
                 0);
    free(wanted);
    reference_run_close(&run);
    reference_run_close(&again);
}

Test(backend_reference, refuses_other_kv_types_and_foreign_tokens) {
    struct reference_run run;
    struct error error = {0};
    reference_run_open(&run, GOLDEN "small-llama3.gguf", NULL, 1);
    struct backend_limits limits = verify_limits(run.model, 4, 4, KV_BF16);
    cr_expect_eq(run.backend->ops->reserve(run.backend, &limits, &error), STATUS_UNSUPPORTED);
    limits.kv_type = KV_F64;
    reference_run_reserve(&run, &limits);
    for (int32_t bad = -1; bad < 100; bad += 65) {
        int32_t ids[] = {1, bad};
        struct step_run step = {.row_count = 2, .pages = {run.numbers}};
        struct step_plan plan = {2, ids, 1, &step, 0, NULL};
        enum status status = decoder_step(run.model, run.backend, &plan, &error);
        cr_expect_eq(status, STATUS_BAD_INPUT, "%d", bad);
        cr_expect_not_null(strstr(error.text, "vocabulary of 64"), "%s", error.text);
    }
    reference_run_close(&run);
}

Test(backend_reference, foretells_its_memory) {
    struct reference_run run;
    reference_run_open(&run, GOLDEN "small-gemma3.gguf", NULL, 1);
    struct backend_limits limits = verify_limits(run.model, 128, 16, KV_F64);
    struct backend_memory memory = run.backend->ops->memory(run.backend, run.model, &limits);
    cr_expect_eq(memory.weights, 0);
    cr_expect_eq(memory.kv_page[0], 6u * 1 * 2 * 64 * 16 * 8);
    cr_expect_eq(memory.kv_page[1], 1u * 1 * 2 * 64 * 16 * 8);
    /* rows: residual and hidden 32, qkv 64, attended 32, gate_up 64, gated 32 doubles and a run
     * index */
    uint64_t rows = 16 * ((32 + 32 + 64 + 32 + 64 + 32) * 8 + 4);
    uint64_t lines = 64 * 8 + 64 * 4; /* bias and one weight row */
    uint64_t worker = 32 * 4 + 32 * 16 * 8 + 128 * 8;
    cr_expect_eq(memory.scratch, rows + lines + 16 * 64 * 4 + worker, "%lu", memory.scratch);
    cr_expect_str_eq(run.backend->ops->numerics(run.backend), "reference-f64");
    reference_run_close(&run);
}

Test(backend_reference, every_failed_allocation_is_an_error) {
    int n = 0;
    bool failed;
    struct reference_run run;
    reference_run_open(&run, GOLDEN "small-gemma3.gguf", NULL, 1);
    struct backend_limits limits = verify_limits(run.model, 70, 70, KV_F64);
    static const int32_t ids[70] = {1, 2, 3}, pages[] = {0, 1};
    struct step_run step = {.row_count = 70, .pages = {pages, pages}};
    struct step_plan plan = {70, ids, 1, &step, 0, NULL};
    do {
        struct backend *backend;
        struct error error = {0};
        failing_malloc_arm(++n);
        enum status status = backend_reference_create(run.pool, &backend, &error);
        if (status == STATUS_OK)
            status = backend->ops->prepare(backend, run.model, &error);
        if (status == STATUS_OK)
            status = backend->ops->reserve(backend, &limits, &error);
        if (status == STATUS_OK)
            status = decoder_step(run.model, backend, &plan, &error);
        failed = failing_malloc_disarm();
        cr_assert_eq(status, failed ? STATUS_NO_MEMORY : STATUS_OK, "allocation %d", n);
        if (backend != NULL)
            backend->ops->destroy(backend);
    } while (failed);
    cr_expect_gt(n, 15, "%d allocations", n - 1);
    reference_run_close(&run);
}
