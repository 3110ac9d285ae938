/* GGUF's weight blocks: eight neighbouring values of a block as fp32, the same products and sums
 * as core/weights/quant_*.c, value for value. `at` is the first value's place in the block, a
 * multiple of 8; blocks are 2-byte aligned, so wider reads are made of halves. */
#ifndef GPU_KERNELS_BLOCK_FORMATS_CUH
#define GPU_KERNELS_BLOCK_FORMATS_CUH

#include "gpu/kernels/numbers.cuh"

__device__ __forceinline__ uint32_t block_u16(const uint8_t *at) {
    return *(const uint16_t *)at;
}

__device__ __forceinline__ uint32_t block_u32(const uint8_t *at) {
    return block_u16(at) | block_u16(at + 2) << 16;
}

__device__ __forceinline__ float block_f16(const uint8_t *at) {
    return ptx_f16_to_f32((uint16_t)block_u16(at));
}

/* Eight bytes in two words; each 4-bit half, or other bits, of all bytes at once: byte i of the
 * result belongs to value i. */
struct eight {
    uint32_t word[2];
};

__device__ __forceinline__ eight eight_load(const uint8_t *at) {
    return {{block_u32(at), block_u32(at + 4)}};
}

__device__ __forceinline__ eight eight_bits(eight bytes, int shift, uint32_t mask) {
    return {{bytes.word[0] >> shift & mask, bytes.word[1] >> shift & mask}};
}

__device__ __forceinline__ int eight_at(eight bytes, int i) {
    return (int)(bytes.word[i / 4] >> (i % 4 * 8) & 255u);
}

/* bytes |= bit i of `bits` at position `place` of byte i. */
__device__ __forceinline__ eight eight_or_bits(eight bytes, uint32_t bits, int place) {
#pragma unroll
    for (int i = 0; i < 8; i++)
        bytes.word[i / 4] |= (bits >> i & 1u) << (i % 4 * 8 + place);
    return bytes;
}

__device__ __forceinline__ eight eight_or(eight a, eight b, int shift) {
    return {{a.word[0] | b.word[0] << shift, a.word[1] | b.word[1] << shift}};
}

/* out = scale × (quant − offset) [+ minimum], each operation rounded by itself. */
__device__ __forceinline__ void eight_scale(eight quants, int offset, float scale, float *out) {
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = scale * (float)(eight_at(quants, i) - offset);
}

__device__ __forceinline__ void eight_scale_add(eight quants, float scale, float add, float *out) {
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = __fadd_rn(__fmul_rn(scale, (float)eight_at(quants, i)), add);
}

/* Where the 32-value types keep their parts. */
template <int HIGH_BITS, int NIBBLES>
__device__ __forceinline__ eight simple_quants(const uint8_t *block, int at) {
    eight quants = eight_bits(eight_load(block + NIBBLES + at % 16), at / 16 * 4, 0x0f0f0f0fu);
    return HIGH_BITS ? eight_or_bits(quants, block_u32(block + HIGH_BITS) >> at, 4) : quants;
}

/* Scale and minimum `group` of the eight in Q4_K's and Q5_K's 12 bytes. */
__device__ __forceinline__ int k_pair(const uint8_t *packed, int group, bool minimum) {
    int low = packed[group % 4 + (minimum ? 4 : 0)];
    if (group < 4)
        return low & 63;
    int rest = packed[group + 4];
    return (minimum ? rest >> 4 : rest & 15) | low >> 6 << 4;
}

/* block_decode<type>: out[i] = value at + i. VALUES and BYTES of a block. */
template <int TYPE> struct block_format;

#define BLOCK_FORMAT(TYPE, BLOCK_VALUES, BLOCK_BYTES)                                            \
    template <> struct block_format<TYPE> {                                                      \
        static constexpr int VALUES = BLOCK_VALUES, BYTES = BLOCK_BYTES;                         \
        static __device__ __forceinline__ void decode(const uint8_t *block, int at, float *out); \
    };                                                                                           \
    __device__ __forceinline__ void block_format<TYPE>::decode(const uint8_t *block, int at,     \
                                                               float *out)

BLOCK_FORMAT(WEIGHT_F32, 8, 32) {
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = ((const float *)block)[at + i];
}

BLOCK_FORMAT(WEIGHT_F16, 8, 16) {
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = block_f16(block + 2 * (at + i));
}

BLOCK_FORMAT(WEIGHT_BF16, 8, 16) {
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = numbers_bf16_to_f32((uint16_t)block_u16(block + 2 * (at + i)));
}

BLOCK_FORMAT(WEIGHT_Q4_0, 32, 18) {
    eight_scale(simple_quants<0, 2>(block, at), 8, block_f16(block), out);
}

BLOCK_FORMAT(WEIGHT_Q4_1, 32, 20) {
    eight_scale_add(simple_quants<0, 4>(block, at), block_f16(block), block_f16(block + 2), out);
}

BLOCK_FORMAT(WEIGHT_Q5_0, 32, 22) {
    eight_scale(simple_quants<2, 6>(block, at), 16, block_f16(block), out);
}

BLOCK_FORMAT(WEIGHT_Q5_1, 32, 24) {
    eight_scale_add(simple_quants<4, 8>(block, at), block_f16(block), block_f16(block + 2), out);
}

BLOCK_FORMAT(WEIGHT_Q8_0, 32, 34) {
    eight quants = eight_load(block + 2 + at);
    float scale = block_f16(block);
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = scale * (float)(int8_t)eight_at(quants, i);
}

BLOCK_FORMAT(WEIGHT_Q2_K, 256, 84) {
    int packed = block[at / 16];
    eight quants = eight_bits(eight_load(block + 16 + at / 128 * 32 + at % 32), at % 128 / 32 * 2,
                              0x03030303u);
    eight_scale_add(quants, block_f16(block + 80) * (float)(packed & 15),
                    -(block_f16(block + 82) * (float)(packed >> 4)), out);
}

BLOCK_FORMAT(WEIGHT_Q3_K, 256, 110) {
    const uint8_t *packed = block + 96;
    int i = at / 16;
    int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
    int scale = (low | (packed[8 + i % 4] >> (2 * (i / 4)) & 3) << 4) - 32;
    eight quants = eight_bits(eight_load(block + 32 + at / 128 * 32 + at % 32), at % 128 / 32 * 2,
                              0x03030303u);
    eight high = eight_bits(eight_load(block + at % 32), at / 32, 0x01010101u);
    eight_scale(eight_or(quants, high, 2), 4, block_f16(block + 108) * (float)scale, out);
}

BLOCK_FORMAT(WEIGHT_Q4_K, 256, 144) {
    int group = at / 32;
    eight quants =
        eight_bits(eight_load(block + 16 + group / 2 * 32 + at % 32), group % 2 * 4, 0x0f0f0f0fu);
    eight_scale_add(quants, block_f16(block) * (float)k_pair(block + 4, group, false),
                    -(block_f16(block + 2) * (float)k_pair(block + 4, group, true)), out);
}

BLOCK_FORMAT(WEIGHT_Q5_K, 256, 176) {
    int group = at / 32;
    eight quants =
        eight_bits(eight_load(block + 48 + group / 2 * 32 + at % 32), group % 2 * 4, 0x0f0f0f0fu);
    eight high = eight_bits(eight_load(block + 16 + at % 32), group, 0x01010101u);
    eight_scale_add(eight_or(quants, high, 4),
                    block_f16(block) * (float)k_pair(block + 4, group, false),
                    -(block_f16(block + 2) * (float)k_pair(block + 4, group, true)), out);
}

BLOCK_FORMAT(WEIGHT_Q6_K, 256, 210) {
    int half = at / 128, run = at % 128 / 32;
    eight low = eight_bits(eight_load(block + half * 64 + run % 2 * 32 + at % 32), run / 2 * 4,
                           0x0f0f0f0fu);
    eight high = eight_bits(eight_load(block + 128 + half * 32 + at % 32), 2 * run, 0x03030303u);
    float scale = block_f16(block + 208) * (float)(int8_t)block[192 + at / 16];
    eight_scale(eight_or(low, high, 4), 32, scale, out);
}

/* What the sixteen nibbles of the IQ4 types stand for, four to a word. */
__device__ __forceinline__ int iq4_step(int nibble) {
    constexpr uint32_t steps[4] = {0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u};
    uint32_t word =
        nibble < 8 ? (nibble < 4 ? steps[0] : steps[1]) : (nibble < 12 ? steps[2] : steps[3]);
    return (int8_t)(word >> (nibble % 4 * 8) & 255u);
}

__device__ __forceinline__ void iq4_scale(eight nibbles, float scale, float *out) {
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = scale * (float)iq4_step(eight_at(nibbles, i));
}

BLOCK_FORMAT(WEIGHT_IQ4_NL, 32, 18) {
    iq4_scale(simple_quants<0, 2>(block, at), block_f16(block), out);
}

BLOCK_FORMAT(WEIGHT_IQ4_XS, 256, 136) {
    int group = at / 32;
    int low = block[4 + group / 2] >> (group % 2 * 4) & 15;
    int scale = (low | ((int)block_u16(block + 2) >> (2 * group) & 3) << 4) - 32;
    eight nibbles =
        eight_bits(eight_load(block + 8 + group * 16 + at % 16), at % 32 / 16 * 4, 0x0f0f0f0fu);
    iq4_scale(nibbles, block_f16(block) * (float)scale, out);
}

#undef BLOCK_FORMAT

/* Values [column, column + 8) of a row of blocks. */
template <int TYPE>
__device__ __forceinline__ void block_decode_row(const uint8_t *row, int column, float *out) {
    constexpr int VALUES = block_format<TYPE>::VALUES;
    block_format<TYPE>::decode(row + (int64_t)(column / VALUES) * block_format<TYPE>::BYTES,
                               column % VALUES, out);
}

/* The same by type at run time. */
__device__ __forceinline__ void block_decode_any(int type, const uint8_t *row, int column,
                                                 float *out) {
#define BLOCK_CASE(TYPE)                          \
    case TYPE:                                    \
        block_decode_row<TYPE>(row, column, out); \
        break;
    switch (type) {
        BLOCK_CASE(WEIGHT_F32)
        BLOCK_CASE(WEIGHT_F16)
        BLOCK_CASE(WEIGHT_BF16)
        BLOCK_CASE(WEIGHT_Q4_0)
        BLOCK_CASE(WEIGHT_Q4_1)
        BLOCK_CASE(WEIGHT_Q5_0)
        BLOCK_CASE(WEIGHT_Q5_1)
        BLOCK_CASE(WEIGHT_Q8_0)
        BLOCK_CASE(WEIGHT_Q2_K)
        BLOCK_CASE(WEIGHT_Q3_K)
        BLOCK_CASE(WEIGHT_Q4_K)
        BLOCK_CASE(WEIGHT_Q5_K)
        BLOCK_CASE(WEIGHT_Q6_K)
        BLOCK_CASE(WEIGHT_IQ4_NL)
        BLOCK_CASE(WEIGHT_IQ4_XS)
    }
#undef BLOCK_CASE
}

#endif
