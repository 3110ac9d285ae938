/* Models larger than the memory for weights: some linears stay in memory, the others, spread evenly
 * between them, are streamed from the tile cache while those compute. No bit depends on it. */
#include "core/engine/backend_cpu_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/file_map.h"
#include "core/engine/backend_cpu.h"

/* How the limit is used: slices of an eighth at most, where a column block is no larger; a ring of
 * three of them, because neighbours differ in size and a large one must not wait until it is
 * needed; the rest stays. */
struct division {
    uint64_t slice, ring, resident; /* bytes at most */
};

static uint64_t largest_block_bytes(const struct model *model) {
    uint64_t largest = 0;
    for (int i = 0; i < model->op_count; i++) {
        const struct linear *linears[3];
        model_linears_of(&model->ops[i], linears);
        for (int j = 0; linears[j] != NULL; j++) {
            for (int p = 0; p < linears[j]->part_count; p++) {
                const struct tensor *part = linears[j]->parts[p];
                uint64_t blocks = (part->row_count + PANEL_COLUMNS - 1) / PANEL_COLUMNS;
                uint64_t bytes = tile_bytes(&part, 1) / blocks;
                largest = bytes > largest ? bytes : largest;
            }
        }
    }
    return largest;
}

static struct division divide(uint64_t limit, const struct model *model) {
    struct division division = {.slice = limit / 8, .ring = limit / 8 * 3};
    uint64_t block = largest_block_bytes(model);
    division.slice = division.slice < block ? block : division.slice;
    uint64_t least = weight_stream_ring_least(division.slice);
    division.ring = division.ring < least ? least : division.ring;
    division.resident = limit > division.ring ? limit - division.ring : 0;
    return division;
}

void backend_cpu_stream_limit(struct backend *backend, uint64_t bytes) {
    backend_cpu_of(backend)->stream.limit = bytes;
}

struct weight_stream_totals backend_cpu_stream_totals(const struct backend *backend) {
    const struct backend_cpu *cpu = (const void *)backend;
    if (cpu->stream.reads == NULL)
        return (struct weight_stream_totals){0};
    return weight_stream_totals(cpu->stream.reads);
}

uint64_t backend_cpu_stream_memory(const struct backend_cpu *cpu, const struct model *model) {
    uint64_t all = backend_cpu_weights_bytes(model, NULL);
    return cpu->stream.limit == 0 || all <= cpu->stream.limit ? all : cpu->stream.limit;
}

uint64_t backend_cpu_stream_step_bytes(const struct backend *backend, const struct model *model) {
    const struct backend_cpu *cpu = (const void *)backend;
    uint64_t all = backend_cpu_weights_total(model);
    if (cpu->stream.limit == 0 || all <= cpu->stream.limit)
        return 0;
    return all - divide(cpu->stream.limit, model).resident;
}

bool backend_cpu_stream_is_needed(const struct backend_cpu *cpu) {
    return cpu->stream.limit > 0 && cpu->tile_bytes > cpu->stream.limit;
}

/* ---- what stays ---- */

/* By the bytes so far: of every stretch of the model the same share stays. */
struct choice {
    double share;
    uint64_t passed, kept;
};

static bool stays(struct choice *choice, uint64_t bytes) {
    choice->passed += bytes;
    bool stays = (double)(choice->kept + bytes) <= choice->share * (double)choice->passed;
    choice->kept += stays ? bytes : 0;
    return stays;
}

/* Slices of a linear that is streamed. */
static enum status slice_up(struct cpu_stream *stream, const struct tile_set *set, uint64_t most,
                            struct error *error) {
    for (int first = 0; first < set->block_count;) {
        struct cpu_slice *slice = &stream->slices[stream->slice_count];
        TRY(tile_set_slice(set, first, most, &slice->set, error));
        slice->out_first = tile_set_block(set, first).out_first;
        first += slice->set.block_count;
        stream->slice_count++;
    }
    return STATUS_OK;
}

/* Decides what stays, and lists the slices of the rest. */
static enum status divide_linears(struct backend_cpu *cpu, const struct linear *const *linears,
                                  const struct division *division, struct error *error) {
    struct cpu_stream *stream = &cpu->stream;
    struct choice choice = {.share = (double)division->resident / (double)cpu->tile_bytes};
    size_t block_count = 0;
    for (int i = 0; i < cpu->tile_count; i++)
        block_count += (size_t)cpu->tiles[i].block_count;
    stream->slices = calloc(block_count, sizeof *stream->slices);
    stream->first_slice = calloc((size_t)cpu->model->linear_count, sizeof *stream->first_slice);
    stream->slices_of = calloc((size_t)cpu->model->linear_count, sizeof *stream->slices_of);
    if (stream->slices == NULL || stream->first_slice == NULL || stream->slices_of == NULL)
        return error_no_memory(error, "streamed weights");
    for (int i = 0; i < cpu->tile_count; i++) {
        int id = linears[i]->id;
        stream->first_slice[id] = stream->slice_count;
        if (!stays(&choice, cpu->tiles[id].memory_bytes))
            TRY(slice_up(stream, &cpu->tiles[id], division->slice, error));
        stream->slices_of[id] = stream->slice_count - stream->first_slice[id];
    }
    stream->resident_bytes = (size_t)choice.kept;
    return STATUS_OK;
}

static uint64_t offset_of(const struct backend_cpu *cpu, const struct tile_set *set) {
    return (uint64_t)((const uint8_t *)set->memory - cpu->cached.map.bytes);
}

static enum status keep_resident(struct backend_cpu *cpu, const struct linear *const *linears,
                                 struct error *error) {
    struct cpu_stream *stream = &cpu->stream;
    size_t used = 0;
    if (stream->resident_bytes == 0)
        return STATUS_OK;
    TRY(backend_cpu_memory_map(stream->resident_bytes, "weights", &stream->resident, error));
    for (int i = 0; i < cpu->tile_count; i++) {
        struct tile_set *set = &cpu->tiles[linears[i]->id];
        if (stream->slices_of[linears[i]->id] > 0)
            continue;
        uint8_t *place = (uint8_t *)stream->resident + used;
        file_map_copy(&cpu->cached.map, (size_t)offset_of(cpu, set), set->memory_bytes, place);
        tile_set_move(set, place);
        used += set->memory_bytes;
    }
    return STATUS_OK;
}

static enum status open_reads(struct backend_cpu *cpu, struct error *error) {
    struct cpu_stream *stream = &cpu->stream;
    const struct op *end = &cpu->model->ops[cpu->model->op_count - 1];
    struct weight_piece *pieces = calloc((size_t)stream->slice_count, sizeof *pieces);
    if (pieces == NULL)
        return error_no_memory(error, "streamed weights");
    for (int i = 0; i < stream->slice_count; i++)
        pieces[i] = (struct weight_piece){offset_of(cpu, &stream->slices[i].set),
                                          stream->slices[i].set.memory_bytes};
    struct weight_stream_options options = {
        .descriptor = cpu->cached.map.descriptor,
        .pieces = pieces,
        .piece_count = stream->slice_count,
        .optional_from = stream->slice_count,
        .ring_bytes = stream->limit - stream->resident_bytes,
    };
    if (end->kind == OP_LOGITS)
        options.optional_from = stream->first_slice[end->logits.head.id];
    enum status status = weight_stream_create(&options, &stream->reads, error);
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

static enum status check_limit(const struct backend_cpu *cpu, uint64_t largest, uint64_t ring,
                               struct error *error) {
    uint64_t least = largest > ring ? largest : ring;
    if (cpu->cache == NULL || cpu->model->gguf == NULL)
        return error_set(error, STATUS_UNSUPPORTED,
                         "weights of %.1f MB do not fit in %.1f MB and cannot be streamed: that "
                         "needs the tile cache (--tile-cache)",
                         (double)cpu->tile_bytes / 1e6, (double)cpu->stream.limit / 1e6);
    if (cpu->stream.limit < least)
        return error_set(error, STATUS_OVER_LIMIT,
                         "weights must be allowed %.1f MB at least, the largest matrix, to be "
                         "streamed: raise --weights-memory",
                         (double)least / 1e6);
    return STATUS_OK;
}

enum status backend_cpu_stream_prepare(struct backend_cpu *cpu, const struct linear *const *linears,
                                       struct error *error) {
    uint64_t largest = 0;
    backend_cpu_weights_bytes(cpu->model, &largest);
    struct division division = divide(cpu->stream.limit, cpu->model);
    TRY(check_limit(cpu, largest, division.ring, error));
    TRY(open_tiles(cpu, linears, largest, error));
    cpu->tile_memory = (void *)(uintptr_t)cpu->cached.bytes; /* only read */
    TRY(backend_cpu_weights_create_sets(cpu, linears, error));
    TRY(divide_linears(cpu, linears, &division, error));
    TRY(open_reads(cpu, error));
    return keep_resident(cpu, linears, error);
}

void backend_cpu_stream_release(struct backend_cpu *cpu) {
    struct cpu_stream *stream = &cpu->stream;
    weight_stream_destroy(stream->reads);
    for (int i = 0; i < stream->slice_count; i++)
        tile_set_destroy(&stream->slices[i].set);
    free(stream->slices);
    free(stream->first_slice);
    free(stream->slices_of);
    if (stream->resident != NULL)
        munmap(stream->resident, stream->resident_bytes);
    *stream = (struct cpu_stream){.limit = stream->limit};
}

/* ---- steps ---- */

void backend_cpu_stream_begin_step(struct backend_cpu *cpu) {
    if (cpu->stream.reads != NULL)
        weight_stream_begin(cpu->stream.reads, cpu->plan->sample_count > 0);
}

enum status backend_cpu_stream_end_step(struct backend_cpu *cpu, struct error *error) {
    return cpu->stream.reads == NULL ? STATUS_OK : weight_stream_check(cpu->stream.reads, error);
}

static bool is_streamed(const struct backend_cpu *cpu, const struct linear *linear) {
    return cpu->stream.reads != NULL && cpu->stream.slices_of[linear->id] > 0;
}

int backend_cpu_stream_slice_count(const struct backend_cpu *cpu, const struct linear *linear) {
    return is_streamed(cpu, linear) ? cpu->stream.slices_of[linear->id] : 1;
}

struct cpu_slice backend_cpu_stream_take(struct backend_cpu *cpu, const struct linear *linear,
                                         int slice) {
    if (!is_streamed(cpu, linear))
        return (struct cpu_slice){cpu->tiles[linear->id], 0};
    int piece = cpu->stream.first_slice[linear->id] + slice;
    struct cpu_slice *taken = &cpu->stream.slices[piece];
    const uint8_t *bytes = weight_stream_take(cpu->stream.reads, piece);
    tile_set_move(&taken->set, (void *)(uintptr_t)bytes);
    return *taken;
}

void backend_cpu_stream_give_back(struct backend_cpu *cpu, const struct linear *linear) {
    if (is_streamed(cpu, linear))
        weight_stream_give_back(cpu->stream.reads);
}
