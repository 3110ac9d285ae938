/* Decoding of weight tiles in plain C, shared by the fp32 and the int8 kernels: what a code stands
 * for, before its scale, and the scales themselves. */
#ifndef CORE_KERNELS_UNPACK_SCALAR_H
#define CORE_KERNELS_UNPACK_SCALAR_H

#include <string.h>

#include "core/kernels/tile_layout.h"
#include "core/kernels/unroll.h"

/* Scale and minimum of every column for one group of a chunk. */
static inline void unpack_scalar_load_group(const struct tile_format *format, const uint8_t *chunk,
                                            int group, float *scales, float *mins) {
    struct tile_offsets at = tile_format_offsets(format);
    for (int c = 0; c < PANEL_COLUMNS; c++) {
        uint16_t scale, min = 0;
        memcpy(&scale, chunk + 2 * c, sizeof scale);
        if (format->has_min)
            memcpy(&min, chunk + at.min + 2 * c, sizeof min);
        scales[c] = quant_type_f16_to_f32(scale);
        mins[c] = quant_type_f16_to_f32(min);
        if (!format->two_level)
            continue;
        scales[c] *= (float)(int8_t)chunk[at.group_scale + (size_t)(group * PANEL_COLUMNS + c)];
        if (format->has_min)
            mins[c] *= -(float)chunk[at.group_min + (size_t)(group * PANEL_COLUMNS + c)];
    }
}

/* The word of lane j, shifted so that vector i's code is at bit 8(i/2) + bits × (i%2). */
static inline uint32_t unpack_scalar_plane_word(const uint8_t *plane, int bits, int pair, int j) {
    int pairs_a_word = 4 / bits;
    uint32_t word;
    memcpy(&word, plane + (pair / pairs_a_word * TILE_LANES + j) * (int)sizeof word, sizeof word);
    return word >> 2 * bits * (pair % pairs_a_word);
}

/* Codes plus offset of a pair; values: [2 inputs][64]. */
ALWAYS_INLINE void unpack_scalar_decode_pair(const struct tile_format *format, enum tile_kind kind,
                                             const uint8_t *low, const uint8_t *high, int pair,
                                             float *values) {
    const int low_bits = tile_kind_low_bits(kind), high_bits = tile_kind_high_bits(kind);
    uint32_t low_mask = (1u << low_bits) - 1, high_mask = (1u << high_bits) - 1;
    for (int j = 0; j < TILE_LANES; j++) {
        float *lane = values + j % 2 * PANEL_COLUMNS + j / 2;
        uint32_t low_word = unpack_scalar_plane_word(low, low_bits, pair, j);
        uint32_t high_word = high_bits > 0 ? unpack_scalar_plane_word(high, high_bits, pair, j) : 0;
        for (int i = 0; i < TILE_VECTORS; i++) {
            uint32_t code = low_word >> (8 * (i / 2) + low_bits * (i % 2)) & low_mask;
            code |= (high_word >> (8 * (i / 2) + high_bits * (i % 2)) & high_mask) << low_bits;
            if (kind == TILE_4_CODEBOOK)
                code = format->codebook[code];
            lane[8 * i] = (float)((int)code + format->offset);
        }
    }
}

static inline void unpack_scalar_decode_bytes(const uint8_t *low, int pair, float *values) {
    const int8_t *codes = (const int8_t *)low + pair * TILE_VECTORS * TILE_LANES;
    for (int c = 0; c < PANEL_COLUMNS; c++) {
        values[c] = codes[2 * c];
        values[PANEL_COLUMNS + c] = codes[2 * c + 1];
    }
}

#define UNPACK_SCALAR_CASE(KIND)                                          \
    case KIND:                                                            \
        unpack_scalar_decode_pair(format, KIND, low, high, pair, values); \
        break;

static inline void unpack_scalar_codes(const struct tile_format *format, const uint8_t *low,
                                       const uint8_t *high, int pair, float *values) {
    switch (format->kind) {
        UNPACK_SCALAR_CASE(TILE_2)
        UNPACK_SCALAR_CASE(TILE_2_1)
        UNPACK_SCALAR_CASE(TILE_4)
        UNPACK_SCALAR_CASE(TILE_4_1)
        UNPACK_SCALAR_CASE(TILE_4_2)
        UNPACK_SCALAR_CASE(TILE_4_CODEBOOK)
    case TILE_8:
    case TILE_F16:
    case TILE_BF16:
    case TILE_F32:
        unpack_scalar_decode_bytes(low, pair, values);
        break;
    }
}

#undef UNPACK_SCALAR_CASE

#endif
