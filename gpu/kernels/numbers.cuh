/* Conversions between fp32 and the element types of kernel_arguments.h, and sums over a warp or
 * block in one fixed order. Element types are told apart at run time here: the kernels that use it
 * wait for memory. */
#ifndef GPU_KERNELS_NUMBERS_CUH
#define GPU_KERNELS_NUMBERS_CUH

#include "gpu/kernels/ptx.cuh"

#define NUMBERS_INFINITY __int_as_float(0x7f800000)
#define NUMBERS_NAN __int_as_float(0x7fffffff)
#define NUMBERS_LOG2E 1.44269504f

/* Largest size of an fp16 row that is written as it is; a larger one is scaled to below it. */
#define NUMBERS_F16_ROW_MAX 32768.0f
#define NUMBERS_F16_MAX 65504.0f

__device__ __forceinline__ float numbers_bf16_to_f32(uint16_t bits) {
    return __uint_as_float((uint32_t)bits << 16);
}

/* out[index] = value, rounded to nearest even. */
__device__ __forceinline__ void numbers_store(void *out, int element, int64_t index, float value) {
    if (element == ELEMENT_F32)
        ((float *)out)[index] = value;
    else if (element == ELEMENT_F16)
        ((uint16_t *)out)[index] = ptx_f32_to_f16(value);
    else
        ((uint16_t *)out)[index] = ptx_f32_to_bf16(value);
}

/* out[index], out[index + 1]; index even. */
__device__ __forceinline__ void numbers_store2(void *out, int element, int64_t index, float low,
                                               float high) {
    if (element == ELEMENT_F32)
        *(float2 *)((float *)out + index) = make_float2(low, high);
    else if (element == ELEMENT_F16)
        *(uint32_t *)((uint16_t *)out + index) = ptx_pack<ELEMENT_F16>(low, high);
    else
        *(uint32_t *)((uint16_t *)out + index) = ptx_pack<ELEMENT_BF16>(low, high);
}

/* x of a matmul's result: see kernel_arguments.h. */
__device__ __forceinline__ float numbers_load(const float *in, int64_t index, float scale,
                                              const float *bias, int column) {
    float value = in[index] * scale;
    return bias ? value + bias[column] : value;
}

/* cap × tanh(x / cap): by the exponential beyond 0.55, below it a polynomial that keeps small
 * values exact (minimax of tanh x = x + x z (C1 + z (C2 + ...)), z = x², error 3.7e-8). */
__device__ __forceinline__ float numbers_tanh(float x) {
    float size = fabsf(x), z = x * x;
    float p = 0.0164375752f;
    p = fmaf(p, z, -0.0526718125f);
    p = fmaf(p, z, 0.133207247f);
    p = fmaf(p, z, -0.333329469f);
    float small = fmaf(x, z * p, x);
    float large = 1.0f - __fdividef(2.0f, ptx_exp2(fminf(2.0f * NUMBERS_LOG2E * size, 126.0f)) + 1);
    return size <= 0.55f ? small : copysignf(large, x);
}

__device__ __forceinline__ float numbers_warp_sum(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

__device__ __forceinline__ float numbers_warp_max(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

/* Of all threads of a block of THREADS, in every thread. `shared`: THREADS / 32 floats, free to be
 * written and, behind the next barrier, again. */
template <int THREADS, bool MAXIMUM>
__device__ __forceinline__ float numbers_block(float value, float *shared) {
    value = MAXIMUM ? numbers_warp_max(value) : numbers_warp_sum(value);
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = value;
    __syncthreads();
    float total = shared[0];
#pragma unroll
    for (int i = 1; i < THREADS / 32; i++)
        total = MAXIMUM ? fmaxf(total, shared[i]) : total + shared[i];
    return total;
}

/* The power of two that an fp16 row with this largest size is divided by; 1 for most, and where
 * the row is not finite. */
__device__ __forceinline__ float numbers_row_divisor(float most) {
    if (!(most >= NUMBERS_F16_ROW_MAX) || most == NUMBERS_INFINITY)
        return 1.0f;
    uint32_t exponent = __float_as_uint(most) >> 23 & 255; /* most < 2^(exponent - 126) */
    return __uint_as_float((exponent - 14) << 23);         /* 2^(exponent - 126 - 15) */
}

/* Walks [0, count) by all threads of the grid. */
#define NUMBERS_FOR_EACH(index, count)                                                    \
    for (int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; index < (count); \
         index += (int64_t)gridDim.x * blockDim.x)

#endif
