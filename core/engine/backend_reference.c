/* The float64 reference: its lifetime, steps and small ops. Everything is the formula as a textbook
 * has it, in double from the unpacked weights to the logits, which are rounded to fp32 once, at the
 * end. It holds no weights (they are unpacked row by row from the map) and allocates KV pages when
 * they are first written. */
#include "core/engine/backend_reference.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/backend_reference_state.h"

int backend_reference_width(const struct model *model, enum activation activation) {
    const int widths[ACTIVATION_COUNT] = {
        [ACTIVATION_RESIDUAL] = model->width,
        [ACTIVATION_HIDDEN] = model->width,
        [ACTIVATION_QKV] = (model->head_count + 2 * model->kv_head_count) * model->head_dim,
        [ACTIVATION_ATTENDED] = model->head_count * model->head_dim,
        [ACTIVATION_GATE_UP] = 2 * model->ffn_width,
        [ACTIVATION_GATED] = model->ffn_width,
    };
    return widths[activation];
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

static size_t longest_input(const struct model *model) {
    int attended = backend_reference_width(model, ACTIVATION_ATTENDED);
    return (size_t)larger(model->width, larger(attended, model->ffn_width));
}

/* Also the longest bias, and so the longest tensor row. */
static size_t widest_output(const struct model *model) {
    int qkv = backend_reference_width(model, ACTIVATION_QKV);
    int wide = larger(qkv, larger(2 * model->ffn_width, model->width));
    return (size_t)larger(wide, model->vocab_count);
}

static size_t score_count(const struct backend_limits *limits) {
    return ((size_t)limits->context_max + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS * KV_PAGE_TOKENS;
}

static const char *numerics(const struct backend *backend) {
    (void)backend;
    return "reference-f64";
}

static enum kv_type kv_type(const struct backend *backend) {
    (void)backend;
    return KV_F64;
}

static uint64_t worker_bytes(const struct model *model, const struct backend_limits *limits) {
    return longest_input(model) * (sizeof(float) + REFERENCE_GROUP_COLUMNS * sizeof(double)) +
           score_count(limits) * sizeof(double);
}

static struct backend_memory memory(const struct backend *backend, const struct model *model,
                                    const struct backend_limits *limits) {
    const struct reference *reference = (const struct reference *)backend;
    struct backend_memory memory = {0};
    for (int group = 0; group < model->kv_group_count; group++)
        memory.kv_page[group] =
            backend_reference_attention_page_size(model, group) * sizeof(double);
    for (int i = 0; i < ACTIVATION_COUNT; i++)
        memory.scratch += (uint64_t)limits->row_count_max * sizeof(double) *
                          (uint64_t)backend_reference_width(model, (enum activation)i);
    memory.scratch +=
        widest_output(model) * (sizeof(double) + sizeof(float)) +
        (uint64_t)limits->sample_count_max * (uint64_t)model->vocab_count * sizeof(float) +
        (uint64_t)limits->row_count_max * sizeof(int) +
        (uint64_t)thread_pool_count(reference->pool) * worker_bytes(model, limits);
    return memory;
}

static enum status prepare(struct backend *backend, const struct model *model,
                           struct error *error) {
    (void)error;
    ((struct reference *)backend)->model = model;
    return STATUS_OK;
}

static bool reserve_worker(const struct reference *reference, struct reference_worker *worker) {
    size_t longest = longest_input(reference->model);
    worker->row = calloc(longest, sizeof *worker->row);
    worker->panel = calloc(longest * REFERENCE_GROUP_COLUMNS, sizeof *worker->panel);
    worker->scores = calloc(score_count(&reference->limits), sizeof *worker->scores);
    return worker->row != NULL && worker->panel != NULL && worker->scores != NULL;
}

static bool reserve_workers(struct reference *reference) {
    int count = thread_pool_count(reference->pool);
    reference->workers = calloc((size_t)count, sizeof *reference->workers);
    if (reference->workers == NULL)
        return false;
    for (int i = 0; i < count; i++)
        if (!reserve_worker(reference, &reference->workers[i]))
            return false;
    return true;
}

static bool reserve_buffers(struct reference *reference) {
    const struct model *model = reference->model;
    size_t rows = (size_t)reference->limits.row_count_max;
    size_t samples = (size_t)larger(reference->limits.sample_count_max, 1);
    for (int i = 0; i < ACTIVATION_COUNT; i++) {
        size_t width = (size_t)backend_reference_width(model, (enum activation)i);
        reference->activations[i] = calloc(rows * width, sizeof(double));
        if (reference->activations[i] == NULL)
            return false;
    }
    reference->bias = calloc(widest_output(model), sizeof(double));
    reference->weight_row = calloc(widest_output(model), sizeof(float));
    reference->logits = calloc(samples * (size_t)model->vocab_count, sizeof(float));
    reference->row_runs = calloc(rows, sizeof(int));
    return reference->bias != NULL && reference->weight_row != NULL && reference->logits != NULL &&
           reference->row_runs != NULL;
}

static bool reserve_page_tables(struct reference *reference) {
    for (int group = 0; group < reference->model->kv_group_count; group++) {
        size_t count = (size_t)reference->limits.page_count_max[group];
        reference->pages[group] = calloc(count + 1, sizeof *reference->pages[group]);
        if (reference->pages[group] == NULL)
            return false;
    }
    return true;
}

static enum status reserve(struct backend *backend, const struct backend_limits *limits,
                           struct error *error) {
    struct reference *reference = (struct reference *)backend;
    if (limits->kv_type != KV_F64)
        return error_set(error, STATUS_UNSUPPORTED,
                         "the reference keeps keys and values in float64 only");
    reference->limits = *limits;
    if (!reserve_buffers(reference) || !reserve_page_tables(reference) ||
        !reserve_workers(reference))
        return error_no_memory(error, "the reference's buffers");
    return STATUS_OK;
}

/* Every page that a run writes exists. */
static enum status touch_pages(struct reference *reference, const struct step_run *run, int group,
                               struct error *error) {
    size_t size = backend_reference_attention_page_size(reference->model, group);
    int last = (run->position_first + run->row_count - 1) / KV_PAGE_TOKENS;
    for (int i = run->position_first / KV_PAGE_TOKENS; i <= last; i++) {
        int32_t page = run->pages[group][i];
        assert(page >= 0 && page < reference->limits.page_count_max[group]);
        if (reference->pages[group][page] == NULL)
            reference->pages[group][page] = calloc(size, sizeof(double));
        if (reference->pages[group][page] == NULL)
            return error_no_memory(error, "a page of keys and values");
    }
    return STATUS_OK;
}

static enum status check_tokens(const struct reference *reference, const struct step_plan *plan,
                                struct error *error) {
    for (int row = 0; row < plan->row_count; row++)
        if (plan->tokens[row] < 0 || plan->tokens[row] >= reference->model->vocab_count)
            return error_set(error, STATUS_BAD_INPUT,
                             "token %d is not in the model's vocabulary of %d", plan->tokens[row],
                             reference->model->vocab_count);
    return STATUS_OK;
}

static enum status begin_step(struct backend *backend, const struct step_plan *plan,
                              struct error *error) {
    struct reference *reference = (struct reference *)backend;
    assert(plan->row_count <= reference->limits.row_count_max);
    assert(plan->sample_count <= reference->limits.sample_count_max);
    TRY(check_tokens(reference, plan, error));
    reference->plan = plan;
    for (int i = 0; i < plan->run_count; i++) {
        const struct step_run *run = &plan->runs[i];
        assert(run->position_first + run->row_count <= reference->limits.context_max);
        for (int row = 0; row < run->row_count; row++)
            reference->row_runs[run->row_first + row] = i;
        for (int group = 0; group < reference->model->kv_group_count; group++)
            TRY(touch_pages(reference, run, group, error));
    }
    return STATUS_OK;
}

static void embed(struct backend *backend, const struct op_embed *op) {
    struct reference *reference = (struct reference *)backend;
    size_t width = (size_t)reference->model->width;
    for (int row = 0; row < reference->plan->row_count; row++) {
        double *out = reference->activations[ACTIVATION_RESIDUAL] + (size_t)row * width;
        backend_reference_linear_unpack(reference, op->table,
                                        (uint64_t)reference->plan->tokens[row], out);
        for (size_t i = 0; i < width; i++)
            out[i] *= (double)op->scale;
    }
}

static void norm_row(const double *in, const double *weight, size_t width, double epsilon,
                     double *out) {
    double sum = 0;
    for (size_t i = 0; i < width; i++)
        sum += in[i] * in[i];
    double factor = 1 / sqrt(sum / (double)width + epsilon);
    for (size_t i = 0; i < width; i++)
        out[i] = in[i] * factor * weight[i];
}

static void norm(struct backend *backend, const struct op_norm *op) {
    struct reference *reference = (struct reference *)backend;
    size_t width = (size_t)reference->model->width;
    double *weight = reference->bias; /* free between linears, and wide enough */
    backend_reference_linear_unpack(reference, op->weight, 0, weight);
    for (int row = 0; row < reference->plan->row_count; row++)
        norm_row(reference->activations[op->from] + (size_t)row * width, weight, width,
                 (double)op->epsilon,
                 reference->activations[ACTIVATION_HIDDEN] + (size_t)row * width);
}

static double gate_silu(double value) {
    return value / (1 + exp(-value));
}

static double gate_gelu_tanh(double value) {
    const double root = 0.797884560802865355879892; /* sqrt(2 / pi) */
    return 0.5 * value * (1 + tanh(root * (value + 0.044715 * value * value * value)));
}

struct gate_job {
    struct reference *reference;
    double (*gate)(double value);
};

static void gate_row(void *context, int row, int worker_index) {
    const struct gate_job *job = context;
    (void)worker_index;
    size_t width = (size_t)job->reference->model->ffn_width;
    const double *gate = job->reference->activations[ACTIVATION_GATE_UP] + (size_t)row * 2 * width;
    double *out = job->reference->activations[ACTIVATION_GATED] + (size_t)row * width;
    for (size_t i = 0; i < width; i++)
        out[i] = job->gate(gate[i]) * gate[width + i];
}

static void activation(struct backend *backend, enum gate_kind gate) {
    static double (*const gates[])(double value) = {
        [GATE_SILU] = gate_silu,
        [GATE_GELU_TANH] = gate_gelu_tanh,
    };
    struct reference *reference = (struct reference *)backend;
    struct gate_job job = {reference, gates[gate]};
    thread_pool_run(reference->pool, reference->plan->row_count, gate_row, &job);
}

static void add_residual(struct backend *backend) {
    struct reference *reference = (struct reference *)backend;
    size_t count = (size_t)reference->plan->row_count * (size_t)reference->model->width;
    for (size_t i = 0; i < count; i++)
        reference->activations[ACTIVATION_RESIDUAL][i] +=
            reference->activations[ACTIVATION_HIDDEN][i];
}

static enum status end_step(struct backend *backend, struct error *error) {
    (void)error;
    ((struct reference *)backend)->plan = NULL;
    return STATUS_OK;
}

static const float *logits_view(const struct backend *backend) {
    return ((const struct reference *)backend)->logits;
}

static void free_pages(struct reference *reference, int group) {
    if (reference->pages[group] == NULL)
        return;
    for (int64_t i = 0; i < reference->limits.page_count_max[group]; i++)
        free(reference->pages[group][i]);
    free(reference->pages[group]);
}

static void destroy(struct backend *backend) {
    struct reference *reference = (struct reference *)backend;
    if (reference == NULL)
        return;
    for (int i = 0; i < ACTIVATION_COUNT; i++)
        free(reference->activations[i]);
    for (int i = 0; reference->workers != NULL && i < thread_pool_count(reference->pool); i++) {
        free(reference->workers[i].row);
        free(reference->workers[i].panel);
        free(reference->workers[i].scores);
    }
    for (int group = 0; group < MODEL_KV_GROUPS_MAX; group++)
        free_pages(reference, group);
    free(reference->workers);
    free(reference->bias);
    free(reference->weight_row);
    free(reference->logits);
    free(reference->row_runs);
    free(reference);
}

static const struct backend_ops operations = {
    .numerics = numerics,
    .kv_type = kv_type,
    .memory = memory,
    .prepare = prepare,
    .reserve = reserve,
    .begin_step = begin_step,
    .embed = embed,
    .norm = norm,
    .linear = backend_reference_linear,
    .kv_write = backend_reference_attention_write,
    .attention = backend_reference_attention,
    .activation = activation,
    .add_residual = add_residual,
    .logits = backend_reference_linear_logits,
    .end_step = end_step,
    .logits_view = logits_view,
    .destroy = destroy,
};

enum status backend_reference_create(struct thread_pool *pool, struct backend **backend,
                                     struct error *error) {
    struct reference *reference = calloc(1, sizeof *reference);
    *backend = NULL;
    if (reference == NULL)
        return error_no_memory(error, "the reference");
    reference->backend.ops = &operations;
    reference->pool = pool;
    *backend = &reference->backend;
    return STATUS_OK;
}
