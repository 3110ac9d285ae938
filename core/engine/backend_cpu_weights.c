/* Weights of the CPU backend: every linear's parts packed into tiles at load, in parallel; the
 * mapped file's pages are given back as soon as they are copied. Small vectors stay where they are
 * mapped and are read when used. */
#include "core/engine/backend_cpu_state.h"

#include <stdlib.h>

#include "core/weights/gguf.h"

/* The linears of an op, at most two; NULL-terminated. */
static void linears_of(const struct op *op, const struct linear *linears[3]) {
    linears[0] = linears[1] = linears[2] = NULL;
    if (op->kind == OP_ATTENTION)
        linears[0] = &op->attention.qkv, linears[1] = &op->attention.out;
    else if (op->kind == OP_MLP)
        linears[0] = &op->mlp.gate_up, linears[1] = &op->mlp.down;
    else if (op->kind == OP_LOGITS)
        linears[0] = &op->logits.head;
}

uint64_t backend_cpu_weights_bytes(const struct model *model) {
    uint64_t bytes = 0;
    for (int i = 0; i < model->op_count; i++) {
        const struct linear *linears[3];
        linears_of(&model->ops[i], linears);
        for (int j = 0; linears[j] != NULL; j++)
            bytes += tile_bytes(linears[j]->parts, linears[j]->part_count);
    }
    return bytes;
}

struct packing {
    const struct tile_set *set;
    const struct linear *linear;
    int block_first;
};

/* Column blocks packed between two times that the file's pages are given back: what is resident
 * twice stays small, however wide the vocabulary. */
enum { ROUND_BLOCKS = 128 };

static void pack_block(void *context, int task, int worker) {
    (void)worker;
    const struct packing *packing = context;
    tile_set_pack_block(packing->set, packing->linear->parts, packing->block_first + task);
}

/* The rows of each part that blocks [first, first + count) have copied. */
static void forget_round(const struct backend_cpu *cpu, const struct packing *packing, int count) {
    const struct gguf *gguf = cpu->model->gguf;
    int part_first = 0;
    struct tile_block begin = tile_set_block(packing->set, packing->block_first);
    struct tile_block end = tile_set_block(packing->set, packing->block_first + count - 1);
    for (int i = 0; i < packing->linear->part_count; i++) {
        const struct tensor *part = packing->linear->parts[i];
        int part_end = part_first + (int)part->row_count;
        int low = begin.out_first > part_first ? begin.out_first : part_first;
        int high =
            end.out_first + end.out_count < part_end ? end.out_first + end.out_count : part_end;
        if (low < high)
            gguf_forget_rows(gguf, part, (uint64_t)(low - part_first), (uint64_t)(high - low));
        part_first = part_end;
    }
}

static enum status pack(struct backend_cpu *cpu, const struct linear *linear, struct error *error) {
    struct tile_set *set = &cpu->tiles[linear->id];
    TRY(tile_set_create(set, linear->parts, linear->part_count, error));
    for (int first = 0; first < set->block_count; first += ROUND_BLOCKS) {
        struct packing packing = {set, linear, first};
        int left = set->block_count - first;
        int count = left < ROUND_BLOCKS ? left : ROUND_BLOCKS;
        thread_pool_run(cpu->pool, count, pack_block, &packing);
        if (cpu->model->gguf != NULL)
            forget_round(cpu, &packing, count);
    }
    return STATUS_OK;
}

enum status backend_cpu_weights_prepare(struct backend *backend, const struct model *model,
                                        struct error *error) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    cpu->model = model;
    cpu->tiles = calloc((size_t)model->linear_count, sizeof *cpu->tiles);
    if (cpu->tiles == NULL)
        return error_no_memory(error, "weights");
    cpu->tile_count = model->linear_count;
    for (int i = 0; i < model->op_count; i++) {
        const struct linear *linears[3];
        linears_of(&model->ops[i], linears);
        for (int j = 0; linears[j] != NULL; j++)
            TRY(pack(cpu, linears[j], error));
    }
    return STATUS_OK;
}

void backend_cpu_weights_release(struct backend_cpu *cpu) {
    for (int i = 0; i < cpu->tile_count; i++)
        tile_set_destroy(&cpu->tiles[i]);
    free(cpu->tiles);
    cpu->tiles = NULL;
    cpu->tile_count = 0;
}

void backend_cpu_weights_read_vector(const struct tensor *tensor, float *out) {
    for (uint64_t row = 0; row < tensor->row_count; row++)
        tensor_unpack_row(tensor, row, out + row * tensor->dims[0]);
}
