/* IQ4_NL: 32 values, f16 scale, nibbles as in Q4_0. IQ4_XS: 256 values, f16 scale, eight 6-bit
 * scales (offset 32) split into a 16-bit word of high pairs and 4 bytes of low nibbles. Both index
 * one table. */
#include "core/weights/quant_iq4.h"

#include "core/weights/quant_load.h"

/* What the sixteen nibbles stand for, before the scale. */
static const int8_t steps[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};

enum { NL_BYTES = 18, NL_VALUES = 32, XS_BYTES = 136, XS_VALUES = 256 };

/* 16 bytes hold 32 values: low nibbles first. */
static void unpack_table(const uint8_t *nibbles, float scale, float *out) {
    for (int j = 0; j < 16; j++) {
        out[j] = scale * (float)steps[nibbles[j] & 15];
        out[j + 16] = scale * (float)steps[nibbles[j] >> 4];
    }
}

void quant_iq4_nl(const void *blocks, size_t block_count, float *out) {
    for (size_t i = 0; i < block_count; i++) {
        const uint8_t *block = (const uint8_t *)blocks + i * NL_BYTES;
        unpack_table(block + 2, quant_load_f16(block), out + i * NL_VALUES);
    }
}

void quant_iq4_xs(const void *blocks, size_t block_count, float *out) {
    for (size_t i = 0; i < block_count; i++) {
        const uint8_t *block = (const uint8_t *)blocks + i * XS_BYTES;
        float scale = quant_load_f16(block);
        uint16_t high = quant_load_u16(block + 2);
        for (int group = 0; group < 8; group++) {
            int low = block[4 + group / 2] >> (group % 2 * 4) & 15;
            int integer = (low | (high >> (2 * group) & 3) << 4) - 32;
            unpack_table(block + 8 + group * 16, scale * (float)integer,
                         out + i * XS_VALUES + group * 32);
        }
    }
}
