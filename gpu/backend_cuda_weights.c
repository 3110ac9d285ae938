/* Weights go to the device as they lie in the file. Parts of a linear that have different types (a
 * Q6_K value beside Q4_K queries) are decoded there to the matmul's element, which is what the
 * matmul would round them to. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/kernels.h"
#include "core/weights/gguf.h"
#include "gpu/backend_cuda_state.h"
#include "gpu/device_copy.h"
#include "gpu/device_launch.h"
#include "gpu/device_memory.h"

enum { ALIGNMENT = 256 };

static uint64_t aligned(uint64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static const struct tensor *table_of(const struct model *model) {
    for (int i = 0; i < model->op_count; i++)
        if (model->ops[i].kind == OP_EMBED)
            return model->ops[i].embed.table;
    return NULL;
}

/* ---- types ---- */

static bool is_mixed(const struct linear *linear) {
    for (int i = 1; i < linear->part_count; i++)
        if (linear->parts[i]->type != linear->parts[0]->type)
            return true;
    return false;
}

enum weight_type backend_cuda_weights_type(const struct backend_cuda *cuda,
                                           const struct linear *linear) {
    if (is_mixed(linear))
        return cuda->element == ELEMENT_BF16 ? WEIGHT_BF16 : WEIGHT_F16;
    return (enum weight_type)linear->parts[0]->type->id;
}

uint64_t backend_cuda_weights_row_bytes(const struct linear *linear) {
    return is_mixed(linear) ? (uint64_t)linear->in * sizeof(uint16_t) : linear->parts[0]->row_bytes;
}

/* ---- how much ---- */

bool backend_cuda_weights_is_tied(const struct model *model, const struct linear *linear) {
    return linear->part_count == 1 && linear->parts[0] == table_of(model);
}

static uint64_t linear_bytes(const struct model *model, const struct linear *linear) {
    if (backend_cuda_weights_is_tied(model, linear))
        return 0;
    return aligned((uint64_t)linear->out * backend_cuda_weights_row_bytes(linear));
}

static uint64_t bias_bytes(const struct linear *linear) {
    for (int i = 0; i < linear->part_count; i++)
        if (linear->biases[i] != NULL)
            return aligned((uint64_t)linear->out * sizeof(float));
    return 0;
}

static uint64_t vector_bytes(const struct tensor *tensor) {
    return tensor == NULL ? 0 : aligned(tensor->row_count * tensor->dims[0] * sizeof(float));
}

uint64_t backend_cuda_weights_fixed_bytes(const struct model *model) {
    const struct tensor *table = table_of(model);
    uint64_t bytes = table != NULL ? aligned(table->byte_count) : 0;
    for (int i = 0; i < model->op_count; i++) {
        const struct op *op = &model->ops[i];
        const struct linear *linears[3];
        model_linears_of(op, linears);
        for (int j = 0; linears[j] != NULL; j++)
            bytes += bias_bytes(linears[j]);
        if (op->kind == OP_NORM)
            bytes += vector_bytes(op->norm.weight);
        else if (op->kind == OP_ATTENTION)
            bytes += vector_bytes(op->attention.q_norm) + vector_bytes(op->attention.k_norm);
    }
    return bytes;
}

uint64_t backend_cuda_weights_bytes(const struct model *model) {
    uint64_t bytes = backend_cuda_weights_fixed_bytes(model);
    for (int i = 0; i < model->op_count; i++) {
        const struct linear *linears[3];
        model_linears_of(&model->ops[i], linears);
        for (int j = 0; linears[j] != NULL; j++)
            bytes += linear_bytes(model, linears[j]);
    }
    return bytes;
}

static bool is_first_rope(const struct model *model, int index) {
    for (int i = 0; i < index; i++)
        if (model->ops[i].kind == OP_ATTENTION &&
            model->ops[i].attention.rope == model->ops[index].attention.rope)
            return false;
    return model->ops[index].attention.rope->pairing != ROPE_NONE;
}

uint64_t backend_cuda_weights_rope_bytes(const struct model *model, int context) {
    uint64_t bytes = 0;
    for (int i = 0; i < model->op_count; i++)
        if (model->ops[i].kind == OP_ATTENTION && is_first_rope(model, i))
            bytes += aligned((uint64_t)context * (uint64_t)model->ops[i].attention.rope->dims *
                             sizeof(float));
    return bytes;
}

/* ---- to the device ---- */

static enum status allocate(struct backend_cuda *cuda, uint64_t bytes, uint64_t *address,
                            struct error *error) {
    return device_memory_alloc(cuda->device, DEVICE_MEMORY_WEIGHTS, bytes, address, error);
}

static enum status upload_tensor(struct backend_cuda *cuda, const struct tensor *tensor,
                                 uint64_t to, struct error *error) {
    TRY(device_copy_upload(cuda->device, DEVICE_COMPUTE, to, tensor->bytes, tensor->byte_count,
                           error));
    if (cuda->model->gguf != NULL)
        gguf_forget_tensor(cuda->model->gguf, tensor);
    return STATUS_OK;
}

/* A part of another type than its neighbours, through a copy that is freed again. */
static enum status decode_part(struct backend_cuda *cuda, const struct tensor *part, uint64_t to,
                               struct error *error) {
    uint64_t staged = 0;
    TRY(device_memory_alloc(cuda->device, DEVICE_MEMORY_STAGING, part->byte_count, &staged, error));
    enum status status = upload_tensor(cuda, part, staged, error);
    struct dequantise_arguments arguments = {
        .blocks = staged,
        .out = to,
        .row_bytes = (int64_t)part->row_bytes,
        .out_stride = (int64_t)part->dims[0],
        .rows = (int64_t)part->row_count,
        .columns = (int32_t)part->dims[0],
        .type = (int32_t)part->type->id,
        .out_element = (int32_t)cuda->element,
    };
    int grid = backend_cuda_ops_grid(cuda, arguments.rows * arguments.columns / 8, ROW_THREADS);
    if (status == STATUS_OK)
        status = device_launch(cuda->device, launch_config_find(KERNEL_DEQUANTISE), grid,
                               &arguments, sizeof arguments, error);
    if (status == STATUS_OK)
        status = device_synchronize(cuda->device, DEVICE_COMPUTE, error);
    device_memory_free(cuda->device, staged);
    return status;
}

static enum status upload_parts(struct backend_cuda *cuda, const struct linear *linear,
                                struct cuda_linear *made, struct error *error) {
    bool mixed = is_mixed(linear);
    uint64_t to = made->weights;
    for (int i = 0; i < linear->part_count; i++) {
        const struct tensor *part = linear->parts[i];
        TRY(mixed ? decode_part(cuda, part, to, error) : upload_tensor(cuda, part, to, error));
        to += part->row_count * (uint64_t)made->row_bytes;
    }
    return STATUS_OK;
}

/* Zeros where a part has no bias. */
static enum status upload_bias(struct backend_cuda *cuda, const struct linear *linear,
                               struct cuda_linear *made, struct error *error) {
    bool any = false;
    for (int i = 0; i < linear->part_count; i++)
        any = any || linear->biases[i] != NULL;
    if (!any)
        return STATUS_OK;
    float *values = calloc((size_t)linear->out, sizeof *values);
    if (values == NULL)
        return error_no_memory(error, "biases");
    float *next = values;
    for (int i = 0; i < linear->part_count; i++) {
        if (linear->biases[i] != NULL)
            tensor_unpack_row(linear->biases[i], 0, next);
        next += linear->parts[i]->row_count;
    }
    uint64_t bytes = (uint64_t)linear->out * sizeof *values;
    enum status status = allocate(cuda, bytes, &made->bias, error);
    if (status == STATUS_OK)
        status = device_copy_upload(cuda->device, DEVICE_COMPUTE, made->bias, values, bytes, error);
    free(values);
    return status;
}

/* For streaming, parts of several types are decoded once, and kept on the host. */
static enum status decode_to_host(struct backend_cuda *cuda, const struct linear *linear,
                                  struct cuda_linear *made, struct error *error) {
    struct device_host *host = backend_cuda_stream_decoded(cuda, linear->id);
    uint64_t bytes = (uint64_t)made->columns * (uint64_t)made->row_bytes;
    TRY(device_host_alloc(cuda->device, bytes, host, error));
    TRY(device_memory_alloc(cuda->device, DEVICE_MEMORY_STAGING, bytes, &made->weights, error));
    enum status status = upload_parts(cuda, linear, made, error);
    if (status == STATUS_OK)
        status = device_copy_download(cuda->device, DEVICE_COMPUTE, host->bytes, made->weights,
                                      bytes, error);
    device_memory_free(cuda->device, made->weights);
    made->weights = 0;
    return status;
}

static enum status upload_linear(struct backend_cuda *cuda, const struct linear *linear,
                                 struct cuda_linear *made, struct error *error) {
    uint64_t bytes = (uint64_t)made->columns * (uint64_t)made->row_bytes;
    if (backend_cuda_stream_has(cuda, linear->id))
        return is_mixed(linear) ? decode_to_host(cuda, linear, made, error) : STATUS_OK;
    if (backend_cuda_weights_is_tied(cuda->model, linear)) {
        made->weights = cuda->embedding;
        return STATUS_OK;
    }
    TRY(allocate(cuda, bytes, &made->weights, error));
    return upload_parts(cuda, linear, made, error);
}

static enum status check_linear(const struct backend_cuda *cuda, const struct linear *linear,
                                struct error *error) {
    enum weight_type type = backend_cuda_weights_type(cuda, linear);
    if (linear->in % LINEAR_STEP != 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "'%s' has rows of %d: the CUDA backend takes multiples of %d",
                         linear->parts[0]->name, linear->in, LINEAR_STEP);
    if (launch_config_linear(type, false) == NULL)
        return error_set(error, STATUS_UNSUPPORTED, "'%s': no CUDA matmul for weights of type %s",
                         linear->parts[0]->name, linear->parts[0]->type->name);
    return STATUS_OK;
}

static enum status prepare_linear(struct backend_cuda *cuda, const struct linear *linear,
                                  struct error *error) {
    struct cuda_linear *made = &cuda->linears[linear->id];
    TRY(check_linear(cuda, linear, error));
    *made = (struct cuda_linear){
        .row_bytes = (int64_t)backend_cuda_weights_row_bytes(linear),
        .type = backend_cuda_weights_type(cuda, linear),
        .columns = linear->out,
        .k = linear->in,
        .split_count = launch_config_splits(linear->out, linear->in),
    };
    for (int many = 0; many < 2; many++)
        TRY(device_launch_prepare(cuda->device, launch_config_linear(made->type, many), error));
    TRY(upload_linear(cuda, linear, made, error));
    return upload_bias(cuda, linear, made, error);
}

static enum status prepare_vector(struct backend_cuda *cuda, const struct tensor *tensor,
                                  struct error *error) {
    if (tensor == NULL)
        return STATUS_OK;
    size_t count = (size_t)(tensor->row_count * tensor->dims[0]);
    float *values = malloc(count * sizeof *values);
    if (values == NULL)
        return error_no_memory(error, "norm weights");
    for (uint64_t row = 0; row < tensor->row_count; row++)
        tensor_unpack_row(tensor, row, values + row * tensor->dims[0]);
    struct cuda_tensor *made = &cuda->vectors[cuda->vector_count++];
    made->tensor = tensor;
    enum status status = allocate(cuda, count * sizeof *values, &made->address, error);
    if (status == STATUS_OK)
        status = device_copy_upload(cuda->device, DEVICE_COMPUTE, made->address, values,
                                    count * sizeof *values, error);
    free(values);
    return status;
}

static enum status prepare_embedding(struct backend_cuda *cuda, struct error *error) {
    const struct tensor *table = table_of(cuda->model);
    if (table == NULL)
        return STATUS_OK;
    if (launch_config_linear((enum weight_type)table->type->id, false) == NULL ||
        cuda->model->width % 8 != 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "'%s': the CUDA backend cannot look up rows of %d of type %s", table->name,
                         cuda->model->width, table->type->name);
    TRY(allocate(cuda, table->byte_count, &cuda->embedding, error));
    return upload_tensor(cuda, table, cuda->embedding, error);
}

static enum status prepare_op(struct backend_cuda *cuda, const struct op *op, struct error *error) {
    const struct linear *linears[3];
    model_linears_of(op, linears);
    for (int i = 0; linears[i] != NULL; i++)
        TRY(prepare_linear(cuda, linears[i], error));
    if (op->kind == OP_NORM)
        TRY(prepare_vector(cuda, op->norm.weight, error));
    if (op->kind != OP_ATTENTION)
        return STATUS_OK;
    TRY(prepare_vector(cuda, op->attention.q_norm, error));
    return prepare_vector(cuda, op->attention.k_norm, error);
}

enum status backend_cuda_weights_prepare(struct backend *backend, const struct model *model,
                                         struct error *error) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    cuda->model = model;
    if (launch_config_attention(cuda->device->path, false, KV_ELEMENT_F16, model->head_dim) == NULL)
        return error_set(error, STATUS_UNSUPPORTED,
                         "the CUDA backend has attention for heads of 64, 80, 96, 128 and 256 "
                         "dimensions; this model's have %d",
                         model->head_dim);
    for (int i = 0; i < KERNEL_ID_COUNT; i++)
        TRY(device_launch_prepare(cuda->device, launch_config_find((enum kernel_id)i), error));
    cuda->linears = calloc((size_t)model->linear_count, sizeof *cuda->linears);
    cuda->vectors = calloc((size_t)model->op_count * 2, sizeof *cuda->vectors);
    if (cuda->linears == NULL || cuda->vectors == NULL)
        return error_no_memory(error, "weights");
    TRY(backend_cuda_stream_decide(cuda, error));
    TRY(prepare_embedding(cuda, error));
    for (int i = 0; i < model->op_count; i++)
        TRY(prepare_op(cuda, &model->ops[i], error));
    if (model->gguf != NULL)
        gguf_forget_all(model->gguf);
    return backend_cuda_stream_start(cuda, error);
}

/* ---- rope tables ---- */

static enum status upload_rope(struct backend_cuda *cuda, const struct rope *rope, int context,
                               struct error *error) {
    int pairs = rope->dims / 2;
    size_t count = (size_t)context * (size_t)rope->dims;
    float *table = malloc(count * sizeof *table);
    float *row = malloc((size_t)rope->dims * sizeof *row);
    if (table == NULL || row == NULL) {
        free(table);
        free(row);
        return error_no_memory(error, "rotary tables");
    }
    for (int position = 0; position < context; position++) {
        float *out = table + (size_t)position * (size_t)rope->dims;
        rope_table(rope->frequencies, pairs, rope->magnitude, position, row, row + pairs);
        for (int i = 0; i < pairs; i++) {
            out[2 * i] = row[i];
            out[2 * i + 1] = row[pairs + i];
        }
    }
    struct cuda_rope *made = &cuda->ropes[cuda->rope_count++];
    made->rope = rope;
    enum status status = allocate(cuda, count * sizeof *table, &made->table, error);
    if (status == STATUS_OK)
        status = device_copy_upload(cuda->device, DEVICE_COMPUTE, made->table, table,
                                    count * sizeof *table, error);
    free(table);
    free(row);
    return status;
}

enum status backend_cuda_weights_ropes(struct backend_cuda *cuda, int context,
                                       struct error *error) {
    cuda->ropes = calloc((size_t)cuda->model->op_count, sizeof *cuda->ropes);
    if (cuda->ropes == NULL)
        return error_no_memory(error, "rotary tables");
    for (int i = 0; i < cuda->model->op_count; i++)
        if (cuda->model->ops[i].kind == OP_ATTENTION && is_first_rope(cuda->model, i))
            TRY(upload_rope(cuda, cuda->model->ops[i].attention.rope, context, error));
    return STATUS_OK;
}

uint64_t backend_cuda_weights_vector(const struct backend_cuda *cuda, const struct tensor *tensor) {
    for (int i = 0; tensor != NULL && i < cuda->vector_count; i++)
        if (cuda->vectors[i].tensor == tensor)
            return cuda->vectors[i].address;
    assert(tensor == NULL);
    return 0;
}

void backend_cuda_weights_release(struct backend_cuda *cuda) {
    free(cuda->linears);
    free(cuda->vectors);
    free(cuda->ropes);
}
