/* Weights of the CPU backend: every linear's parts as tiles in one area, mapped from the tile
 * cache or packed in parallel; the mapped file's pages are given back as soon as they are copied.
 * Small vectors are copied. */
#include "core/engine/backend_cpu_state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/engine/backend_cpu.h"
#include "core/weights/gguf.h"

enum { HUGE_PAGE_BYTES = 2 << 20 };

uint64_t backend_cpu_weights_bytes(const struct model *model, uint64_t *largest) {
    uint64_t sum = 0, most = 0;
    for (int i = 0; i < model->op_count; i++) {
        const struct linear *linears[3];
        model_linears_of(&model->ops[i], linears);
        for (int j = 0; linears[j] != NULL; j++) {
            uint64_t bytes = tile_bytes(linears[j]->parts, linears[j]->part_count);
            sum += bytes;
            most = bytes > most ? bytes : most;
        }
    }
    if (largest != NULL)
        *largest = most;
    return sum;
}

uint64_t backend_cpu_weights_total(const struct model *model) {
    return backend_cpu_weights_bytes(model, NULL);
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

void backend_cpu_weights_pack(const struct backend_cpu *cpu, const struct linear *linear) {
    const struct tile_set *set = &cpu->tiles[linear->id];
    for (int first = 0; first < set->block_count; first += ROUND_BLOCKS) {
        struct packing packing = {set, linear, first};
        int left = set->block_count - first;
        int count = left < ROUND_BLOCKS ? left : ROUND_BLOCKS;
        thread_pool_run(cpu->pool, count, pack_block, &packing);
        if (cpu->model->gguf != NULL)
            forget_round(cpu, &packing, count);
    }
}

/* ---- vectors ---- */

static void add_vector(struct backend_cpu *cpu, const struct tensor *tensor) {
    if (tensor != NULL)
        cpu->vectors[cpu->vector_count++].tensor = tensor;
}

static void add_biases(struct backend_cpu *cpu, const struct linear *linear) {
    for (int i = 0; i < linear->part_count; i++)
        add_vector(cpu, linear->biases[i]);
}

/* At most VECTORS_OF_OP an op; a tensor may be listed twice. */
enum { VECTORS_OF_OP = 2 + 2 * LINEAR_PARTS_MAX };

static void list_vectors(struct backend_cpu *cpu) {
    for (int i = 0; i < cpu->model->op_count; i++) {
        const struct op *op = &cpu->model->ops[i];
        const struct linear *linears[3];
        model_linears_of(op, linears);
        for (int j = 0; linears[j] != NULL; j++)
            add_biases(cpu, linears[j]);
        if (op->kind == OP_NORM)
            add_vector(cpu, op->norm.weight);
        if (op->kind == OP_ATTENTION) {
            add_vector(cpu, op->attention.q_norm);
            add_vector(cpu, op->attention.k_norm);
        }
    }
}

static int compare_vectors(const void *left, const void *right) {
    const struct cpu_vector *a = left, *b = right;
    return (a->tensor > b->tensor) - (a->tensor < b->tensor);
}

/* They lie scattered over the file; a copy of a few hundred kilobytes spares every step the reading
 * and the process their surroundings. */
static enum status copy_vectors(struct backend_cpu *cpu, struct error *error) {
    size_t floats = 0, most = (size_t)cpu->model->op_count * VECTORS_OF_OP;
    cpu->vectors = calloc(most, sizeof *cpu->vectors);
    if (cpu->vectors == NULL)
        return error_no_memory(error, "norm weights");
    list_vectors(cpu);
    for (int i = 0; i < cpu->vector_count; i++)
        floats += (size_t)(cpu->vectors[i].tensor->row_count * cpu->vectors[i].tensor->dims[0]);
    cpu->vector_memory = malloc((floats + 1) * sizeof(float));
    cpu->embedded = malloc(cpu->model->ops[0].embed.table->row_bytes);
    if (cpu->vector_memory == NULL || cpu->embedded == NULL)
        return error_no_memory(error, "norm weights");
    float *next = cpu->vector_memory;
    for (int i = 0; i < cpu->vector_count; i++) {
        const struct tensor *tensor = cpu->vectors[i].tensor;
        cpu->vectors[i].values = next;
        for (uint64_t row = 0; row < tensor->row_count; row++, next += tensor->dims[0])
            tensor_unpack_row(tensor, row, next);
    }
    qsort(cpu->vectors, (size_t)cpu->vector_count, sizeof *cpu->vectors, compare_vectors);
    return STATUS_OK;
}

void backend_cpu_weights_read_vector(const struct backend_cpu *cpu, const struct tensor *tensor,
                                     float *out) {
    const struct cpu_vector key = {.tensor = tensor};
    const struct cpu_vector *found =
        bsearch(&key, cpu->vectors, (size_t)cpu->vector_count, sizeof key, compare_vectors);
    assert(found != NULL);
    memcpy(out, found->values, (size_t)(tensor->row_count * tensor->dims[0]) * sizeof *out);
}

/* ---- tiles ---- */

/* One area for all tiles, in huge pages as far as it reaches; not yet touched. */
static enum status map_tiles(struct backend_cpu *cpu, struct error *error) {
    size_t room = cpu->tile_bytes + HUGE_PAGE_BYTES;
    uint8_t *area = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return error_set_errno(error, STATUS_NO_MEMORY, errno, "cannot map %zu bytes for weights",
                               cpu->tile_bytes);
    size_t before = (HUGE_PAGE_BYTES - (uintptr_t)area % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t used = (cpu->tile_bytes + page - 1) / page * page;
    if (before > 0)
        munmap(area, before);
    if (before + used < room)
        munmap(area + before + used, room - before - used);
    cpu->tile_memory = area + before;
    madvise(cpu->tile_memory, used, MADV_HUGEPAGE); /* advice only: refusal is no failure */
    return STATUS_OK;
}

/* The linears in the order of their tiles: [linear_count]. */
static const struct linear **list_linears(const struct model *model, struct error *error) {
    const struct linear **list = calloc((size_t)model->linear_count, sizeof *list);
    if (list == NULL)
        error_no_memory(error, "weights");
    int count = 0;
    for (int i = 0; list != NULL && i < model->op_count; i++) {
        const struct linear *linears[3];
        model_linears_of(&model->ops[i], linears);
        for (int j = 0; linears[j] != NULL; j++)
            list[count++] = linears[j];
    }
    assert(list == NULL || count == model->linear_count);
    return list;
}

enum status backend_cpu_weights_create_sets(struct backend_cpu *cpu,
                                            const struct linear *const *linears,
                                            struct error *error) {
    uint8_t *next = cpu->tile_memory;
    for (int i = 0; i < cpu->tile_count; i++) {
        struct tile_set *set = &cpu->tiles[linears[i]->id];
        TRY(tile_set_create_in(set, linears[i]->parts, linears[i]->part_count, next, error));
        next += set->memory_bytes;
    }
    return STATUS_OK;
}

/* Tiles from the cache are only read. */
static bool load(struct backend_cpu *cpu, const struct linear *const *linears) {
    struct tile_cache_linears which = {cpu->model->gguf, linears, cpu->tile_count};
    if (cpu->cache == NULL || cpu->model->gguf == NULL ||
        !tile_cache_load(cpu->cache, &which, cpu->tile_bytes, cpu->pool, &cpu->cached))
        return false;
    cpu->tile_memory = (void *)(uintptr_t)cpu->cached.bytes;
    return true;
}

static enum status prepare(struct backend_cpu *cpu, const struct linear *const *linears,
                           struct error *error) {
    cpu->tiles = calloc((size_t)cpu->model->linear_count, sizeof *cpu->tiles);
    if (cpu->tiles == NULL)
        return error_no_memory(error, "weights");
    cpu->tile_count = cpu->model->linear_count;
    cpu->tile_bytes = (size_t)backend_cpu_weights_bytes(cpu->model, NULL);
    if (backend_cpu_stream_is_needed(cpu))
        return backend_cpu_stream_prepare(cpu, linears, error);
    if (load(cpu, linears))
        return backend_cpu_weights_create_sets(cpu, linears, error);
    TRY(map_tiles(cpu, error));
    TRY(backend_cpu_weights_create_sets(cpu, linears, error));
    for (int i = 0; i < cpu->tile_count; i++)
        backend_cpu_weights_pack(cpu, linears[i]);
    cpu->packed = true;
    return STATUS_OK;
}

enum status backend_cpu_weights_prepare(struct backend *backend, const struct model *model,
                                        struct error *error) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    cpu->model = model;
    const struct linear **linears = list_linears(model, error);
    if (linears == NULL)
        return STATUS_NO_MEMORY;
    enum status status = prepare(cpu, linears, error);
    free(linears);
    TRY(status);
    TRY(copy_vectors(cpu, error));
    if (model->gguf != NULL)
        gguf_forget_all(model->gguf);
    return STATUS_OK;
}

void backend_cpu_weights_keep(struct backend *backend, const atomic_int *stop) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    if (cpu->cache != NULL && cpu->packed)
        tile_cache_keep(cpu->cache, cpu->pool, cpu->tile_memory, cpu->tile_bytes, stop);
}

void backend_cpu_weights_release(struct backend_cpu *cpu) {
    backend_cpu_stream_release(cpu);
    for (int i = 0; i < cpu->tile_count; i++)
        tile_set_destroy(&cpu->tiles[i]);
    free(cpu->tiles);
    cpu->tiles = NULL;
    cpu->tile_count = 0;
    if (cpu->cached.bytes != NULL)
        file_map_close(&cpu->cached.map);
    else if (cpu->tile_memory != NULL)
        munmap(cpu->tile_memory, cpu->tile_bytes);
    free(cpu->vectors);
    free(cpu->vector_memory);
    free(cpu->embedded);
    cpu->vectors = NULL;
    cpu->vector_memory = NULL;
    cpu->embedded = NULL;
    cpu->vector_count = 0;
    cpu->cached.bytes = NULL;
    cpu->tile_memory = NULL;
    cpu->packed = false;
}
