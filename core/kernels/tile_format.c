/* One row a GGUF type: which planes its codes go to, what a code means, and how a file block is
 * split into codes and scales. The block layouts are ggml's quantisation formats, read byte by byte
 * because blocks are not aligned. */
#include "core/kernels/tile_layout.h"

#include <string.h>

static uint16_t read_u16(const uint8_t *bytes) {
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

/* 16 bytes hold 32 codes: low nibbles first, then high nibbles. */
static void split_nibbles(const uint8_t *bytes, int count, uint8_t *codes) {
    for (int j = 0; j < count; j++) {
        codes[j] = bytes[j] & 15;
        codes[j + count] = bytes[j] >> 4;
    }
}

static void split_q4_0(const uint8_t *block, struct tile_split *split) {
    split->scale = read_u16(block);
    split_nibbles(block + 2, 16, split->codes);
}

static void split_q4_1(const uint8_t *block, struct tile_split *split) {
    split->scale = read_u16(block);
    split->min = read_u16(block + 2);
    split_nibbles(block + 4, 16, split->codes);
}

/* Bit plane `bit` of 32 codes, from bit `from` of each of 32 bytes. */
static void add_bits(const uint8_t *bytes, int from, int bit, uint8_t *codes) {
    for (int j = 0; j < 32; j++)
        codes[j] = (uint8_t)(codes[j] | (bytes[j] >> from & 1) << bit);
}

/* Eight bits to the fifth bits of eight codes: copies of the byte, masked to one bit each, carry
 * into their top bits. */
static void add_fifth_bits(const uint8_t *bits, uint8_t *codes) {
    for (int n = 0; n < 4; n++, codes += 8) {
        uint64_t eight, copies = bits[n] * 0x0101010101010101u;
        uint64_t tops = (copies & 0x8040201008040201u) + 0x7f7f7f7f7f7f7f7fu;
        memcpy(&eight, codes, sizeof eight);
        eight |= tops >> 3 & 0x1010101010101010u;
        memcpy(codes, &eight, sizeof eight);
    }
}

static void split_q5_0(const uint8_t *block, struct tile_split *split) {
    split->scale = read_u16(block);
    split_nibbles(block + 6, 16, split->codes);
    add_fifth_bits(block + 2, split->codes);
}

static void split_q5_1(const uint8_t *block, struct tile_split *split) {
    split->scale = read_u16(block);
    split->min = read_u16(block + 2);
    split_nibbles(block + 8, 16, split->codes);
    add_fifth_bits(block + 4, split->codes);
}

static void split_q8_0(const uint8_t *block, struct tile_split *split) {
    split->scale = read_u16(block);
    memcpy(split->codes, block + 2, 32);
}

/* 2-bit planes of Q2_K and Q3_K: 32 bytes hold 128 values, four shifts of 32. */
static void split_two_bits(const uint8_t *bytes, uint8_t *codes) {
    for (int n = 0; n < 8; n++)
        for (int j = 0; j < 32; j++)
            codes[32 * n + j] = bytes[n / 4 * 32 + j] >> n % 4 * 2 & 3;
}

static void split_q2_k(const uint8_t *block, struct tile_split *split) {
    for (int g = 0; g < 16; g++) {
        split->group_scale[g] = (int8_t)(block[g] & 15);
        split->group_min[g] = block[g] >> 4;
    }
    split_two_bits(block + 16, split->codes);
    split->scale = read_u16(block + 80);
    split->min = read_u16(block + 82);
}

static void split_q3_k(const uint8_t *block, struct tile_split *split) {
    const uint8_t *mask = block, *scales = block + 96;
    split_two_bits(block + 32, split->codes);
    for (int n = 0; n < 8; n++)
        add_bits(mask, n, 2, split->codes + 32 * n);
    for (int g = 0; g < 16; g++) {
        int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
        int high = (scales[8 + g % 4] >> g / 4 * 2) & 3;
        split->group_scale[g] = (int8_t)((low | high << 4) - 32);
    }
    split->scale = read_u16(block + 108);
}

/* The 12 bytes of eight 6-bit scales and eight 6-bit minima of Q4_K and Q5_K. */
static void split_six_bit_scales(const uint8_t *bytes, struct tile_split *split) {
    for (int g = 0; g < 4; g++) {
        split->group_scale[g] = (int8_t)(bytes[g] & 63);
        split->group_min[g] = bytes[g + 4] & 63;
        split->group_scale[g + 4] = (int8_t)((bytes[g + 8] & 15) | bytes[g] >> 6 << 4);
        split->group_min[g + 4] = (uint8_t)(bytes[g + 8] >> 4 | bytes[g + 4] >> 6 << 4);
    }
}

static void split_q4_k(const uint8_t *block, struct tile_split *split) {
    split->scale = read_u16(block);
    split->min = read_u16(block + 2);
    split_six_bit_scales(block + 4, split);
    for (int i = 0; i < 4; i++)
        split_nibbles(block + 16 + 32 * i, 32, split->codes + 64 * i);
}

static void split_q5_k(const uint8_t *block, struct tile_split *split) {
    const uint8_t *high = block + 16;
    split->scale = read_u16(block);
    split->min = read_u16(block + 2);
    split_six_bit_scales(block + 4, split);
    for (int i = 0; i < 4; i++)
        split_nibbles(block + 48 + 32 * i, 32, split->codes + 64 * i);
    for (int n = 0; n < 8; n++)
        add_bits(high, n, 4, split->codes + 32 * n);
}

static void split_q6_k(const uint8_t *block, struct tile_split *split) {
    for (int n = 0; n < 8; n++) {
        const uint8_t *low = block + n / 4 * 64 + n % 2 * 32, *high = block + 128 + n / 4 * 32;
        for (int j = 0; j < 32; j++)
            split->codes[32 * n + j] =
                (uint8_t)((low[j] >> n % 4 / 2 * 4 & 15) | (high[j] >> n % 4 * 2 & 3) << 4);
    }
    memcpy(split->group_scale, block + 192, 16);
    split->scale = read_u16(block + 208);
}

static void split_iq4_xs(const uint8_t *block, struct tile_split *split) {
    unsigned scales_high = read_u16(block + 2);
    split->scale = read_u16(block);
    for (int g = 0; g < 8; g++) {
        int low = block[4 + g / 2] >> g % 2 * 4 & 15;
        int high = (int)(scales_high >> 2 * g & 3);
        split->group_scale[g] = (int8_t)((low | high << 4) - 32);
        split_nibbles(block + 8 + 16 * g, 16, split->codes + 32 * g);
    }
}

/* The 4-bit codebook of IQ4_NL and IQ4_XS: −127 −104 −83 −65 −49 −35 −22 −10 1 13 25 38 53 69 89
 * 113, plus 128. */
#define IQ4_CODEBOOK \
    { 1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241 }

static const struct tile_format formats[] = {
    {.id = QUANT_F32, .kind = TILE_F32, .low_bits = 32, .chunk = 2},
    {.id = QUANT_F16, .kind = TILE_F16, .low_bits = 16, .chunk = 2},
    {.id = QUANT_BF16, .kind = TILE_BF16, .low_bits = 16, .chunk = 2},
    {.id = QUANT_Q4_0,
     .kind = TILE_4,
     .low_bits = 4,
     .chunk = 32,
     .group = 32,
     .offset = -8,
     .split = split_q4_0},
    {.id = QUANT_Q4_1,
     .kind = TILE_4,
     .low_bits = 4,
     .chunk = 32,
     .group = 32,
     .has_min = true,
     .split = split_q4_1},
    {.id = QUANT_Q5_0,
     .kind = TILE_4_1,
     .low_bits = 4,
     .high_bits = 1,
     .chunk = 32,
     .group = 32,
     .offset = -16,
     .split = split_q5_0},
    {.id = QUANT_Q5_1,
     .kind = TILE_4_1,
     .low_bits = 4,
     .high_bits = 1,
     .chunk = 32,
     .group = 32,
     .has_min = true,
     .split = split_q5_1},
    {.id = QUANT_Q8_0,
     .kind = TILE_8,
     .low_bits = 8,
     .chunk = 32,
     .group = 32,
     .split = split_q8_0},
    {.id = QUANT_Q2_K,
     .kind = TILE_2,
     .low_bits = 2,
     .chunk = 256,
     .group = 16,
     .two_level = true,
     .has_min = true,
     .split = split_q2_k},
    {.id = QUANT_Q3_K,
     .kind = TILE_2_1,
     .low_bits = 2,
     .high_bits = 1,
     .chunk = 256,
     .group = 16,
     .two_level = true,
     .offset = -4,
     .split = split_q3_k},
    {.id = QUANT_Q4_K,
     .kind = TILE_4,
     .low_bits = 4,
     .chunk = 256,
     .group = 32,
     .two_level = true,
     .has_min = true,
     .split = split_q4_k},
    {.id = QUANT_Q5_K,
     .kind = TILE_4_1,
     .low_bits = 4,
     .high_bits = 1,
     .chunk = 256,
     .group = 32,
     .two_level = true,
     .has_min = true,
     .split = split_q5_k},
    {.id = QUANT_Q6_K,
     .kind = TILE_4_2,
     .low_bits = 4,
     .high_bits = 2,
     .chunk = 256,
     .group = 16,
     .two_level = true,
     .offset = -32,
     .split = split_q6_k},
    {.id = QUANT_IQ4_NL,
     .kind = TILE_4_CODEBOOK,
     .low_bits = 4,
     .chunk = 32,
     .group = 32,
     .offset = -128,
     .codebook = IQ4_CODEBOOK,
     .split = split_q4_0},
    {.id = QUANT_IQ4_XS,
     .kind = TILE_4_CODEBOOK,
     .low_bits = 4,
     .chunk = 256,
     .group = 32,
     .two_level = true,
     .offset = -128,
     .codebook = IQ4_CODEBOOK,
     .split = split_iq4_xs},
};

const struct tile_format *tile_format_find(enum quant_id id) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].id == id)
            return &formats[i];
    return NULL;
}
