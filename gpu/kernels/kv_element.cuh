/* The 8-bit elements of KV pages. e4m3 is done in integers on every device, so that pages hold the
 * same bytes whether or not it converts by itself (from 8.9). */
#ifndef GPU_KERNELS_KV_ELEMENT_CUH
#define GPU_KERNELS_KV_ELEMENT_CUH

#include "gpu/kernels/numbers.cuh"

/* |scaled| ≤ 127, about. */
__device__ __forceinline__ uint8_t kv_encode_int8(float scaled) {
    return (uint8_t)(int8_t)__float2int_rn(fminf(fmaxf(scaled, -127.0f), 127.0f));
}

/* |scaled| ≤ 448, about: 4 bits of exponent (bias 7), 3 of mantissa, rounded to nearest even;
 * below 2^-6 a multiple of 2^-9. */
__device__ __forceinline__ uint8_t kv_encode_e4m3(float scaled) {
    uint32_t sign = __float_as_uint(scaled) >> 24 & 0x80u;
    float size = fminf(fabsf(scaled), 448.0f);
    if (size < 0.015625f)
        return (uint8_t)(sign | (uint32_t)__float2int_rn(size * 512.0f));
    uint32_t bits = __float_as_uint(size);
    bits += 0x7ffffu + (bits >> 20 & 1u);
    return (uint8_t)(sign | ((bits >> 20) - (120u << 3)));
}

/* The element as a float / 256: fp16 has the same mantissa behind three zero bits, and a bias of 15
 * instead of 7, denormals included. */
__device__ __forceinline__ float kv_decode_e4m3(uint32_t byte) {
    return ptx_f16_to_f32((uint16_t)((byte & 0x80u) << 8 | (byte & 0x7fu) << 7));
}
#define KV_E4M3_FACTOR 256.0f

/* Byte `index` of a word as a float, still to be multiplied with the token's scale, and for e4m3
 * with KV_E4M3_FACTOR. */
template <int KV> __device__ __forceinline__ float kv_decode8(uint32_t word, int index) {
    uint32_t byte = word >> (8 * index) & 255u;
    return KV == KV_ELEMENT_INT8 ? (float)(int8_t)byte : kv_decode_e4m3(byte);
}

#endif
