/* The bytes of a weight tile, for the kernels of this folder only.
 *
 * A column block holds PANEL_COLUMNS outputs as a sequence of chunks of `format->chunk` inputs. The
 * parts of a chunk, in order:
 * - uint16_t scale[64]: f16, as in the file (formats with codes)
 * - uint16_t min[64]: f16 (formats with a minimum)
 * - int8_t group_scale[groups][64]: the second level (two_level)
 * - uint8_t group_min[groups][64]: the second level with a minimum
 * - low plane, high plane: the codes
 *
 * Weight = (code + offset) × s + m, where s = scale, m = min on one level, and s = scale ×
 * group_scale, m = −(min × group_min) on two; a codebook maps the code first. All of it but the
 * last addition is exact in fp32, or rounds once where offset × s is folded into m.
 *
 * Planes are laid out in pairs of inputs and vectors of 16 lanes: lane j of vector i (0..7) of pair
 * p is column 8i + j/2 of input 2p + j%2. This is the order of a bf16 pair panel, so a 16-lane
 * machine decodes and stores without moving a lane; fp32 panels need one two-source shuffle a
 * vector.
 * - 8 bits and floats: element[pair][8][16]
 * - b = 1, 2 or 4 bits: uint32_t[pair / (4/b)][16]; vectors 2n and 2n+1 share byte n of lane j's
 *   word: vector i is at bit 8(i/2) + b × (i%2 + 2 × (p % (4/b)))
 *
 * So two masks part a pair into bytes, the high plane joins them there, and one byte shuffle widens
 * a vector. Every part of a chunk is a multiple of 64 bytes; a block begins 64-byte aligned. */
#ifndef CORE_KERNELS_TILE_LAYOUT_H
#define CORE_KERNELS_TILE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kernels/kernels.h"
#include "core/weights/quant_type.h"

/* Bits of the low and the high plane. */
enum tile_kind {
    TILE_2,
    TILE_2_1,
    TILE_4,
    TILE_4_1,
    TILE_4_2,
    TILE_4_CODEBOOK,
    TILE_8,
    TILE_F16,
    TILE_BF16,
    TILE_F32,
};

enum {
    TILE_LANES = 16,
    TILE_VECTORS = 8,           /* of 16 lanes in a pair of inputs */
    TILE_PREFETCH_BYTES = 8192, /* how far ahead of the decoder weights are asked for */
};

/* One file block's codes and scales, split apart. */
struct tile_split {
    uint8_t *codes; /* [chunk], given: low plane in the low bits, high plane above */
    uint16_t scale, min;
    int8_t group_scale[16];
    uint8_t group_min[16];
};

struct tile_format {
    enum quant_id id;
    enum tile_kind kind;
    int low_bits, high_bits; /* 16 or 32 low bits: floats */
    int chunk;               /* inputs in a chunk: the file's block, or one pair of floats */
    int group;               /* inputs sharing a scale; 0 for floats */
    bool two_level, has_min;
    int offset;
    uint8_t codebook[16]; /* TILE_4_CODEBOOK: what stands for a code */
    void (*split)(const uint8_t *block, struct tile_split *split);
};

struct tile {
    const struct tile_format *format;
    int in;             /* inputs as in the tensor; stored rounded up to even */
    int out;            /* real outputs */
    int block_count;    /* of PANEL_COLUMNS outputs */
    size_t chunk_bytes; /* of one block */
    size_t block_bytes;
    uint8_t *bytes; /* [block_count][block_bytes] */
};

/* Where the parts of a chunk begin. */
struct tile_offsets {
    size_t min, group_scale, group_min, low, high, end;
};

static inline struct tile_offsets tile_format_offsets(const struct tile_format *format) {
    struct tile_offsets at = {0};
    size_t groups = format->group > 0 ? (size_t)(format->chunk / format->group) : 0;
    size_t level = groups > 0 ? PANEL_COLUMNS * sizeof(uint16_t) : 0;
    at.min = level;
    at.group_scale = at.min + (format->has_min ? level : 0);
    at.group_min = at.group_scale + (format->two_level ? groups * PANEL_COLUMNS : 0);
    at.low = at.group_min + (format->two_level && format->has_min ? groups * PANEL_COLUMNS : 0);
    at.high = at.low + (size_t)(format->chunk * format->low_bits) * PANEL_COLUMNS / 8;
    at.end = at.high + (size_t)(format->chunk * format->high_bits) * PANEL_COLUMNS / 8;
    return at;
}

/* Bits of the planes of codes, constant where `kind` is. */
static inline int tile_kind_low_bits(enum tile_kind kind) {
    return kind == TILE_8 ? 8 : kind == TILE_2 || kind == TILE_2_1 ? 2 : 4;
}

static inline int tile_kind_high_bits(enum tile_kind kind) {
    return kind == TILE_4_2 ? 2 : kind == TILE_2_1 || kind == TILE_4_1 ? 1 : 0;
}

/* The chunk of block `block` that holds input k, k a multiple of the format's chunk. */
static inline const uint8_t *tile_chunk(const struct tile *tile, int block, int k) {
    return tile->bytes + (size_t)block * tile->block_bytes +
           (size_t)(k / tile->format->chunk) * tile->chunk_bytes;
}

/* Whether the format has codes that the int8 matmul can take as they are. */
static inline bool tile_format_has_int8(const struct tile_format *format) {
    return format->group > 0;
}

/* The row of a GGUF type; every type of quant_type.h has one. */
const struct tile_format *tile_format_find(enum quant_id id);

#endif
