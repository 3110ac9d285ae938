/* Matmuls of the CPU backend. The input rows are rounded to the unit's format once; a task then
 * unpacks one block of 64 weight columns, chunk by chunk, and multiplies its rows by it. */
#include "core/engine/backend_cpu_state.h"

#include <string.h>

struct matmul {
    struct backend_cpu *cpu;
    const struct linear_kernels *kernels;
    const struct linear *linear;
    struct cpu_slice slice;     /* of the linear, being multiplied */
    const int32_t *row_numbers; /* rows of `from` to take, or NULL: all in order */
    int row_count;
    struct cpu_rows from;
    float *out;
    size_t out_stride;
    const float *bias; /* [out] or NULL */
    int row_parts;
    float softcap; /* logits */
};

static void convert_rows(void *context, int first, int end) {
    const struct matmul *matmul = context;
    const struct cpu_scratch *scratch = &matmul->cpu->scratch;
    const struct linear_kernels *kernels = matmul->kernels;
    int in = matmul->linear->in;
    size_t used = kernels->unit == UNIT_BF16 ? sizeof(uint16_t) : sizeof(float);
    for (int r = first; r < end; r++) {
        size_t row = (size_t)(matmul->row_numbers != NULL ? matmul->row_numbers[r] : r);
        char *out = scratch->unit_rows + (size_t)r * scratch->unit_stride;
        kernels->convert_row(matmul->from.values + row * matmul->from.stride, in, out);
        if (in % 2 != 0)
            memset(out + (size_t)in * used, 0, used);
    }
}

static void multiply_block(void *context, int task, int worker) {
    const struct matmul *matmul = context;
    const struct backend_cpu *cpu = matmul->cpu;
    const struct cpu_scratch *scratch = &cpu->scratch;
    int block_number = task / matmul->row_parts, part = task % matmul->row_parts;
    const struct linear_kernels *kernels = matmul->kernels;
    int first = linear_row_first(kernels, matmul->row_count, matmul->row_parts, part);
    int end = linear_row_first(kernels, matmul->row_count, matmul->row_parts, part + 1);
    struct tile_block block = tile_set_block(&matmul->slice.set, block_number);
    struct linear_task rows = {
        .rows = scratch->unit_rows + (size_t)first * scratch->unit_stride,
        .row_stride = scratch->unit_stride,
        .row_count = end - first,
        .out = matmul->out + (size_t)first * matmul->out_stride + matmul->slice.out_first,
        .out_stride = matmul->out_stride,
        .panel = scratch->panels + (size_t)worker * scratch->panel_bytes,
    };
    linear_multiply_block(kernels, &block, &rows);
    for (int r = 0; matmul->bias != NULL && r < rows.row_count; r++)
        cpu->kernels.elementwise->add(rows.out + (size_t)r * rows.out_stride + block.out_first,
                                      matmul->bias + matmul->slice.out_first + block.out_first,
                                      block.out_count);
}

static void multiply_slice(struct matmul *matmul) {
    const struct tile_set *set = &matmul->slice.set;
    int workers = matmul->cpu->worker_count;
    matmul->row_parts =
        linear_row_parts(matmul->kernels, set->in, matmul->row_count, set->block_count, workers);
    backend_cpu_tasks_run(matmul->cpu, set->block_count * matmul->row_parts,
                          (size_t)set->in * (size_t)set->out, multiply_block, matmul);
}

static void run(struct matmul *matmul) {
    struct backend_cpu *cpu = matmul->cpu;
    struct cpu_row_loop convert = {convert_rows, matmul, matmul->row_count,
                                   (size_t)matmul->linear->in};
    backend_cpu_tasks_over_rows(cpu, &convert);
    int slice_count = backend_cpu_stream_slice_count(cpu, matmul->linear);
    for (int i = 0; i < slice_count; i++) {
        matmul->slice = backend_cpu_stream_take(cpu, matmul->linear, i);
        multiply_slice(matmul);
        backend_cpu_stream_give_back(cpu, matmul->linear);
    }
}

/* The parts' biases side by side, or NULL when no part has one. */
static const float *read_biases(struct backend_cpu *cpu, const struct linear *linear) {
    float *biases = cpu->scratch.vector;
    bool any = false;
    for (int i = 0; i < linear->part_count; i++)
        any = any || linear->biases[i] != NULL;
    for (int i = 0; any && i < linear->part_count; i++) {
        size_t count = (size_t)linear->parts[i]->row_count;
        if (linear->biases[i] != NULL)
            backend_cpu_weights_read_vector(cpu, linear->biases[i], biases);
        else
            memset(biases, 0, count * sizeof *biases);
        biases += count;
    }
    return any ? cpu->scratch.vector : NULL;
}

/* Logits stay with the wider kernels: nothing after them averages an error out. */
static const struct linear_kernels *choose_kernels(const struct backend_cpu *cpu,
                                                   const struct tile_set *set) {
    const struct linear_kernels *int8 = cpu->kernels.linear_int8;
    return int8 != NULL && linear_has_int8(set) ? int8 : cpu->kernels.linear;
}

void backend_cpu_linear(struct backend *backend, const struct linear *linear, enum activation from,
                        enum activation to) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    struct cpu_rows out = cpu->scratch.activations[to];
    struct matmul matmul = {.cpu = cpu,
                            .kernels = choose_kernels(cpu, &cpu->tiles[linear->id]),
                            .linear = linear,
                            .row_count = cpu->plan->row_count,
                            .from = cpu->scratch.activations[from],
                            .out = out.values,
                            .out_stride = out.stride,
                            .bias = read_biases(cpu, linear)};
    run(&matmul);
}

static void cap_rows(void *context, int first, int end) {
    const struct matmul *matmul = context;
    for (int r = first; r < end; r++)
        matmul->cpu->kernels.elementwise->softcap(matmul->out + (size_t)r * matmul->out_stride,
                                                  matmul->linear->out, matmul->softcap);
}

void backend_cpu_linear_logits(struct backend *backend, const struct op_logits *op) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    if (cpu->plan->sample_count == 0)
        return;
    struct matmul matmul = {.cpu = cpu,
                            .kernels = cpu->kernels.linear,
                            .linear = &op->head,
                            .row_numbers = cpu->plan->sample_rows,
                            .row_count = cpu->plan->sample_count,
                            .from = cpu->scratch.activations[ACTIVATION_HIDDEN],
                            .out = cpu->scratch.logits,
                            .out_stride = (size_t)cpu->model->vocab_count,
                            .bias = read_biases(cpu, &op->head),
                            .softcap = op->softcap};
    run(&matmul);
    if (op->softcap > 0) {
        struct cpu_row_loop loop = {cap_rows, &matmul, matmul.row_count,
                                    8 * (size_t)cpu->model->vocab_count};
        backend_cpu_tasks_over_rows(cpu, &loop);
    }
}
