/* The CUDA backend's table of ops, its life and its steps. */
#include "gpu/backend_cuda.h"

#include <assert.h>
#include <stdlib.h>

#include "gpu/backend_cuda_state.h"
#include "gpu/device_copy.h"
#include "gpu/device_memory.h"

/* Rows differ by the unit that multiplies and by the element of its inputs. */
static const char *numerics(const struct backend *backend) {
    static const char *const names[MATRIX_PATH_COUNT] = {
        [MATRIX_FMA] = "cuda-fma-f16",
        [MATRIX_TURING] = "cuda-sm75-f16",
        [MATRIX_AMPERE] = "cuda-sm80-bf16",
    };
    const struct backend_cuda *cuda = (const void *)backend;
    return names[cuda->device->path];
}

static enum status check_tokens(const struct backend_cuda *cuda, const struct step_plan *plan,
                                struct error *error) {
    for (int row = 0; row < plan->row_count; row++)
        if (plan->tokens[row] < 0 || plan->tokens[row] >= cuda->model->vocab_count)
            return error_set(error, STATUS_BAD_INPUT,
                             "token %d is not in the model's vocabulary of %d", plan->tokens[row],
                             cuda->model->vocab_count);
    return STATUS_OK;
}

static enum status begin_step(struct backend *backend, const struct step_plan *plan,
                              struct error *error) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    assert(plan->row_count > 0 && plan->row_count <= cuda->limits.row_count_max);
    assert(plan->run_count <= cuda->limits.run_count_max);
    assert(plan->sample_count <= cuda->limits.sample_count_max);
    TRY(check_tokens(cuda, plan, error));
    cuda->plan = plan;
    cuda->status = STATUS_OK;
    cuda->mark_count = 0;
    cuda->residual_pending = false;
    for (int i = 0; i < ACTIVATION_COUNT; i++)
        cuda->pending[i] = (struct cuda_pending){0, 0};
    TRY(backend_cuda_stream_begin(cuda, plan->sample_count > 0, error));
    step_tables_fill(&cuda->tables, plan);
    return device_copy_to_device(cuda->device, DEVICE_COMPUTE, cuda->at.tables,
                                 cuda->tables_host.bytes, cuda->tables.used, error);
}

static enum status end_step(struct backend *backend, struct error *error) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    int samples = cuda->plan->sample_count;
    cuda->plan = NULL;
    if (cuda->status == STATUS_OK && samples > 0)
        cuda->status = device_copy_to_host(
            cuda->device, DEVICE_COMPUTE, cuda->logits_host.bytes, cuda->at.logits,
            (uint64_t)samples * (uint64_t)cuda->model->vocab_count * sizeof(float), &cuda->error);
    if (cuda->status != STATUS_OK) {
        struct error ignored; /* what was queued reads the tables */
        (void)device_synchronize(cuda->device, DEVICE_COMPUTE, &ignored);
        *error = cuda->error;
        return cuda->status;
    }
    return device_synchronize(cuda->device, DEVICE_COMPUTE, error);
}

static const float *logits_view(const struct backend *backend) {
    return ((const struct backend_cuda *)backend)->logits_host.bytes;
}

/* device_close frees what is on the device. */
static void destroy(struct backend *backend) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    backend_cuda_stream_release(cuda);
    backend_cuda_marks_release(cuda);
    device_host_free(cuda->device, &cuda->tables_host);
    device_host_free(cuda->device, &cuda->logits_host);
    device_close(cuda->device);
    step_tables_deinit(&cuda->tables);
    backend_cuda_weights_release(cuda);
    free(cuda);
}

static const struct backend_ops ops = {
    .numerics = numerics,
    .kv_type = backend_cuda_kv_type,
    .available = backend_cuda_available,
    .memory = backend_cuda_memory_need,
    .prepare = backend_cuda_weights_prepare,
    .reserve = backend_cuda_memory_reserve,
    .begin_step = begin_step,
    .embed = backend_cuda_ops_embed,
    .norm = backend_cuda_ops_norm,
    .linear = backend_cuda_ops_linear,
    .kv_write = backend_cuda_attention_write,
    .attention = backend_cuda_attention_run,
    .activation = backend_cuda_ops_activation,
    .add_residual = backend_cuda_ops_add_residual,
    .logits = backend_cuda_ops_logits,
    .end_step = end_step,
    .mark = backend_cuda_marks_set,
    .mark_ns = backend_cuda_marks_ns,
    .logits_view = logits_view,
    .destroy = destroy,
};

enum status backend_cuda_create(const struct device_options *options, struct backend **backend,
                                struct error *error) {
    struct backend_cuda *cuda = calloc(1, sizeof *cuda);
    *backend = NULL;
    if (cuda == NULL)
        return error_no_memory(error, "the CUDA backend");
    cuda->base.ops = &ops;
    enum status status = device_open(options, &cuda->device, error);
    if (status != STATUS_OK) {
        free(cuda);
        return status;
    }
    cuda->element = launch_config_matmul_element(cuda->device->path);
    *backend = &cuda->base;
    return STATUS_OK;
}

const struct device *backend_cuda_device(const struct backend *backend) {
    return ((const struct backend_cuda *)backend)->device;
}

enum kv_type backend_cuda_kv_type(const struct backend *backend) {
    const struct backend_cuda *cuda = (const void *)backend;
    return cuda->device->path == MATRIX_AMPERE ? KV_BF16 : KV_F16;
}

uint64_t backend_cuda_available(const struct backend *backend) {
    struct error ignored;
    uint64_t bytes = 0;
    if (device_memory_available(((const struct backend_cuda *)backend)->device, &bytes, &ignored) !=
        STATUS_OK)
        return 0;
    return bytes;
}

enum status backend_cuda_counts(struct backend *backend, struct backend_cuda_counts *counts,
                                struct error *error) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    uint32_t values[COUNTER_COUNT];
    TRY(device_copy_download(cuda->device, DEVICE_COMPUTE, values, cuda->at.counters, sizeof values,
                             error));
    *counts = (struct backend_cuda_counts){values[COUNTER_SCALED_ROWS],
                                           values[COUNTER_OVERFLOWED_VALUES]};
    return STATUS_OK;
}
