/* A benchmark attention runs as in a step of the CPU backend: blocks of query rows × KV heads as
 * tasks of the pool. Pages hold the same random tokens over and over; scores are of ordinary size.
 */
#include "core/kernels/bench_attention.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/attention_block.h"
#include "core/kernels/bench_trials.h"

static const struct bench_attention_case cases[] = {
    {"smollm2 prefill", 64, 9, 3, 1, 2048, 512},
    {"smollm2 prefill", 64, 9, 3, 1, 8192, 512},
    {"qwen2.5-0.5b prefill", 64, 14, 2, 1, 8192, 512},
    {"gemma3-270m prefill", 256, 4, 1, 1, 8192, 512},
    {"llama-3-8b prefill", 128, 32, 8, 1, 8192, 512},
    {"smollm2 decode", 64, 9, 3, 1, 8192, 1},
    {"smollm2 decode", 64, 9, 3, 32, 512, 1},
    {"qwen2.5-0.5b decode", 64, 14, 2, 8, 8192, 1},
    {"llama-3-8b decode", 128, 32, 8, 4, 4096, 1},
};

struct bench {
    const struct bench_attention_case *what;
    struct attention_view view;
    int page_count;  /* of a sequence */
    int block_count; /* of a sequence */
    char *pages;     /* [sequences][pages][KV heads] */
    size_t page_bytes;
    int32_t *page_numbers; /* of a sequence */
    float *queries;        /* [sequences][rows][heads][head_dim] */
    float *out;
    char *scratch; /* [threads][scratch_bytes] */
    size_t scratch_bytes;
};

size_t bench_attention_case_count(void) {
    return sizeof cases / sizeof cases[0];
}

struct bench_attention_case bench_attention_case_at(size_t index) {
    assert(index < bench_attention_case_count());
    return cases[index];
}

/* Uniform in [-1, 1). */
static float next_float(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(int32_t)*state * 0x1p-31f;
}

static void deinit(struct bench *bench) {
    free(bench->pages);
    free(bench->page_numbers);
    free(bench->queries);
    free(bench->out);
    free(bench->scratch);
}

static enum status allocate(struct bench *bench, int threads, struct error *error) {
    const struct bench_attention_case *what = bench->what;
    size_t values = (size_t)what->sequence_count * (size_t)what->row_count *
                    (size_t)what->head_count * (size_t)what->head_dim;
    size_t parts =
        (size_t)what->sequence_count * (size_t)bench->page_count * (size_t)what->kv_head_count;
    int group = what->head_count / what->kv_head_count;
    bench->scratch_bytes = bench_trials_round_up(
        attention_block_scratch_bytes(bench->view.page_type, what->head_dim, group));
    bench->pages = aligned_alloc(BENCH_TRIALS_ALIGNMENT, parts * bench->page_bytes);
    bench->page_numbers = malloc((size_t)bench->page_count * sizeof *bench->page_numbers);
    bench->queries = malloc(values * sizeof(float));
    bench->out = malloc(values * sizeof(float));
    bench->scratch = aligned_alloc(BENCH_TRIALS_ALIGNMENT, (size_t)threads * bench->scratch_bytes);
    if (bench->pages == NULL || bench->page_numbers == NULL || bench->queries == NULL ||
        bench->out == NULL || bench->scratch == NULL)
        return error_no_memory(error, "KV pages to measure with");
    uint32_t seed = 1;
    for (size_t i = 0; i < values; i++)
        bench->queries[i] = next_float(&seed);
    return STATUS_OK;
}

static enum status fill_pages(struct bench *bench, enum attention_page_type type,
                              struct error *error) {
    const struct bench_attention_case *what = bench->what;
    size_t dim = (size_t)what->head_dim;
    size_t parts =
        (size_t)what->sequence_count * (size_t)bench->page_count * (size_t)what->kv_head_count;
    float *tokens = malloc(2 * PANEL_COLUMNS * dim * sizeof *tokens);
    if (tokens == NULL)
        return error_no_memory(error, "tokens to measure with");
    uint32_t seed = 2;
    for (size_t i = 0; i < 2 * PANEL_COLUMNS * dim; i++)
        tokens[i] = next_float(&seed);
    struct attention_page_tokens page = {tokens, tokens + dim, 2 * dim, 0, PANEL_COLUMNS};
    attention_page_write(type, what->head_dim, bench->pages, &page);
    for (size_t i = 1; i < parts; i++)
        memcpy(bench->pages + i * bench->page_bytes, bench->pages, bench->page_bytes);
    for (int i = 0; i < bench->page_count; i++)
        bench->page_numbers[i] = i;
    free(tokens);
    return STATUS_OK;
}

/* Later blocks first, as in a step. */
static void run_task(void *context, int task, int worker) {
    const struct bench *bench = context;
    const struct bench_attention_case *what = bench->what;
    int kv_head = task % what->kv_head_count, rest = task / what->kv_head_count;
    int sequence = rest / bench->block_count;
    int block = bench->block_count - 1 - rest % bench->block_count;
    int step = attention_block_positions(bench->view.group), first = block * step;
    size_t row = (size_t)what->head_count * (size_t)what->head_dim;
    size_t at = ((size_t)sequence * (size_t)what->row_count + (size_t)first) * row +
                (size_t)(kv_head * bench->view.group) * (size_t)what->head_dim;
    struct attention_view view = bench->view;
    view.base =
        bench->pages + ((size_t)sequence * (size_t)bench->page_count * (size_t)what->kv_head_count +
                        (size_t)kv_head) *
                           bench->page_bytes;
    struct attention_queries queries = {
        .in = bench->queries + at,
        .in_stride = row,
        .out = bench->out + at,
        .out_stride = row,
        .position_first = what->context - what->row_count + first,
        .position_count = what->row_count - first < step ? what->row_count - first : step,
    };
    attention_block_run(&view, &queries, bench->scratch + (size_t)worker * bench->scratch_bytes);
}

static double best_seconds(struct bench *bench, struct thread_pool *pool) {
    const struct bench_attention_case *what = bench->what;
    return bench_trials_best(pool, what->sequence_count * bench->block_count * what->kv_head_count,
                             run_task, bench);
}

/* Keys that all rows of a head see together: rows at positions [context - rows, context). */
static double seen_keys(const struct bench_attention_case *what) {
    double rows = what->row_count;
    return rows * what->context - rows * (rows - 1) / 2;
}

enum status bench_attention_run(const struct kernels *kernels, struct thread_pool *pool,
                                const struct bench_attention_case *what,
                                enum attention_page_type page_type, double peak_flops,
                                struct bench_attention_result *result, struct error *error) {
    struct bench bench = {
        .what = what,
        .page_count = (what->context + PANEL_COLUMNS - 1) / PANEL_COLUMNS,
        .page_bytes = attention_page_bytes(page_type, what->head_dim),
        .view = {.kernels = kernels,
                 .page_type = page_type,
                 .head_dim = what->head_dim,
                 .group = what->head_count / what->kv_head_count,
                 .scale = 0.125f},
    };
    int step = attention_block_positions(bench.view.group);
    bench.block_count = (what->row_count + step - 1) / step;
    bench.view.page_stride = (size_t)what->kv_head_count * bench.page_bytes;
    enum status status = allocate(&bench, thread_pool_count(pool), error);
    if (status == STATUS_OK)
        status = fill_pages(&bench, page_type, error);
    if (status == STATUS_OK) {
        bench.view.pages = bench.page_numbers;
        double seconds = best_seconds(&bench, pool);
        double flops = 4.0 * seen_keys(what) * what->head_dim * what->head_count;
        double kv_bytes = (double)bench.page_bytes * bench.page_count * what->kv_head_count;
        *result = (struct bench_attention_result){
            .seconds = seconds,
            .flops = flops * what->sequence_count / seconds,
            .kv_bytes_rate = kv_bytes * what->sequence_count / seconds,
        };
        result->peak_share = peak_flops > 0 ? result->flops / peak_flops : 0;
    }
    deinit(&bench);
    return status;
}
