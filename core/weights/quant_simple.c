/* Plain floats and the 32-value block types. In the 4- and 5-bit types byte j of the nibbles holds
 * value j (low half) and value j + 16 (high half); bit i of the 5-bit types' high-bit word belongs
 * to value i. The expressions fix the rounding: one multiplication, then at most one addition. */
#include "core/weights/quant_simple.h"

#include "core/weights/quant_load.h"

enum { BLOCK_VALUES = 32, HALF_VALUES = 16 };

/* The field offsets of one 32-value type. */
struct block_layout {
    size_t bytes;
    size_t minimum;   /* 0: none */
    size_t high_bits; /* 0: none */
    size_t nibbles;
    int offset; /* subtracted from the quant before scaling */
};

void quant_simple_f32(const void *blocks, size_t block_count, float *out) {
    memcpy(out, blocks, block_count * sizeof *out);
}

void quant_simple_f16(const void *blocks, size_t block_count, float *out) {
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < block_count; i++)
        out[i] = quant_load_f16(bytes + 2 * i);
}

void quant_simple_bf16(const void *blocks, size_t block_count, float *out) {
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < block_count; i++)
        out[i] = quant_type_bf16_to_f32(quant_load_u16(bytes + 2 * i));
}

static void unpack_nibbles(const uint8_t *block, const struct block_layout *layout, float *out) {
    const uint8_t *nibbles = block + layout->nibbles;
    uint32_t high = layout->high_bits ? quant_load_u32(block + layout->high_bits) : 0;
    float scale = quant_load_f16(block);
    int quants[BLOCK_VALUES];
    for (int j = 0; j < HALF_VALUES; j++) {
        int low_bit = (int)(high >> j) & 1;
        int high_bit = (int)(high >> (j + HALF_VALUES)) & 1;
        quants[j] = ((nibbles[j] & 15) | low_bit << 4) - layout->offset;
        quants[j + HALF_VALUES] = ((nibbles[j] >> 4) | high_bit << 4) - layout->offset;
    }
    if (!layout->minimum) {
        for (int j = 0; j < BLOCK_VALUES; j++)
            out[j] = scale * (float)quants[j];
        return;
    }
    float minimum = quant_load_f16(block + layout->minimum);
    for (int j = 0; j < BLOCK_VALUES; j++)
        out[j] = scale * (float)quants[j] + minimum;
}

static void unpack_blocks(const void *blocks, size_t block_count, float *out,
                          const struct block_layout *layout) {
    const uint8_t *block = blocks;
    for (size_t i = 0; i < block_count; i++)
        unpack_nibbles(block + i * layout->bytes, layout, out + i * BLOCK_VALUES);
}

void quant_simple_q4_0(const void *blocks, size_t block_count, float *out) {
    static const struct block_layout layout = {.bytes = 18, .nibbles = 2, .offset = 8};
    unpack_blocks(blocks, block_count, out, &layout);
}

void quant_simple_q4_1(const void *blocks, size_t block_count, float *out) {
    static const struct block_layout layout = {.bytes = 20, .minimum = 2, .nibbles = 4};
    unpack_blocks(blocks, block_count, out, &layout);
}

void quant_simple_q5_0(const void *blocks, size_t block_count, float *out) {
    static const struct block_layout layout = {
        .bytes = 22, .high_bits = 2, .nibbles = 6, .offset = 16};
    unpack_blocks(blocks, block_count, out, &layout);
}

void quant_simple_q5_1(const void *blocks, size_t block_count, float *out) {
    static const struct block_layout layout = {
        .bytes = 24, .minimum = 2, .high_bits = 4, .nibbles = 8};
    unpack_blocks(blocks, block_count, out, &layout);
}

void quant_simple_q8_0(const void *blocks, size_t block_count, float *out) {
    enum { BLOCK_BYTES = 34 };
    for (size_t i = 0; i < block_count; i++) {
        const uint8_t *block = (const uint8_t *)blocks + i * BLOCK_BYTES;
        float scale = quant_load_f16(block);
        for (int j = 0; j < BLOCK_VALUES; j++)
            out[i * BLOCK_VALUES + j] = scale * (float)(int8_t)block[2 + j];
    }
}
