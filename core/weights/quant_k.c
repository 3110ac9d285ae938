/* K types: 256 values, a 16-bit scale (and one for minimums) times small integer scales for each 16
 * or 32 values. The integer scale is multiplied into the fp16 scale first, then the quant: this
 * order is the format's, and makes the unpack exact. */
#include "core/weights/quant_k.h"

#include "core/weights/quant_load.h"

enum { SUPER_VALUES = 256 };
enum { Q2_BYTES = 84, Q3_BYTES = 110, Q4_BYTES = 144, Q5_BYTES = 176, Q6_BYTES = 210 };

/* scales[16] (low nibble scale, high nibble minimum), quants[64], f16 scale, f16 minimum. 32 bytes
 * of quants hold 128 values as four 2-bit planes. */
static void unpack_q2(const uint8_t *block, float *out) {
    const uint8_t *quants = block + 16;
    float scale = quant_load_f16(block + 80);
    float minimum = quant_load_f16(block + 82);
    for (int i = 0; i < SUPER_VALUES; i++) {
        int half = i / 128;
        int plane = i % 128 / 32;
        uint8_t packed = block[i / 16];
        int quant = quants[half * 32 + i % 32] >> (2 * plane) & 3;
        float d = scale * (float)(packed & 15);
        float m = minimum * (float)(packed >> 4);
        out[i] = d * (float)quant - m;
    }
}

void quant_k_q2(const void *blocks, size_t block_count, float *out) {
    for (size_t i = 0; i < block_count; i++)
        unpack_q2((const uint8_t *)blocks + i * Q2_BYTES, out + i * SUPER_VALUES);
}

/* Sixteen 6-bit scales: low nibbles in 8 bytes, high pairs in 4, offset 32. */
static void unpack_q3_scales(const uint8_t *packed, int8_t scales[16]) {
    for (int i = 0; i < 16; i++) {
        int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
        int high = packed[8 + i % 4] >> (2 * (i / 4)) & 3;
        scales[i] = (int8_t)((low | high << 4) - 32);
    }
}

/* hmask[32], quants[64], scales[12], f16 scale. A clear mask bit means 4 less; its bit number
 * advances every 32 values. */
static void unpack_q3(const uint8_t *block, float *out) {
    const uint8_t *quants = block + 32;
    float scale = quant_load_f16(block + 108);
    int8_t scales[16];
    unpack_q3_scales(block + 96, scales);
    for (int i = 0; i < SUPER_VALUES; i++) {
        int plane = i % 128 / 32;
        int low = quants[i / 128 * 32 + i % 32] >> (2 * plane) & 3;
        int high = block[i % 32] >> (i / 32) & 1;
        float d = scale * (float)scales[i / 16];
        out[i] = d * (float)(low - (high ? 0 : 4));
    }
}

void quant_k_q3(const void *blocks, size_t block_count, float *out) {
    for (size_t i = 0; i < block_count; i++)
        unpack_q3((const uint8_t *)blocks + i * Q3_BYTES, out + i * SUPER_VALUES);
}

/* Eight 6-bit (scale, minimum) pairs in 12 bytes. */
static void unpack_pairs(const uint8_t *packed, uint8_t scales[8], uint8_t minimums[8]) {
    for (int i = 0; i < 4; i++) {
        scales[i] = packed[i] & 63;
        minimums[i] = packed[i + 4] & 63;
        scales[i + 4] = (uint8_t)((packed[i + 8] & 15) | (packed[i] >> 6) << 4);
        minimums[i + 4] = (uint8_t)((packed[i + 8] >> 4) | (packed[i + 4] >> 6) << 4);
    }
}

/* One Q4_K or Q5_K block: f16 scale, f16 minimum, scales[12], (Q5_K: high[32],) nibbles[128]. 32
 * bytes of nibbles hold 64 values, low halves first; bit i of high[] belongs to the i-th 32 values.
 */
static void unpack_q4_or_q5(const uint8_t *block, const uint8_t *high, const uint8_t *nibbles,
                            float *out) {
    float scale = quant_load_f16(block);
    float minimum = quant_load_f16(block + 2);
    uint8_t scales[8];
    uint8_t minimums[8];
    unpack_pairs(block + 4, scales, minimums);
    for (int group = 0; group < 8; group++) {
        float d = scale * (float)scales[group];
        float m = minimum * (float)minimums[group];
        for (int j = 0; j < 32; j++) {
            int quant = nibbles[group / 2 * 32 + j] >> (group % 2 * 4) & 15;
            if (high)
                quant |= (high[j] >> group & 1) << 4;
            out[group * 32 + j] = d * (float)quant - m;
        }
    }
}

void quant_k_q4(const void *blocks, size_t block_count, float *out) {
    for (size_t i = 0; i < block_count; i++) {
        const uint8_t *block = (const uint8_t *)blocks + i * Q4_BYTES;
        unpack_q4_or_q5(block, NULL, block + 16, out + i * SUPER_VALUES);
    }
}

void quant_k_q5(const void *blocks, size_t block_count, float *out) {
    for (size_t i = 0; i < block_count; i++) {
        const uint8_t *block = (const uint8_t *)blocks + i * Q5_BYTES;
        unpack_q4_or_q5(block, block + 16, block + 48, out + i * SUPER_VALUES);
    }
}

/* low[128], high[64], scales[16] signed, f16 scale. Each half of 128 values is four runs of 32:
 * their nibbles are low[l] low, low[l + 32] low, low[l] high, low[l + 32] high, and high[l] gives
 * run r its bits 2r and 2r + 1. */
static void unpack_q6(const uint8_t *block, float *out) {
    float scale = quant_load_f16(block + 208);
    for (int i = 0; i < SUPER_VALUES; i++) {
        int half = i / 128;
        int run = i % 128 / 32;
        const uint8_t *low = block + half * 64;
        const uint8_t *high = block + 128 + half * 32;
        int quant = low[run % 2 * 32 + i % 32] >> (run / 2 * 4) & 15;
        quant |= (high[i % 32] >> (2 * run) & 3) << 4;
        float d = scale * (float)(int8_t)block[192 + i / 16];
        out[i] = d * (float)(quant - 32);
    }
}

void quant_k_q6(const void *blocks, size_t block_count, float *out) {
    for (size_t i = 0; i < block_count; i++)
        unpack_q6((const uint8_t *)blocks + i * Q6_BYTES, out + i * SUPER_VALUES);
}
