/* Models larger than the memory for weights: some linears stay in memory, the others, spread evenly
 * between them, are streamed from the tile cache while those compute. No bit depends on it. */
#include "core/engine/backend_cpu_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/file_map.h"
#include "core/engine/backend_cpu.h"

/* The ring takes three of the largest linear where that is no more than half of the limit, two at
 * least: the sizes of neighbours differ, and a large one must not wait until it is needed. */
static uint64_t ring_bytes(uint64_t limit, uint64_t largest) {
    uint64_t least = weight_stream_ring_least(largest), most = least / 2 * 3, half = limit / 2;
    return half < least ? least : half > most ? most : half;
}

void backend_cpu_stream_limit(struct backend *backend, uint64_t bytes) {
    backend_cpu_of(backend)->stream.limit = bytes;
}

struct weight_stream_totals backend_cpu_stream_totals(const struct backend *backend) {
    const struct backend_cpu *cpu = (const void *)backend;
    if (cpu->stream.pieces == NULL)
        return (struct weight_stream_totals){0};
    return weight_stream_totals(cpu->stream.pieces);
}

uint64_t backend_cpu_stream_memory(const struct backend_cpu *cpu, const struct model *model) {
    uint64_t all = backend_cpu_weights_bytes(model, NULL);
    return cpu->stream.limit == 0 || all <= cpu->stream.limit ? all : cpu->stream.limit;
}

/* Room for linears that stay, beside the ring. */
static uint64_t resident_room(const struct backend_cpu *cpu, const struct model *model) {
    uint64_t largest = 0;
    backend_cpu_weights_bytes(model, &largest);
    uint64_t ring = ring_bytes(cpu->stream.limit, largest);
    return cpu->stream.limit > ring ? cpu->stream.limit - ring : 0;
}

uint64_t backend_cpu_stream_step_bytes(const struct backend *backend, const struct model *model) {
    const struct backend_cpu *cpu = (const void *)backend;
    uint64_t all = backend_cpu_weights_total(model);
    if (cpu->stream.limit == 0 || all <= cpu->stream.limit)
        return 0;
    return all - resident_room(cpu, model);
}

bool backend_cpu_stream_is_needed(const struct backend_cpu *cpu) {
    return cpu->stream.limit > 0 && cpu->tile_bytes > cpu->stream.limit;
}

/* ---- what stays ---- */

/* Decides by the bytes so far: of every stretch of the model the same share stays. Linears that
 * stay get consecutive places in the resident memory. */
static void choose(struct backend_cpu *cpu, const struct linear *const *linears, uint64_t room) {
    double share = (double)room / (double)cpu->tile_bytes;
    uint64_t passed = 0, kept = 0;
    int piece_count = 0;
    for (int i = 0; i < cpu->tile_count; i++) {
        uint64_t bytes = cpu->tiles[linears[i]->id].memory_bytes;
        passed += bytes;
        bool stays = (double)(kept + bytes) <= share * (double)passed;
        kept += stays ? bytes : 0;
        cpu->stream.piece_of[linears[i]->id] = stays ? -1 : piece_count++;
    }
    cpu->stream.resident_bytes = (size_t)kept;
}

/* Copies what stays; the sets of the others keep their places in the map until they are taken. */
static enum status keep_resident(struct backend_cpu *cpu, const struct linear *const *linears,
                                 struct error *error) {
    struct cpu_stream *stream = &cpu->stream;
    size_t used = 0;
    if (stream->resident_bytes == 0)
        return STATUS_OK;
    TRY(backend_cpu_memory_map(stream->resident_bytes, "weights", &stream->resident, error));
    for (int i = 0; i < cpu->tile_count; i++) {
        struct tile_set *set = &cpu->tiles[linears[i]->id];
        if (stream->piece_of[linears[i]->id] >= 0)
            continue;
        uint8_t *place = (uint8_t *)stream->resident + used;
        size_t offset = (size_t)((const uint8_t *)set->memory - cpu->cached.map.bytes);
        file_map_copy(&cpu->cached.map, offset, set->memory_bytes, place);
        tile_set_move(set, place);
        used += set->memory_bytes;
    }
    return STATUS_OK;
}

static enum status open_stream(struct backend_cpu *cpu, const struct linear *const *linears,
                               struct error *error) {
    struct cpu_stream *stream = &cpu->stream;
    const struct linear *last = linears[cpu->tile_count - 1];
    struct weight_piece *pieces = calloc((size_t)cpu->model->linear_count, sizeof *pieces);
    if (pieces == NULL)
        return error_no_memory(error, "streamed weights");
    int count = 0;
    for (int i = 0; i < cpu->tile_count; i++) {
        const struct tile_set *set = &cpu->tiles[linears[i]->id];
        if (stream->piece_of[linears[i]->id] < 0)
            continue;
        uint64_t offset = (uint64_t)((const uint8_t *)set->memory - cpu->cached.map.bytes);
        pieces[count++] = (struct weight_piece){offset, set->memory_bytes};
    }
    const struct op *end = &cpu->model->ops[cpu->model->op_count - 1];
    stream->head_is_streamed =
        end->kind == OP_LOGITS && last == &end->logits.head && stream->piece_of[last->id] >= 0;
    struct weight_stream_options options = {
        .descriptor = cpu->cached.map.descriptor,
        .pieces = pieces,
        .piece_count = count,
        .last_is_optional = stream->head_is_streamed,
        .ring_bytes = stream->limit - stream->resident_bytes,
    };
    enum status status = weight_stream_create(&options, &stream->pieces, error);
    free(pieces);
    return status;
}

/* ---- the tile cache, whose file is made without holding it ---- */

static bool load(struct backend_cpu *cpu, const struct linear *const *linears) {
    struct tile_cache_linears which = {cpu->model->gguf, linears, cpu->tile_count};
    return tile_cache_load_sparing(cpu->cache, &which, cpu->tile_bytes, cpu->pool, &cpu->cached);
}

/* Packing leaves gaps as they are. */
static enum status build_linear(struct backend_cpu *cpu, const struct linear *linear, char *memory,
                                struct error *error) {
    struct tile_set *set = &cpu->tiles[linear->id];
    TRY(tile_set_create_in(set, linear->parts, linear->part_count, memory, error));
    memset(memory, 0, set->memory_bytes);
    backend_cpu_weights_pack(cpu, linear);
    size_t bytes = set->memory_bytes;
    tile_set_destroy(set);
    return tile_cache_build_append(cpu->cache, (const uint8_t *)memory, bytes, error);
}

static enum status build(struct backend_cpu *cpu, const struct linear *const *linears,
                         uint64_t largest, struct error *error) {
    char *memory;
    TRY(backend_cpu_memory_map((size_t)largest, "weights being packed", &memory, error));
    enum status status = tile_cache_build_begin(cpu->cache, cpu->tile_bytes, error);
    for (int i = 0; i < cpu->tile_count && status == STATUS_OK; i++)
        status = build_linear(cpu, linears[i], memory, error);
    if (status == STATUS_OK)
        status = tile_cache_build_end(cpu->cache, error);
    munmap(memory, (size_t)largest);
    return status;
}

static enum status open_tiles(struct backend_cpu *cpu, const struct linear *const *linears,
                              uint64_t largest, struct error *error) {
    if (load(cpu, linears))
        return STATUS_OK;
    TRY(build(cpu, linears, largest, error));
    return load(cpu, linears) ? STATUS_OK
                              : error_set(error, STATUS_CORRUPT,
                                          "packed weights are damaged as soon as they are written");
}

/* ---- life ---- */

static enum status check_limit(const struct backend_cpu *cpu, uint64_t largest,
                               struct error *error) {
    uint64_t least = weight_stream_ring_least(largest);
    if (cpu->cache == NULL || cpu->model->gguf == NULL)
        return error_set(error, STATUS_UNSUPPORTED,
                         "weights of %.0f MB do not fit in %.0f MB and cannot be streamed: that "
                         "needs the tile cache (--tile-cache)",
                         (double)cpu->tile_bytes / 1e6, (double)cpu->stream.limit / 1e6);
    if (cpu->stream.limit < least)
        return error_set(error, STATUS_OVER_LIMIT,
                         "weights must be allowed %.1f MB at least, twice the largest matrix, to "
                         "be streamed: raise --weights-memory",
                         (double)least / 1e6);
    return STATUS_OK;
}

enum status backend_cpu_stream_prepare(struct backend_cpu *cpu, const struct linear *const *linears,
                                       struct error *error) {
    uint64_t largest = 0;
    backend_cpu_weights_bytes(cpu->model, &largest);
    TRY(check_limit(cpu, largest, error));
    cpu->stream.piece_of = calloc((size_t)cpu->model->linear_count, sizeof *cpu->stream.piece_of);
    if (cpu->stream.piece_of == NULL)
        return error_no_memory(error, "streamed weights");
    TRY(open_tiles(cpu, linears, largest, error));
    cpu->tile_memory = (void *)(uintptr_t)cpu->cached.bytes; /* only read */
    TRY(backend_cpu_weights_create_sets(cpu, linears, error));
    choose(cpu, linears, resident_room(cpu, cpu->model));
    TRY(open_stream(cpu, linears, error));
    return keep_resident(cpu, linears, error);
}

void backend_cpu_stream_release(struct backend_cpu *cpu) {
    weight_stream_destroy(cpu->stream.pieces);
    free(cpu->stream.piece_of);
    if (cpu->stream.resident != NULL)
        munmap(cpu->stream.resident, cpu->stream.resident_bytes);
    cpu->stream.pieces = NULL;
    cpu->stream.piece_of = NULL;
    cpu->stream.resident = NULL;
}

/* ---- steps ---- */

void backend_cpu_stream_begin_step(struct backend_cpu *cpu) {
    if (cpu->stream.pieces != NULL)
        weight_stream_begin(cpu->stream.pieces, cpu->plan->sample_count > 0);
}

enum status backend_cpu_stream_end_step(struct backend_cpu *cpu, struct error *error) {
    return cpu->stream.pieces == NULL ? STATUS_OK : weight_stream_check(cpu->stream.pieces, error);
}

static bool is_streamed(const struct backend_cpu *cpu, const struct linear *linear) {
    return cpu->stream.pieces != NULL && cpu->stream.piece_of[linear->id] >= 0;
}

const struct tile_set *backend_cpu_stream_take(struct backend_cpu *cpu,
                                               const struct linear *linear) {
    struct tile_set *set = &cpu->tiles[linear->id];
    if (is_streamed(cpu, linear)) {
        const uint8_t *bytes =
            weight_stream_take(cpu->stream.pieces, cpu->stream.piece_of[linear->id]);
        tile_set_move(set, (void *)(uintptr_t)bytes);
    }
    return set;
}

void backend_cpu_stream_give_back(struct backend_cpu *cpu, const struct linear *linear) {
    if (is_streamed(cpu, linear))
        weight_stream_give_back(cpu->stream.pieces);
}
