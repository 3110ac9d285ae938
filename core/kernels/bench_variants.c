/* One set of random inputs, bf16 values, serves all variants. A row's floor is the same for all
 * that compute the same thing: useful products at the best peak of the machine, or minimal bytes.
 */
#include "core/kernels/bench_variants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/kernels/attention_backward.h"
#include "core/kernels/bench_paged.h"
#include "core/kernels/ceilings.h"
#include "core/weights/quant_type.h"

enum { HEAD_DIM_MAX = 512 };

static const double bound_share = 0.6, cache_share = 1.05;

struct bench {
    const struct bench_variants_case *what;
    struct thread_pool *pool;
    struct kernels kernels;
    const struct linear_kernels *fp32; /* for its peak */
    struct attention_dense_sequence *sequences;
    struct attention_dense_shape shape;
    struct attention_variants variants;
    struct attention_backward backward;
    bool joint;
    struct bench_paged *paged;
    float *inputs;      /* queries, keys, values, gradient of the output */
    uint16_t *inputs16; /* queries, keys, values */
    float *results;     /* output, gradients of queries, keys, values */
    float *log_sums;
    struct ceilings_probe *probe;
    struct bench_variants_result *result;
};

const char *bench_variants_bound_name(enum bench_variants_bound bound) {
    static const char *const names[] = {"compute", "bandwidth", "cache", "kernel", "not run"};
    return names[bound];
}

static enum status check(const struct bench_variants_case *what, struct error *error) {
    if (what->kv_heads > what->heads || what->heads % what->kv_heads != 0)
        return error_set(error, STATUS_BAD_INPUT, "%d heads are no multiple of %d KV heads",
                         what->heads, what->kv_heads);
    if (what->head_dim < 2 || what->head_dim > HEAD_DIM_MAX || what->head_dim % 2 != 0)
        return error_set(error, STATUS_BAD_INPUT, "head_dim must be even and at most %d, not %d",
                         HEAD_DIM_MAX, what->head_dim);
    if (!what->causal && what->window > 0)
        return error_set(error, STATUS_BAD_INPUT, "a window needs a causal mask");
    return STATUS_OK;
}

/* ---- inputs ---- */

static enum status make_shape(struct bench *bench, struct error *error) {
    const struct bench_variants_case *what = bench->what;
    bench->sequences = calloc((size_t)what->batch.sequence_count, sizeof *bench->sequences);
    if (bench->sequences == NULL)
        return error_no_memory(error, "the batch");
    struct attention_dense_sequence *next = bench->sequences;
    size_t queries = 0, keys = 0;
    for (int g = 0; g < what->batch.group_count; g++)
        for (int i = 0; i < what->batch.groups[g].sequence_count; i++) {
            const struct bench_batch_group *group = &what->batch.groups[g];
            *next++ = (struct attention_dense_sequence){group->query_count, group->context, queries,
                                                        keys};
            queries += (size_t)group->query_count;
            keys += (size_t)group->context;
        }
    bench->shape = (struct attention_dense_shape){
        .heads = what->heads,
        .kv_heads = what->kv_heads,
        .head_dim = what->head_dim,
        .causal = what->causal,
        .window = what->window,
        .scale = 1 / sqrtf((float)what->head_dim),
        .softcap = what->softcap,
        .sequences = bench->sequences,
        .sequence_count = what->batch.sequence_count,
    };
    return STATUS_OK;
}

/* Uniform bf16 values in [-1, 1), zero behind head_dim. */
static void fill(struct bench *bench, size_t count, size_t bf16_count) {
    int dim = attention_dense_dim(bench->shape.head_dim);
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        float value = (float)(int32_t)state * 0x1p-31f;
        uint16_t rounded = quant_type_f32_to_bf16(value);
        if (i % (size_t)dim >= (size_t)bench->shape.head_dim)
            rounded = 0;
        bench->inputs[i] = quant_type_bf16_to_f32(rounded);
        if (i < bf16_count)
            bench->inputs16[i] = rounded;
    }
}

static void connect(struct bench *bench, const struct attention_dense_kernels *dense) {
    size_t queries = attention_dense_query_values(&bench->shape);
    size_t keys = attention_dense_key_values(&bench->shape);
    bench->variants = (struct attention_variants){
        .shape = &bench->shape,
        .dense = dense,
        .elementwise = bench->kernels.elementwise,
        .queries = bench->inputs,
        .keys = bench->inputs + queries,
        .values = bench->inputs + queries + keys,
        .queries_bf16 = bench->inputs16,
        .keys_bf16 = bench->inputs16 + queries,
        .values_bf16 = bench->inputs16 + queries + keys,
        .out = bench->results,
        .log_sums = bench->log_sums,
    };
    bench->backward = (struct attention_backward){
        .shape = &bench->shape,
        .dense = dense,
        .elementwise = bench->kernels.elementwise,
        .queries = bench->variants.queries,
        .keys = bench->variants.keys,
        .values = bench->variants.values,
        .out = bench->results,
        .log_sums = bench->log_sums,
        .out_gradient = bench->inputs + queries + 2 * keys,
        .query_gradient = bench->results + queries,
        .key_gradient = bench->results + 2 * queries,
        .value_gradient = bench->results + 2 * queries + keys,
    };
}

static enum status make_inputs(struct bench *bench, const struct cpu_features *features,
                               struct error *error) {
    size_t queries = attention_dense_query_values(&bench->shape);
    size_t keys = attention_dense_key_values(&bench->shape);
    size_t inputs = 2 * queries + 2 * keys;
    bench->inputs = malloc(inputs * sizeof(float));
    bench->inputs16 = malloc((queries + 2 * keys) * sizeof(uint16_t));
    bench->results = malloc(inputs * sizeof(float));
    bench->log_sums = malloc(queries * sizeof(float));
    if (bench->inputs == NULL || bench->inputs16 == NULL || bench->results == NULL ||
        bench->log_sums == NULL)
        return error_no_memory(error, "inputs to measure with");
    fill(bench, inputs, queries + 2 * keys);
    connect(bench, attention_dense_select(features));
    return STATUS_OK;
}

/* ---- trials ---- */

static double larger(double a, double b) {
    return a > b ? a : b;
}

static void probe(struct bench *bench) {
    struct bench_variants_result *result = bench->result;
    result->peak_fp32 = larger(result->peak_fp32, ceilings_probe_flops(bench->probe, bench->fp32));
    result->peak_unit =
        larger(result->peak_unit, ceilings_probe_flops(bench->probe, bench->kernels.linear));
    result->bandwidth =
        larger(result->bandwidth, ceilings_probe_read(bench->probe, bench->kernels.linear));
}

static int by_size(const void *a, const void *b) {
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

/* A first run, whose pages are new, then the trials, ceilings between them. */
static void measure(struct bench *bench, void (*run)(struct bench *bench, int which), int which,
                    struct bench_variants_row *row) {
    double seconds[BENCH_VARIANTS_TRIALS];
    run(bench, which);
    for (int i = 0; i < BENCH_VARIANTS_TRIALS; i++) {
        probe(bench);
        int64_t start_ns = clock_now_ns();
        run(bench, which);
        int64_t elapsed_ns = clock_now_ns() - start_ns;
        seconds[i] = (double)(elapsed_ns > 0 ? elapsed_ns : 1) * 1e-9;
    }
    qsort(seconds, BENCH_VARIANTS_TRIALS, sizeof seconds[0], by_size);
    row->seconds = seconds[BENCH_VARIANTS_TRIALS / 2];
    row->spread = (seconds[BENCH_VARIANTS_TRIALS - 1] - seconds[0]) / row->seconds;
}

static void run_variant(struct bench *bench, int which) {
    attention_variants_run(&bench->variants, which, bench->pool);
}

static void run_paged(struct bench *bench, int which) {
    (void)which;
    bench_paged_run(bench->paged, bench->pool);
}

static void run_backward(struct bench *bench, int which) {
    (void)which;
    attention_backward_run(&bench->backward, bench->pool, bench->joint);
}

static struct bench_variants_row *add_row(struct bench *bench, const char *name) {
    struct bench_variants_row *row = &bench->result->rows[bench->result->row_count++];
    *row = (struct bench_variants_row){.name = name};
    snprintf(row->path, sizeof row->path, "%s fp32 %dx%d", bench->variants.dense->name,
             ATTENTION_DENSE_TILE, ATTENTION_DENSE_TILE);
    return row;
}

static enum status bench_variant(struct bench *bench, enum attention_variant variant,
                                 double memory_bytes, struct error *error) {
    struct bench_variants_row *row = add_row(bench, attention_variants_name(variant));
    row->work = attention_work_variant(&bench->shape, variant, bench->what->page_type);
    row->needed_bytes = (double)attention_variants_memory(&bench->shape, variant);
    if (row->needed_bytes > memory_bytes)
        return STATUS_OK;
    TRY(attention_variants_open(&bench->variants, variant, thread_pool_count(bench->pool), error));
    measure(bench, run_variant, (int)variant, row);
    row->passes = bench->variants.passes;
    attention_variants_close(&bench->variants);
    return STATUS_OK;
}

static enum status bench_ours(struct bench *bench, struct error *error) {
    struct bench_paged_inputs inputs = {
        .shape = &bench->shape,
        .kernels = &bench->kernels,
        .page_type = bench->what->page_type,
        .queries = bench->variants.queries,
        .keys = bench->variants.keys,
        .values = bench->variants.values,
        .workers = thread_pool_count(bench->pool),
    };
    TRY(bench_paged_open(&inputs, &bench->paged, error));
    struct bench_variants_row *row = add_row(bench, "ours");
    row->work = attention_work_paged(&bench->shape, bench->what->page_type);
    row->passes = 1;
    snprintf(row->path, sizeof row->path, "%s %s KV %dx%d", bench->kernels.attention->name,
             bench->what->page_type == ATTENTION_PAGE_INT8 ? "int8" : "bf16",
             bench->kernels.attention->sub_rows, PANEL_COLUMNS);
    measure(bench, run_paged, 0, row);
    bench_paged_close(bench->paged);
    bench->paged = NULL;
    return STATUS_OK;
}

/* Behind a forward pass that leaves the log-sum-exps. */
static enum status bench_gradients(struct bench *bench, struct error *error) {
    int workers = thread_pool_count(bench->pool);
    TRY(attention_variants_open(&bench->variants, ATTENTION_TILED, workers, error));
    attention_variants_run(&bench->variants, ATTENTION_TILED, bench->pool);
    attention_variants_close(&bench->variants);
    TRY(attention_backward_open(&bench->backward, workers, error));
    struct bench_variants_row *row = add_row(bench, "backward");
    bench->joint = attention_backward_joint(&bench->shape, workers);
    row->work = attention_work_backward(&bench->shape, bench->joint);
    measure(bench, run_backward, 0, row);
    row->passes = bench->backward.passes;
    attention_backward_close(&bench->backward);
    return STATUS_OK;
}

/* ---- results ---- */

static void judge(struct bench_variants_result *result, struct bench_variants_row *row) {
    bool ours = strcmp(row->name, "ours") == 0;
    double best = strcmp(row->name, "backward") == 0 ? result->peak_fp32
                                                     : larger(result->peak_fp32, result->peak_unit);
    row->floor_seconds = larger(row->work.flops / best, row->work.bytes / result->bandwidth);
    row->peak = ours ? result->peak_unit : result->peak_fp32;
    double compute = row->work.flops_issued / row->peak;
    double memory = row->work.bytes_moved / result->bandwidth;
    double explained = row->passes > 1 ? compute + memory : larger(compute, memory);
    if (row->seconds == 0)
        row->bound = BENCH_BOUND_NOT_RUN;
    else if (explained < bound_share * row->seconds)
        row->bound = BENCH_BOUND_KERNEL;
    else if (compute >= memory)
        row->bound = BENCH_BOUND_COMPUTE;
    else if (memory > cache_share * row->seconds)
        row->bound = BENCH_BOUND_CACHE;
    else
        row->bound = BENCH_BOUND_BANDWIDTH;
}

static enum status run_all(struct bench *bench, const struct cpu_features *features,
                           double memory_bytes, struct error *error) {
    TRY(make_shape(bench, error));
    TRY(make_inputs(bench, features, error));
    TRY(ceilings_probe_open(bench->pool, &bench->probe, error));
    for (int v = 0; v < ATTENTION_VARIANT_COUNT; v++)
        TRY(bench_variant(bench, v, memory_bytes, error));
    if (bench->what->causal)
        TRY(bench_ours(bench, error));
    return bench->what->backward ? bench_gradients(bench, error) : STATUS_OK;
}

/* The widest fp32 products that the features allow. */
static const struct linear_kernels *find_fp32(const struct cpu_features *features) {
    size_t i = 0;
    while (linear_variant_at(i)->unit != UNIT_F32 || !linear_variant_at(i)->available(features))
        i++; /* the scalar one ends this */
    return linear_variant_at(i);
}

enum status bench_variants_run(const struct bench_variants_case *what,
                               const struct cpu_features *features, struct thread_pool *pool,
                               double memory_bytes, struct bench_variants_result *result,
                               struct error *error) {
    TRY(check(what, error));
    *result = (struct bench_variants_result){0};
    struct bench bench = {.what = what,
                          .pool = pool,
                          .kernels = kernels_select(features),
                          .fp32 = find_fp32(features),
                          .result = result};
    enum status status = run_all(&bench, features, memory_bytes, error);
    for (int i = 0; i < result->row_count; i++)
        judge(result, &result->rows[i]);
    ceilings_probe_close(bench.probe);
    free(bench.sequences);
    free(bench.inputs);
    free(bench.inputs16);
    free(bench.results);
    free(bench.log_sums);
    return status;
}
