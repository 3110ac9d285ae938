/* The ops around attention: embedding, norms, matmuls, gates, the residual sum, logits.
 *
 * A matmul's result waits for its row scale and bias until the kernel that reads it; a residual sum
 * waits for the norm that follows it, and is made in the same pass over memory. */
#include <assert.h>

#include "gpu/backend_cuda_state.h"
#include "gpu/device_launch.h"

void backend_cuda_ops_launch(struct backend_cuda *cuda, const struct launch_config *config,
                             int64_t grid, const void *arguments, size_t bytes) {
    if (cuda->status == STATUS_OK)
        cuda->status = device_launch(cuda->device, config, grid, arguments, bytes, &cuda->error);
}

int backend_cuda_ops_grid(const struct backend_cuda *cuda, int64_t threads, int block_threads) {
    return launch_config_grid(threads, block_threads, cuda->device->multiprocessors);
}

static void launch(struct backend_cuda *cuda, enum kernel_id kernel, int64_t grid,
                   const void *arguments, size_t bytes) {
    backend_cuda_ops_launch(cuda, launch_config_find(kernel), grid, arguments, bytes);
}

/* Row scales exist for fp16 inputs only. */
static uint64_t scale_or_null(const struct backend_cuda *cuda, uint64_t scale) {
    return cuda->element == ELEMENT_F16 ? scale : 0;
}

static struct cuda_pending take_pending(struct backend_cuda *cuda, enum activation activation) {
    struct cuda_pending pending = cuda->pending[activation];
    cuda->pending[activation] = (struct cuda_pending){0, 0};
    return pending;
}

static void finish(struct backend_cuda *cuda, const struct finish_arguments *arguments) {
    int64_t threads = (int64_t)arguments->rows * arguments->columns;
    launch(cuda, KERNEL_FINISH, backend_cuda_ops_grid(cuda, threads, ROW_THREADS), arguments,
           sizeof *arguments);
}

/* ---- residual stream ---- */

void backend_cuda_ops_embed(struct backend *backend, const struct op_embed *op) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    struct embed_arguments arguments = {
        .table = cuda->embedding,
        .tokens = cuda->at.tables + cuda->tables.tokens,
        .out = cuda->at.residual,
        .row_bytes = (int64_t)op->table->row_bytes,
        .rows = cuda->plan->row_count,
        .width = cuda->model->width,
        .vocab = cuda->model->vocab_count,
        .type = (int32_t)op->table->type->id,
        .scale = op->scale,
    };
    int64_t threads = (int64_t)arguments.rows * arguments.width / 8;
    launch(cuda, KERNEL_EMBED, backend_cuda_ops_grid(cuda, threads, ROW_THREADS), &arguments,
           sizeof arguments);
}

static void add_residual_now(struct backend_cuda *cuda) {
    struct cuda_pending pending = take_pending(cuda, ACTIVATION_HIDDEN);
    struct finish_arguments arguments = {
        .parts = cuda->at.hidden,
        .row_scale = pending.row_scale,
        .bias = pending.bias,
        .out = cuda->at.residual,
        .rows = cuda->plan->row_count,
        .columns = cuda->model->width,
        .split_count = 1,
        .accumulate = 1,
    };
    finish(cuda, &arguments);
    cuda->residual_pending = false;
}

void backend_cuda_ops_add_residual(struct backend *backend) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    assert(!cuda->residual_pending);
    cuda->residual_pending = true;
}

/* From the residual stream, with what is to be added to it: the input of a matmul. From hidden:
 * what a sublayer is about to add, fp32 in place. */
void backend_cuda_ops_norm(struct backend *backend, const struct op_norm *op) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    struct rms_norm_arguments arguments = {
        .in = cuda->at.hidden,
        .weight = backend_cuda_weights_vector(cuda, op->weight),
        .counters = cuda->at.counters,
        .rows = cuda->plan->row_count,
        .width = cuda->model->width,
        .epsilon = op->epsilon,
    };
    if (op->from == ACTIVATION_RESIDUAL && !cuda->residual_pending) {
        arguments.in = cuda->at.residual;
    } else {
        struct cuda_pending pending = take_pending(cuda, ACTIVATION_HIDDEN);
        arguments.row_scale = pending.row_scale;
        arguments.bias = pending.bias;
    }
    if (op->from == ACTIVATION_RESIDUAL) {
        arguments.residual = cuda->residual_pending ? cuda->at.residual : 0;
        arguments.out = cuda->at.unit_hidden;
        arguments.out_element = (int32_t)cuda->element;
        arguments.out_scale = scale_or_null(cuda, cuda->at.scale_hidden);
        cuda->residual_pending = false;
    } else {
        arguments.out = cuda->at.hidden;
        arguments.out_element = ELEMENT_F32;
    }
    launch(cuda, KERNEL_RMS_NORM, arguments.rows, &arguments, sizeof arguments);
}

void backend_cuda_ops_activation(struct backend *backend, enum gate_kind gate) {
    static const enum kernel_gate gates[] = {
        [GATE_SILU] = KERNEL_GATE_SILU,
        [GATE_GELU_TANH] = KERNEL_GATE_GELU_TANH,
    };
    struct backend_cuda *cuda = backend_cuda_of(backend);
    struct cuda_pending pending = take_pending(cuda, ACTIVATION_GATE_UP);
    struct gated_activation_arguments arguments = {
        .gate_up = cuda->at.gate_up,
        .row_scale = pending.row_scale,
        .bias = pending.bias,
        .out = cuda->at.unit_gated,
        .out_scale = scale_or_null(cuda, cuda->at.scale_gated),
        .counters = cuda->at.counters,
        .rows = cuda->plan->row_count,
        .width = cuda->model->ffn_width,
        .gate = (int32_t)gates[gate],
        .out_element = (int32_t)cuda->element,
    };
    launch(cuda, KERNEL_GATED_ACTIVATION, arguments.rows, &arguments, sizeof arguments);
}

/* ---- matmuls ---- */

struct matmul {
    const struct cuda_linear *linear;
    uint64_t in, row_scale; /* rows of the matmul's element; 0: not scaled */
    uint64_t out;           /* fp32 [rows][columns] */
    int rows;
};

/* Returns what the reader of `out` has still to do: nothing where the splits of k were summed. */
static struct cuda_pending multiply(struct backend_cuda *cuda, const struct matmul *matmul) {
    const struct cuda_linear *linear = matmul->linear;
    const struct launch_config *config =
        launch_config_linear(linear->type, matmul->rows > LINEAR_FEW_TILE);
    struct linear_arguments arguments = {
        .weights = backend_cuda_stream_take(cuda, linear),
        .in = matmul->in,
        .parts = linear->split_count > 1 ? cuda->at.parts : matmul->out,
        .row_bytes = linear->row_bytes,
        .rows = matmul->rows,
        .columns = linear->columns,
        .k = linear->k,
        .split_count = linear->split_count,
    };
    int64_t column_blocks = (linear->columns + LINEAR_COLUMNS - 1) / LINEAR_COLUMNS;
    int64_t row_blocks = (matmul->rows + config->rows - 1) / config->rows;
    backend_cuda_ops_launch(cuda, config, column_blocks * linear->split_count * row_blocks,
                            &arguments, sizeof arguments);
    backend_cuda_stream_give_back(cuda, linear);
    struct cuda_pending pending = {matmul->row_scale, linear->bias};
    if (linear->split_count == 1)
        return pending;
    struct finish_arguments sum = {
        .parts = cuda->at.parts,
        .row_scale = pending.row_scale,
        .bias = pending.bias,
        .out = matmul->out,
        .rows = matmul->rows,
        .columns = linear->columns,
        .split_count = linear->split_count,
    };
    finish(cuda, &sum);
    return (struct cuda_pending){0, 0};
}

void backend_cuda_ops_linear(struct backend *backend, const struct linear *linear,
                             enum activation from, enum activation to) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    struct matmul matmul = {.linear = &cuda->linears[linear->id], .rows = cuda->plan->row_count};
    if (to == ACTIVATION_HIDDEN && cuda->residual_pending)
        add_residual_now(cuda);
    if (from == ACTIVATION_HIDDEN) {
        matmul.in = cuda->at.unit_hidden;
        matmul.row_scale = scale_or_null(cuda, cuda->at.scale_hidden);
    } else if (from == ACTIVATION_GATED) {
        matmul.in = cuda->at.unit_gated;
        matmul.row_scale = scale_or_null(cuda, cuda->at.scale_gated);
    } else {
        assert(from == ACTIVATION_ATTENDED);
        matmul.in = cuda->at.unit_attended;
    }
    matmul.out = to == ACTIVATION_QKV       ? cuda->at.qkv
                 : to == ACTIVATION_GATE_UP ? cuda->at.gate_up
                                            : cuda->at.hidden;
    cuda->pending[to] = multiply(cuda, &matmul);
}

/* ---- logits ---- */

static void gather_samples(struct backend_cuda *cuda) {
    int64_t row_bytes = (int64_t)cuda->model->width * (int64_t)sizeof(uint16_t);
    struct gather_rows_arguments arguments = {
        .in = cuda->at.unit_hidden,
        .indices = cuda->at.tables + cuda->tables.samples,
        .out = cuda->at.gathered,
        .scale_in = scale_or_null(cuda, cuda->at.scale_hidden),
        .scale_out = scale_or_null(cuda, cuda->at.gathered_scale),
        .row_bytes = row_bytes,
        .rows = cuda->plan->sample_count,
    };
    launch(cuda, KERNEL_GATHER_ROWS,
           backend_cuda_ops_grid(cuda, arguments.rows * row_bytes / 4, ROW_THREADS), &arguments,
           sizeof arguments);
}

static void cap_logits(struct backend_cuda *cuda, float cap) {
    struct softcap_arguments arguments = {
        .values = cuda->at.logits,
        .count = (int64_t)cuda->plan->sample_count * cuda->model->vocab_count,
        .cap = cap,
    };
    launch(cuda, KERNEL_SOFTCAP, backend_cuda_ops_grid(cuda, arguments.count, ROW_THREADS),
           &arguments, sizeof arguments);
}

void backend_cuda_ops_logits(struct backend *backend, const struct op_logits *op) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    if (cuda->plan->sample_count == 0)
        return;
    gather_samples(cuda);
    struct matmul matmul = {.linear = &cuda->linears[op->head.id],
                            .in = cuda->at.gathered,
                            .row_scale = scale_or_null(cuda, cuda->at.gathered_scale),
                            .out = cuda->at.logits,
                            .rows = cuda->plan->sample_count};
    struct cuda_pending pending = multiply(cuda, &matmul);
    if (pending.row_scale != 0 || pending.bias != 0) {
        struct finish_arguments scaled = {
            .parts = cuda->at.logits,
            .row_scale = pending.row_scale,
            .bias = pending.bias,
            .out = cuda->at.logits,
            .rows = matmul.rows,
            .columns = cuda->model->vocab_count,
            .split_count = 1,
        };
        finish(cuda, &scaled);
    }
    if (op->softcap > 0)
        cap_logits(cuda, op->softcap);
}
