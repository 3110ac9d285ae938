/* CUDA for g++: what the kernels use of the language, its headers and gpu/kernels/ptx.cuh, in whose
 * place this stands (it takes its include guard). Included by the command line before a .cu file.
 * Threads of a block are fibers of one host thread (shim_fibers.h), so shared memory is
 * thread-local, and a collective is an exchange between a warp's fibers. SHIM_CAPABILITY: 61, 75 or
 * 80, one for each matrix path. Sums of products are taken in ascending k, as the real units do not
 * promise. */
#ifndef TESTS_GPU_SHIM_SHIM_CUDA_H
#define TESTS_GPU_SHIM_SHIM_CUDA_H
#define GPU_KERNELS_PTX_CUH

#define __CUDACC__ 1
#define __device__
#define __global__
#define __shared__ thread_local
#define __forceinline__ inline
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __grid_constant__
#define DEVICE_PATH_AMPERE (SHIM_CAPABILITY >= 80)
#define DEVICE_PATH_MATRIX (SHIM_CAPABILITY >= 75)

#include <math.h>
#include <string.h>

#include "gpu/kernels/kernel_arguments.h"
#include "tests/gpu/shim/shim_fibers.h"

struct shim_axis {
    unsigned x;
};
#define threadIdx (shim_axis{shim_fibers_place->thread})
#define blockIdx (shim_axis{shim_fibers_place->block})
#define blockDim (shim_axis{shim_fibers_place->thread_count})
#define gridDim (shim_axis{shim_fibers_place->block_count})

struct int2 {
    int x, y;
};
struct uint2 {
    uint32_t x, y;
} __attribute__((aligned(8)));
struct uint4 {
    uint32_t x, y, z, w;
} __attribute__((aligned(16)));
struct float2 {
    float x, y;
} __attribute__((aligned(8)));
struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16)));

inline int2 make_int2(int x, int y) {
    return {x, y};
}
inline uint2 make_uint2(uint32_t x, uint32_t y) {
    return {x, y};
}
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
    return {x, y, z, w};
}
inline float2 make_float2(float x, float y) {
    return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
inline int min(int a, int b) {
    return a < b ? a : b;
}
inline int max(int a, int b) {
    return a > b ? a : b;
}

inline float __uint_as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
inline float __int_as_float(int bits) {
    return __uint_as_float((uint32_t)bits);
}
inline uint32_t __float_as_uint(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline float __fmul_rn(float a, float b) {
    return a * b;
}
inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fdividef(float a, float b) {
    return a / b;
}
inline float rsqrtf(float a) {
    return 1 / sqrtf(a);
}
inline int __float2int_rn(float a) {
    return (int)lrintf(a);
}

inline void __syncthreads() {
    shim_fibers_barrier(1);
}
inline int __syncthreads_and(int predicate) {
    return shim_fibers_barrier(predicate);
}
inline void __syncwarp() {
    char in = 0, all[32];
    shim_fibers_exchange(&in, all, 1);
}
template <class T> T __shfl_sync(unsigned, T value, int lane) {
    T all[32];
    shim_fibers_exchange(&value, all, sizeof value);
    return all[lane & 31];
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int distance) {
    return __shfl_sync(mask, value, (int)(threadIdx.x % 32) ^ distance);
}
inline uint32_t atomicAdd(uint32_t *address, uint32_t value) {
    uint32_t before = *address;
    *address += value;
    return before;
}

inline float ptx_f16_to_f32(uint16_t bits) {
    _Float16 half;
    memcpy(&half, &bits, sizeof half);
    return (float)half;
}
inline uint16_t ptx_f32_to_f16(float value) {
    _Float16 half = (_Float16)value;
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}
inline float ptx_exp2(float x) {
    return exp2f(x);
}
inline uint16_t ptx_f32_to_bf16(float value) {
    uint32_t bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
template <int ELEMENT> uint32_t ptx_pack(float low, float high) {
    if (ELEMENT == ELEMENT_BF16)
        return ptx_f32_to_bf16(low) | (uint32_t)ptx_f32_to_bf16(high) << 16;
    return ptx_f32_to_f16(low) | (uint32_t)ptx_f32_to_f16(high) << 16;
}

inline void ptx_copy16(void *to, const void *from, bool valid) {
    *(uint4 *)to = valid ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
}
inline void ptx_copy_commit() {
}
template <int PENDING> void ptx_copy_wait() {
}

/* Matrix i's row r is at the address that lane 8 i + r gave. */
template <int COUNT> void shim_load_matrix(uint32_t *out, const void *row) {
    const uint32_t *rows[32];
    shim_fibers_exchange(&row, rows, sizeof row);
    unsigned lane = threadIdx.x % 32;
    for (unsigned i = 0; i < COUNT; i++)
        out[i] = rows[8 * i + lane / 4][lane % 4];
    shim_fibers_exchange(&row, rows, sizeof row); /* nobody writes before all have read */
}
inline void ptx_load_matrix4(uint32_t out[4], const void *row) {
    shim_load_matrix<4>(out, row);
}
inline void ptx_load_matrix2(uint32_t out[2], const void *row) {
    shim_load_matrix<2>(out, row);
}
inline void ptx_load_matrix4_transposed(uint32_t out[4], const void *row) {
    const uint16_t *rows[32];
    shim_fibers_exchange(&row, rows, sizeof row);
    unsigned lane = threadIdx.x % 32;
    for (unsigned i = 0; i < 4; i++)
        out[i] = rows[8 * i + lane % 4 * 2][lane / 4] |
                 (uint32_t)rows[8 * i + lane % 4 * 2 + 1][lane / 4] << 16;
    shim_fibers_exchange(&row, rows, sizeof row);
}

struct shim_fragments {
    uint32_t a[4], b[2];
};
template <int ELEMENT> float shim_half(uint32_t pair, unsigned index) {
    uint16_t bits = (uint16_t)(pair >> (16 * index));
    return ELEMENT == ELEMENT_BF16 ? __uint_as_float((uint32_t)bits << 16) : ptx_f16_to_f32(bits);
}
template <int ELEMENT>
void ptx_multiply(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    shim_fragments own = {{a[0], a[1], a[2], a[3]}, {b0, b1}}, all[32];
    shim_fibers_exchange(&own, all, sizeof own);
    unsigned lane = threadIdx.x % 32;
    for (unsigned i = 0; i < 4; i++) {
        unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 16; k++) {
            uint32_t left = all[row % 8 * 4 + k % 8 / 2].a[k / 8 * 2 + row / 8];
            uint32_t right = all[column * 4 + k % 8 / 2].b[k / 8];
            c[i] = fmaf(shim_half<ELEMENT>(left, k % 2), shim_half<ELEMENT>(right, k % 2), c[i]);
        }
    }
}

#endif
