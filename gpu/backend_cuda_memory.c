/* How much device memory there is to be, foretold by the function that later sets the addresses. */
#include <stdlib.h>

#include "gpu/backend_cuda_state.h"
#include "gpu/device_copy.h"
#include "gpu/device_launch.h"
#include "gpu/device_memory.h"

enum { ALIGNMENT = 256, BLOCKS_OF_MULTIPROCESSOR = 2 };

/* States of cut attention tasks take this much at most. */
static const uint64_t STATE_BYTES_MAX = UINT64_C(64) << 20;

enum kv_element backend_cuda_memory_element(enum kv_type type) {
    return type == KV_INT8  ? KV_ELEMENT_INT8
           : type == KV_FP8 ? KV_ELEMENT_E4M3
           : type == KV_F16 ? KV_ELEMENT_F16
                            : KV_ELEMENT_BF16;
}

uint64_t backend_cuda_memory_page_bytes(const struct model *model, int kv_group,
                                        enum kv_element element) {
    return kv_share_bytes(element, model->head_dim) * (uint64_t)model->kv_head_count *
           (uint64_t)model->kv_groups[kv_group].layer_count;
}

/* ---- the area of activations ---- */

struct carver {
    uint64_t base, used;
};

static uint64_t carve(struct carver *carver, uint64_t count, uint64_t size) {
    uint64_t at = carver->used;
    carver->used += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return carver->base + at;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t parts_of(const struct linear *linear, uint64_t rows) {
    int splits = launch_config_splits(linear->out, linear->in);
    return splits > 1 ? (uint64_t)splits * rows * (uint64_t)linear->out : 0;
}

/* Floats of the largest matmul whose k is split. */
static uint64_t parts_count(const struct model *model, const struct backend_limits *limits) {
    uint64_t most = 0;
    for (int i = 0; i < model->op_count; i++) {
        const struct linear *linears[3];
        model_linears_of(&model->ops[i], linears);
        uint64_t rows = (uint64_t)(model->ops[i].kind == OP_LOGITS ? limits->sample_count_max
                                                                   : limits->row_count_max);
        for (int j = 0; linears[j] != NULL; j++)
            most = larger(most, parts_of(linears[j], rows));
    }
    return most;
}

static uint64_t state_bytes(const struct model *model) {
    return (uint64_t)model->kv_head_count * (uint64_t)(model->head_dim + 4) * sizeof(float);
}

static const struct launch_config *config_of(const struct backend_cuda *cuda,
                                             const struct model *model, bool decode,
                                             enum kv_element element) {
    return launch_config_attention(cuda->device->path, decode, element, model->head_dim);
}

static int attention_grid(const struct backend_cuda *cuda) {
    return BLOCKS_OF_MULTIPROCESSOR * cuda->device->multiprocessors;
}

/* A model that prepare refuses has no rows of the table; its memory is of no interest. */
static uint64_t scratch_bytes(const struct backend_cuda *cuda, const struct model *model,
                              enum kv_element element) {
    uint64_t most = 0;
    for (int decode = 0; decode < 2; decode++) {
        const struct launch_config *config = config_of(cuda, model, decode, element);
        most = larger(most, config != NULL ? (uint64_t)config->scratch_bytes : 0);
    }
    return most * (uint64_t)attention_grid(cuda);
}

static struct step_tables_limits tables_limits(const struct backend_cuda *cuda,
                                               const struct model *model,
                                               const struct backend_limits *limits) {
    enum kv_element element = backend_cuda_memory_element(limits->kv_type);
    const struct launch_config *prefill = config_of(cuda, model, false, element);
    const struct launch_config *decode = config_of(cuda, model, true, element);
    struct step_tables_limits tables = {
        .row_count = limits->row_count_max,
        .run_count = limits->run_count_max,
        .sample_count = limits->sample_count_max,
        .context = limits->context_max,
        .group_count = model->kv_group_count,
        .group = model->head_count / model->kv_head_count,
        .kv_heads = model->kv_head_count,
        .prefill_rows = prefill != NULL ? prefill->rows : ATTENTION_PREFILL_ROWS,
        .decode_rows = decode != NULL ? decode->rows : ATTENTION_DECODE_ROWS,
        .multiprocessors = cuda->device->multiprocessors,
    };
    for (int g = 0; g < model->kv_group_count; g++)
        tables.windows[g] = model->kv_groups[g].window;
    /* A device that is not full has few tasks, each of at most all spans of the context. */
    uint64_t spans = (uint64_t)limits->context_max / ATTENTION_SPAN + 1;
    uint64_t tasks = (uint64_t)attention_grid(cuda) / (uint64_t)model->kv_head_count + 1;
    uint64_t wanted = tasks * spans * (uint64_t)tables.decode_rows;
    uint64_t most = STATE_BYTES_MAX / state_bytes(model);
    tables.state_rows = (int64_t)(wanted < most ? wanted : most);
    return tables;
}

static uint64_t lay_out(const struct backend_cuda *cuda, const struct model *model,
                        const struct backend_limits *limits, uint64_t base, struct cuda_areas *at) {
    struct carver carver = {base, 0};
    uint64_t rows = (uint64_t)limits->row_count_max, samples = (uint64_t)limits->sample_count_max;
    uint64_t width = (uint64_t)model->width, ffn = (uint64_t)model->ffn_width;
    uint64_t attended = (uint64_t)(model->head_count * model->head_dim);
    uint64_t qkv = attended + 2 * (uint64_t)(model->kv_head_count * model->head_dim);
    struct step_tables_limits tables = tables_limits(cuda, model, limits);
    enum kv_element element = backend_cuda_memory_element(limits->kv_type);
    at->residual = carve(&carver, rows * width, sizeof(float));
    at->hidden = carve(&carver, rows * width, sizeof(float));
    at->qkv = carve(&carver, rows * qkv, sizeof(float));
    at->gate_up = carve(&carver, rows * 2 * ffn, sizeof(float));
    at->unit_hidden = carve(&carver, rows * width, sizeof(uint16_t));
    at->unit_attended = carve(&carver, rows * attended, sizeof(uint16_t));
    at->unit_gated = carve(&carver, rows * ffn, sizeof(uint16_t));
    at->scale_hidden = carve(&carver, rows, sizeof(float));
    at->scale_gated = carve(&carver, rows, sizeof(float));
    at->gathered = carve(&carver, samples * width, sizeof(uint16_t));
    at->gathered_scale = carve(&carver, samples, sizeof(float));
    at->logits = carve(&carver, samples * (uint64_t)model->vocab_count, sizeof(float));
    at->parts = carve(&carver, parts_count(model, limits), sizeof(float));
    at->scratch = carve(&carver, scratch_bytes(cuda, model, element), 1);
    at->states = carve(&carver, (uint64_t)tables.state_rows, state_bytes(model));
    at->tables = carve(&carver, step_tables_bytes(&tables), 1);
    at->counters = carve(&carver, COUNTER_COUNT, sizeof(uint32_t));
    return carver.used;
}

struct backend_memory backend_cuda_memory_need(const struct backend *backend,
                                               const struct model *model,
                                               const struct backend_limits *limits) {
    const struct backend_cuda *cuda = (const void *)backend;
    struct cuda_areas areas;
    struct backend_memory need = {
        .weights = backend_cuda_stream_memory(cuda, backend_cuda_weights_bytes(model)) +
                   backend_cuda_weights_rope_bytes(model, limits->context_max),
        .scratch = lay_out(cuda, model, limits, 0, &areas),
    };
    for (int g = 0; g < model->kv_group_count; g++)
        need.kv_page[g] =
            backend_cuda_memory_page_bytes(model, g, backend_cuda_memory_element(limits->kv_type));
    return need;
}

/* ---- taking it ---- */

static enum status reserve_kv(struct backend_cuda *cuda, struct error *error) {
    for (int g = 0; g < cuda->model->kv_group_count; g++)
        TRY(device_memory_alloc(cuda->device, DEVICE_MEMORY_KV,
                                backend_cuda_memory_page_bytes(cuda->model, g, cuda->kv_element) *
                                    (uint64_t)cuda->limits.page_count_max[g],
                                &cuda->kv[g], error));
    return STATUS_OK;
}

static enum status prepare_attention(struct backend_cuda *cuda, struct error *error) {
    for (int decode = 0; decode < 2; decode++) {
        const struct launch_config *config = config_of(cuda, cuda->model, decode, cuda->kv_element);
        if (config == NULL)
            return error_set(error, STATUS_UNSUPPORTED,
                             "this device has no bf16: keep KV in f16 or int8 (--kv-dtype)");
        TRY(device_launch_prepare(cuda->device, config, error));
    }
    return STATUS_OK;
}

enum status backend_cuda_memory_reserve(struct backend *backend,
                                        const struct backend_limits *limits, struct error *error) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    struct device *device = cuda->device;
    if (limits->kv_type == KV_F64)
        return error_set(error, STATUS_UNSUPPORTED,
                         "the CUDA backend keeps KV in bf16, f16, int8 or fp8");
    cuda->limits = *limits;
    cuda->kv_element = backend_cuda_memory_element(limits->kv_type);
    TRY(prepare_attention(cuda, error));
    TRY(backend_cuda_weights_ropes(cuda, limits->context_max, error));
    uint64_t bytes = lay_out(cuda, cuda->model, limits, 0, &cuda->at);
    TRY(device_memory_alloc(device, DEVICE_MEMORY_ACTIVATIONS, bytes, &cuda->area, error));
    lay_out(cuda, cuda->model, limits, cuda->area, &cuda->at);
    TRY(reserve_kv(cuda, error));
    cuda->attention_grid = attention_grid(cuda);
    struct step_tables_limits tables = tables_limits(cuda, cuda->model, limits);
    TRY(device_host_alloc(device, step_tables_bytes(&tables), &cuda->tables_host, error));
    TRY(step_tables_init(&cuda->tables, &tables, cuda->tables_host.bytes, error));
    TRY(device_host_alloc(device,
                          (uint64_t)limits->sample_count_max * (uint64_t)cuda->model->vocab_count *
                              sizeof(float),
                          &cuda->logits_host, error));
    return device_copy_fill(device, DEVICE_COMPUTE, cuda->at.counters, 0,
                            COUNTER_COUNT * sizeof(uint32_t), error);
}
