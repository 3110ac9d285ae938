/* Packing of tensors into tiles. A column block is written chunk by chunk: the 64 outputs' file
 * blocks are split into codes and scales, then woven into planes. Blocks are independent, so
 * loading spreads over the thread pool, and touching memory first from there places pages near the
 * core. */
#include "core/kernels/tile.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/kernels/tile_layout.h"
#include "core/kernels/unroll.h"

enum {
    HUGE_PAGE_BYTES = 1 << 21,
    SMALL_ALIGNMENT = 4096,
    FLOATS_AT_ONCE = 32,
    CODES_AT_ONCE = 256,
};

static struct tile plan_tile(const struct tensor *tensor) {
    const struct tile_format *format = tile_format_find(tensor->type->id);
    assert(format != NULL);
    uint64_t blocks = (tensor->row_count + PANEL_COLUMNS - 1) / PANEL_COLUMNS;
    uint64_t chunks = (tensor->dims[0] + (uint64_t)format->chunk - 1) / (uint64_t)format->chunk;
    struct tile tile = {
        .format = format,
        .in = (int)tensor->dims[0],
        .out = (int)tensor->row_count,
        .block_count = (int)blocks,
        .chunk_bytes = tile_format_offsets(format).end,
    };
    tile.block_bytes = (size_t)chunks * tile.chunk_bytes;
    return tile;
}

uint64_t tile_bytes(const struct tensor *const *parts, int part_count) {
    uint64_t sum = 0;
    for (int i = 0; i < part_count; i++) {
        struct tile tile = plan_tile(parts[i]);
        sum += (uint64_t)tile.block_count * tile.block_bytes;
    }
    return sum;
}

static enum status check_parts(const struct tensor *const *parts, int part_count,
                               struct error *error) {
    uint64_t out = 0;
    for (int i = 0; i < part_count; i++) {
        const struct tensor *part = parts[i];
        if (part->dims[0] != parts[0]->dims[0])
            return error_set(error, STATUS_UNSUPPORTED,
                             "tensor '%s' has rows of %llu values, '%s' beside it has %llu",
                             part->name, (unsigned long long)part->dims[0], parts[0]->name,
                             (unsigned long long)parts[0]->dims[0]);
        if (tile_format_find(part->type->id) == NULL)
            return error_set(error, STATUS_UNSUPPORTED, "tensor '%s': no matmul for type %s",
                             part->name, part->type->name);
        if (part->dims[0] > INT_MAX / 2 || part->row_count > INT_MAX / 2 - out)
            return error_set(error, STATUS_OVER_LIMIT, "tensor '%s' is too large for a matmul",
                             part->name);
        out += part->row_count;
    }
    return STATUS_OK;
}

/* Large sets begin on a huge page; asking for one before the first touch is what makes it count.
 * The rest behind the last whole huge page is left to small ones: a hundred sets would waste as
 * many megabytes. */
static void *allocate(size_t bytes) {
    size_t alignment = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : SMALL_ALIGNMENT;
    size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void *memory = aligned_alloc(alignment, rounded);
    if (memory != NULL && alignment == HUGE_PAGE_BYTES)
        (void)madvise(memory, bytes / alignment * alignment, MADV_HUGEPAGE);
    return memory;
}

enum status tile_set_create_in(struct tile_set *set, const struct tensor *const *parts,
                               int part_count, void *memory, struct error *error) {
    assert(part_count > 0 && (uintptr_t)memory % 64 == 0);
    *set = (struct tile_set){0};
    TRY(check_parts(parts, part_count, error));
    set->tiles = calloc((size_t)part_count, sizeof *set->tiles);
    if (set->tiles == NULL)
        return error_no_memory(error, "packed weights");
    set->memory_bytes = (size_t)tile_bytes(parts, part_count);
    set->in = (int)parts[0]->dims[0];
    set->part_count = part_count;
    for (int i = 0; i < part_count; i++) {
        set->tiles[i] = plan_tile(parts[i]);
        set->out += set->tiles[i].out;
        set->block_count += set->tiles[i].block_count;
    }
    tile_set_move(set, memory);
    return STATUS_OK;
}

void tile_set_move(struct tile_set *set, void *memory) {
    assert(!set->owns_memory && (uintptr_t)memory % 64 == 0);
    set->memory = memory;
    uint8_t *next = memory;
    for (int i = 0; i < set->part_count; i++) {
        set->tiles[i].bytes = next;
        next += (size_t)set->tiles[i].block_count * set->tiles[i].block_bytes;
    }
}

enum status tile_set_slice(const struct tile_set *whole, int first, uint64_t bytes_max,
                           struct tile_set *slice, struct error *error) {
    struct tile_block begin = tile_set_block(whole, first);
    const struct tile *from = begin.tile;
    uint64_t most = bytes_max / from->block_bytes;
    int left = from->block_count - begin.block;
    int count = most < 1 ? 1 : most < (uint64_t)left ? (int)most : left;
    *slice = (struct tile_set){.in = whole->in, .block_count = count, .part_count = 1};
    slice->tiles = calloc(1, sizeof *slice->tiles);
    if (slice->tiles == NULL)
        return error_no_memory(error, "packed weights");
    int out_left = from->out - begin.block * PANEL_COLUMNS;
    slice->out = out_left < count * PANEL_COLUMNS ? out_left : count * PANEL_COLUMNS;
    slice->memory_bytes = (size_t)count * from->block_bytes;
    slice->tiles[0] = *from;
    slice->tiles[0].out = slice->out;
    slice->tiles[0].block_count = count;
    tile_set_move(slice, from->bytes + (size_t)begin.block * from->block_bytes);
    return STATUS_OK;
}

enum status tile_set_create(struct tile_set *set, const struct tensor *const *parts, int part_count,
                            struct error *error) {
    *set = (struct tile_set){0};
    TRY(check_parts(parts, part_count, error));
    void *memory = allocate((size_t)tile_bytes(parts, part_count));
    if (memory == NULL)
        return error_no_memory(error, "packed weights");
    enum status status = tile_set_create_in(set, parts, part_count, memory, error);
    set->owns_memory = status == STATUS_OK;
    if (status != STATUS_OK)
        free(memory);
    return status;
}

void tile_set_destroy(struct tile_set *set) {
    free(set->tiles);
    if (set->owns_memory)
        free(set->memory);
    *set = (struct tile_set){0};
}

struct tile_block tile_set_block(const struct tile_set *set, int block) {
    int part = 0, out_first = 0;
    while (block >= set->tiles[part].block_count) {
        block -= set->tiles[part].block_count;
        out_first += set->tiles[part].out;
        part++;
        assert(part < set->part_count);
    }
    const struct tile *tile = &set->tiles[part];
    int rest = tile->out - block * PANEL_COLUMNS;
    return (struct tile_block){
        .tile = tile,
        .block = block,
        .out_first = out_first + block * PANEL_COLUMNS,
        .out_count = rest < PANEL_COLUMNS ? rest : PANEL_COLUMNS,
    };
}

/* words[n] |= bits of codes[n × step], moved into place. Inlined with a constant step: four lines
 * of vector code. */
ALWAYS_INLINE void add_codes(const uint8_t *codes, const int step, int count, int from_bit,
                             uint32_t mask, int to_bit, uint32_t *words) {
    for (int n = 0; n < count; n++)
        words[n] |= ((uint32_t)codes[n * step] >> from_bit & mask) << to_bit;
}

/* Chunks that are woven together: up to CODES_AT_ONCE inputs, so that loops are long. */
struct weaving {
    uint8_t (*codes)[CODES_AT_ONCE]; /* [64]: a column's codes of all chunks */
    int chunk_count;
    int pairs; /* of a chunk */
    uint8_t *chunk;
    size_t chunk_bytes;
};

/* A plane of 1, 2 or 4 bits, from bit `from_bit` of the codes. Column 8i + c, input 2p + odd is
 * lane 2c + odd of vector i of pair p; words are gathered lane by lane, then put side by side. */
ALWAYS_INLINE void weave_words(const struct weaving *weaving, const int bits, int from_bit,
                               size_t plane) {
    const int pairs_a_word = 4 / bits;
    const uint32_t mask = (1u << bits) - 1;
    uint32_t words[TILE_LANES][CODES_AT_ONCE / 2];
    int in_chunk = weaving->pairs / pairs_a_word, count = in_chunk * weaving->chunk_count;
    for (int lane = 0; lane < TILE_LANES; lane++) {
        memset(words[lane], 0, (size_t)count * sizeof words[lane][0]);
        for (int i = 0; i < TILE_VECTORS; i++)
            for (int q = 0; q < pairs_a_word; q++)
                add_codes(weaving->codes[8 * i + lane / 2] + 2 * q + lane % 2, 2 * pairs_a_word,
                          count, from_bit, mask, 8 * (i / 2) + bits * (i % 2 + 2 * q), words[lane]);
    }
    for (int n = 0; n < count; n++) {
        uint8_t *out = weaving->chunk + (size_t)(n / in_chunk) * weaving->chunk_bytes + plane +
                       (size_t)(n % in_chunk) * TILE_LANES * sizeof words[0][0];
        for (int lane = 0; lane < TILE_LANES; lane++)
            memcpy(out + (size_t)lane * sizeof words[0][0], &words[lane][n], sizeof words[0][0]);
    }
}

static void weave_bytes(const struct weaving *weaving, size_t plane) {
    for (int t = 0; t < weaving->chunk_count; t++) {
        uint8_t *out = weaving->chunk + (size_t)t * weaving->chunk_bytes + plane;
        for (int p = t * weaving->pairs; p < (t + 1) * weaving->pairs; p++)
            for (int c = 0; c < PANEL_COLUMNS; c++, out += 2)
                memcpy(out, weaving->codes[c] + 2 * p, 2);
    }
}

static void weave_plane(const struct weaving *weaving, int bits, int from_bit, size_t plane) {
    if (bits == 8)
        weave_bytes(weaving, plane);
    else if (bits == 4)
        weave_words(weaving, 4, from_bit, plane);
    else if (bits == 2)
        weave_words(weaving, 2, from_bit, plane);
    else if (bits == 1)
        weave_words(weaving, 1, from_bit, plane);
}

static void put_scales(const struct tile_format *format, const struct tile_split *split, int column,
                       uint8_t *chunk) {
    struct tile_offsets at = tile_format_offsets(format);
    size_t c = (size_t)column;
    memcpy(chunk + c * sizeof split->scale, &split->scale, sizeof split->scale);
    if (format->has_min)
        memcpy(chunk + at.min + c * sizeof split->min, &split->min, sizeof split->min);
    if (!format->two_level)
        return;
    for (size_t g = 0; g < (size_t)(format->chunk / format->group); g++) {
        chunk[at.group_scale + g * PANEL_COLUMNS + c] = (uint8_t)split->group_scale[g];
        if (format->has_min)
            chunk[at.group_min + g * PANEL_COLUMNS + c] = split->group_min[g];
    }
}

/* One column's part of the chunks; columns behind the last output get zero weights. */
static void split_column(const struct weaving *weaving, const struct tile_format *format,
                         int column, const uint8_t *blocks, size_t block_bytes) {
    uint8_t *codes = weaving->codes[column];
    for (int t = 0; t < weaving->chunk_count; t++) {
        struct tile_split split = {.codes = codes + t * format->chunk};
        if (blocks != NULL)
            format->split(blocks + (size_t)t * block_bytes, &split);
        else
            memset(split.codes, 0, (size_t)format->chunk);
        put_scales(format, &split, column, weaving->chunk + (size_t)t * weaving->chunk_bytes);
    }
}

static void pack_codes(const struct tile *tile, const struct tensor *tensor, int block) {
    const struct tile_format *format = tile->format;
    struct tile_offsets at = tile_format_offsets(format);
    uint8_t codes[PANEL_COLUMNS][CODES_AT_ONCE];
    struct weaving weaving = {.codes = codes,
                              .pairs = format->chunk / 2,
                              .chunk = tile->bytes + (size_t)block * tile->block_bytes,
                              .chunk_bytes = tile->chunk_bytes};
    for (int k = 0; k < tile->in; k += CODES_AT_ONCE) {
        int rest = tile->in - k < CODES_AT_ONCE ? tile->in - k : CODES_AT_ONCE;
        weaving.chunk_count = rest / format->chunk;
        for (int c = 0; c < PANEL_COLUMNS; c++) {
            uint64_t row = (uint64_t)block * PANEL_COLUMNS + (uint64_t)c;
            size_t first = (size_t)(k / format->chunk) * tensor->type->block_bytes;
            const uint8_t *blocks =
                row < tensor->row_count ? tensor->bytes + row * tensor->row_bytes + first : NULL;
            split_column(&weaving, format, c, blocks, tensor->type->block_bytes);
        }
        weave_plane(&weaving, format->low_bits, 0, at.low);
        weave_plane(&weaving, format->high_bits, format->low_bits, at.high);
        weaving.chunk += (size_t)weaving.chunk_count * tile->chunk_bytes;
    }
}

/* Inputs [first, first + count) of every column. Floats keep their bits. */
static void weave_floats(const struct tile *tile, const struct tensor *tensor, int block,
                         size_t first, size_t count) {
    size_t size = (size_t)tile->format->low_bits / 8;
    uint8_t *out = tile->bytes + (size_t)block * tile->block_bytes;
    for (size_t c = 0; c < PANEL_COLUMNS; c++) {
        uint64_t row = (uint64_t)block * PANEL_COLUMNS + c;
        if (row >= tensor->row_count)
            break;
        const uint8_t *in = tensor->bytes + row * tensor->row_bytes;
        for (size_t k = first; k < first + count; k++)
            memcpy(out + ((k / 2 * PANEL_COLUMNS + c) * 2 + k % 2) * size, in + k * size, size);
    }
}

/* A few inputs at a time, so that what is written stays in cache; an odd row gets a zero behind it.
 */
static void pack_floats(const struct tile *tile, const struct tensor *tensor, int block) {
    memset(tile->bytes + (size_t)block * tile->block_bytes, 0, tile->block_bytes);
    for (int first = 0; first < tile->in; first += FLOATS_AT_ONCE) {
        int count = tile->in - first < FLOATS_AT_ONCE ? tile->in - first : FLOATS_AT_ONCE;
        weave_floats(tile, tensor, block, (size_t)first, (size_t)count);
    }
}

void tile_set_pack_block(const struct tile_set *set, const struct tensor *const *parts, int block) {
    struct tile_block place = tile_set_block(set, block);
    const struct tensor *tensor = parts[place.tile - set->tiles];
    if (place.tile->format->group > 0)
        pack_codes(place.tile, tensor, place.block);
    else
        pack_floats(place.tile, tensor, place.block);
}
