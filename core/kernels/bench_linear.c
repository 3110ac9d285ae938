/* A benchmark matmul runs exactly as in a step: column blocks × parts of the rows as tasks of the
 * pool, each unpacked and multiplied by its worker. Weights are one constant byte: a harmless scale
 * and ordinary codes; the time does not depend on values. */
#include "core/kernels/bench_linear.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/bench_trials.h"
#include "core/kernels/tile.h"

enum {
    WEIGHT_BYTE = 0x2c, /* 0x2c2c is 0.065 as a half */
};

static const struct bench_linear_case shapes[] = {
    {.name = "smollm2 q|k|v", .type = QUANT_Q4_1, .in = 576, .out = 960},
    {.name = "smollm2 gate|up", .type = QUANT_Q4_1, .in = 576, .out = 3072},
    {.name = "smollm2 down", .type = QUANT_Q4_1, .in = 1536, .out = 576},
    {.name = "smollm2 logits", .type = QUANT_Q8_0, .in = 576, .out = 49152},
    {.name = "qwen2.5-0.5b gate|up", .type = QUANT_Q5_0, .in = 896, .out = 9728},
    {.name = "qwen2.5-0.5b down", .type = QUANT_Q6_K, .in = 4864, .out = 896},
    {.name = "gemma3-270m gate|up", .type = QUANT_Q5_0, .in = 640, .out = 4096},
    {.name = "gemma3-270m down", .type = QUANT_Q4_K, .in = 2048, .out = 640},
    {.name = "llama-3.2-1b q|k|v", .type = QUANT_Q4_K, .in = 2048, .out = 3072},
    {.name = "llama-3.2-1b gate|up", .type = QUANT_Q4_K, .in = 2048, .out = 16384},
    {.name = "llama-3.2-1b down", .type = QUANT_Q4_K, .in = 8192, .out = 2048},
};

struct bench {
    const struct linear_kernels *kernels;
    struct tile_set set;
    struct tensor tensor;
    struct linear_task task; /* all rows */
    int row_parts;
    char *panels; /* [threads][panel_bytes] */
    size_t panel_bytes;
    void *rows;
};

size_t bench_linear_shape_count(void) {
    return sizeof shapes / sizeof shapes[0];
}

struct bench_linear_case bench_linear_shape_at(size_t index) {
    assert(index < bench_linear_shape_count());
    return shapes[index];
}

static void run_task(void *context, int task_index, int worker) {
    const struct bench *bench = context;
    struct tile_block block = tile_set_block(&bench->set, task_index / bench->row_parts);
    struct linear_task task = bench->task;
    int part = task_index % bench->row_parts;
    int first = linear_row_first(bench->kernels, task.row_count, bench->row_parts, part);
    task.row_count =
        linear_row_first(bench->kernels, task.row_count, bench->row_parts, part + 1) - first;
    task.rows = (const char *)task.rows + (size_t)first * task.row_stride;
    task.out += (size_t)first * task.out_stride;
    task.panel = bench->panels + (size_t)worker * bench->panel_bytes;
    linear_multiply_block(bench->kernels, &block, &task);
}

static void deinit(struct bench *bench) {
    tile_set_destroy(&bench->set);
    free((void *)(uintptr_t)bench->tensor.bytes);
    free(bench->task.out);
    free(bench->panels);
    free(bench->rows);
}

static enum status create_weights(struct bench *bench, const struct bench_linear_case *what,
                                  struct error *error) {
    const struct quant_type *type = quant_type_find(what->type);
    assert(type != NULL && what->in % (int)type->block_values == 0);
    size_t row_bytes = (size_t)what->in / type->block_values * type->block_bytes;
    uint8_t *bytes = malloc(row_bytes * (size_t)what->out);
    if (bytes == NULL)
        return error_no_memory(error, "weights to measure with");
    memset(bytes, WEIGHT_BYTE, row_bytes * (size_t)what->out);
    bench->tensor = (struct tensor){
        .name = what->name,
        .type = type,
        .dim_count = 2,
        .dims = {(uint64_t)what->in, (uint64_t)what->out, 1, 1},
        .row_count = (uint64_t)what->out,
        .bytes = bytes,
        .row_bytes = row_bytes,
        .byte_count = row_bytes * (size_t)what->out,
    };
    const struct tensor *parts[] = {&bench->tensor};
    TRY(tile_set_create(&bench->set, parts, 1, error));
    for (int b = 0; b < bench->set.block_count; b++)
        tile_set_pack_block(&bench->set, parts, b);
    return STATUS_OK;
}

static enum status init(struct bench *bench, const struct bench_linear_case *what, int threads,
                        struct error *error) {
    size_t rows = (size_t)what->row_count;
    size_t row_bytes = linear_row_stride(bench->kernels->unit, what->in);
    size_t out_bytes = linear_row_stride(UNIT_F32, what->out);
    TRY(create_weights(bench, what, error));
    bench->panel_bytes = bench_trials_round_up(linear_panel_bytes(bench->kernels));
    bench->panels = aligned_alloc(BENCH_TRIALS_ALIGNMENT, (size_t)threads * bench->panel_bytes);
    bench->rows = aligned_alloc(BENCH_TRIALS_ALIGNMENT, rows * row_bytes);
    bench->task = (struct linear_task){
        .rows = bench->rows,
        .row_stride = row_bytes,
        .row_count = what->row_count,
        .out = aligned_alloc(BENCH_TRIALS_ALIGNMENT, rows * out_bytes),
        .out_stride = out_bytes / sizeof(float),
    };
    if (bench->panels == NULL || bench->rows == NULL || bench->task.out == NULL)
        return error_no_memory(error, "rows to measure with");
    memset(bench->rows, 0, rows * row_bytes);
    memset(bench->task.out, 0, rows * out_bytes);
    bench->row_parts = linear_row_parts(bench->kernels, what->in, what->row_count,
                                        bench->set.block_count, threads);
    return STATUS_OK;
}

enum status bench_linear_run(const struct linear_kernels *kernels, struct thread_pool *pool,
                             const struct bench_linear_case *what, double peak_flops,
                             struct bench_linear_result *result, struct error *error) {
    struct bench bench = {.kernels = kernels};
    enum status status = init(&bench, what, thread_pool_count(pool), error);
    if (status == STATUS_OK) {
        double weights = (double)what->in * (double)what->out;
        double seconds =
            bench_trials_best(pool, bench.set.block_count * bench.row_parts, run_task, &bench);
        *result = (struct bench_linear_result){
            .seconds = seconds,
            .flops = 2 * weights * (double)what->row_count / seconds,
            .weight_bytes_rate = (double)bench.set.memory_bytes / seconds,
            .weights_rate = weights / seconds,
        };
        result->peak_share = peak_flops > 0 ? result->flops / peak_flops : 0;
    }
    deinit(&bench);
    return status;
}
