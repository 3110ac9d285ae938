/* The ops that work on each row alone: embedding, norms, the gate and the residual sum. */
#include "core/engine/backend_cpu_state.h"

#include "core/weights/gguf.h"

struct rows_op {
    struct backend_cpu *cpu;
    struct cpu_rows from;
    struct cpu_rows to;
    float epsilon;
    enum gate_kind gate;
};

static void run(struct rows_op *op, void (*function)(void *, int, int), size_t values_per_row) {
    struct cpu_row_loop loop = {function, op, op->cpu->plan->row_count, values_per_row};
    backend_cpu_tasks_over_rows(op->cpu, &loop);
}

/* Rows are copied out of the file one by one: read through its map they would make it resident bit
 * by bit. */
static void embed_row(const struct backend_cpu *cpu, const struct op_embed *embed, int32_t token,
                      float *out) {
    struct tensor row = *embed->table;
    if (cpu->model->gguf != NULL) {
        gguf_copy_row(cpu->model->gguf, embed->table, (uint64_t)token, cpu->embedded);
        row.bytes = cpu->embedded;
        token = 0;
    }
    tensor_unpack_row(&row, (uint64_t)token, out);
    if (embed->scale != 1)
        for (int i = 0; i < cpu->model->width; i++)
            out[i] *= embed->scale;
}

void backend_cpu_rows_embed(struct backend *backend, const struct op_embed *embed) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    struct cpu_rows to = cpu->scratch.activations[ACTIVATION_RESIDUAL];
    for (int r = 0; r < cpu->plan->row_count; r++)
        embed_row(cpu, embed, cpu->plan->tokens[r], to.values + (size_t)r * to.stride);
}

static void norm_rows(void *context, int first, int end) {
    const struct rows_op *op = context;
    const struct backend_cpu *cpu = op->cpu;
    for (int r = first; r < end; r++)
        cpu->kernels.elementwise->rms_norm(op->from.values + (size_t)r * op->from.stride,
                                           cpu->scratch.vector, cpu->model->width, op->epsilon,
                                           op->to.values + (size_t)r * op->to.stride);
}

void backend_cpu_rows_norm(struct backend *backend, const struct op_norm *norm) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    struct rows_op op = {.cpu = cpu,
                         .from = cpu->scratch.activations[norm->from],
                         .to = cpu->scratch.activations[ACTIVATION_HIDDEN],
                         .epsilon = norm->epsilon};
    backend_cpu_weights_read_vector(cpu, norm->weight, cpu->scratch.vector);
    run(&op, norm_rows, 2 * (size_t)cpu->model->width);
}

static void gate_rows(void *context, int first, int end) {
    const struct rows_op *op = context;
    const struct elementwise_kernels *kernels = op->cpu->kernels.elementwise;
    int width = op->cpu->model->ffn_width;
    for (int r = first; r < end; r++) {
        const float *gate = op->from.values + (size_t)r * op->from.stride;
        float *out = op->to.values + (size_t)r * op->to.stride;
        if (op->gate == GATE_SILU)
            kernels->silu_mul(gate, gate + width, width, out);
        else
            kernels->gelu_tanh_mul(gate, gate + width, width, out);
    }
}

void backend_cpu_rows_activation(struct backend *backend, enum gate_kind gate) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    struct rows_op op = {.cpu = cpu,
                         .from = cpu->scratch.activations[ACTIVATION_GATE_UP],
                         .to = cpu->scratch.activations[ACTIVATION_GATED],
                         .gate = gate};
    run(&op, gate_rows, 4 * (size_t)cpu->model->ffn_width);
}

static void add_rows(void *context, int first, int end) {
    const struct rows_op *op = context;
    for (int r = first; r < end; r++)
        op->cpu->kernels.elementwise->add(op->to.values + (size_t)r * op->to.stride,
                                          op->from.values + (size_t)r * op->from.stride,
                                          op->cpu->model->width);
}

void backend_cpu_rows_add_residual(struct backend *backend) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    struct rows_op op = {.cpu = cpu,
                         .from = cpu->scratch.activations[ACTIVATION_HIDDEN],
                         .to = cpu->scratch.activations[ACTIVATION_RESIDUAL]};
    run(&op, add_rows, (size_t)cpu->model->width);
}
