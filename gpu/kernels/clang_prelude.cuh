/* What the kernels use of CUDA's headers, for clang: nvcc 13 has no targets below 7.5, clang 19
 * has, and needs no CUDA toolkit then. Included by the command line, before anything else, with
 * -nocudainc. */
#ifndef GPU_KERNELS_CLANG_PRELUDE_CUH
#define GPU_KERNELS_CLANG_PRELUDE_CUH

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__ /* parameters are constant there anyway, unless their address escapes */

#include <__clang_cuda_builtin_vars.h>

typedef unsigned int prelude_word;

struct int2 {
    int x, y;
};
struct float2 {
    float x, y;
} __attribute__((aligned(8)));
struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16)));
struct uint4 {
    prelude_word x, y, z, w;
} __attribute__((aligned(16)));

__device__ __forceinline__ int2 make_int2(int x, int y) {
    return {x, y};
}
__device__ __forceinline__ float2 make_float2(float x, float y) {
    return {x, y};
}
__device__ __forceinline__ float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
__device__ __forceinline__ uint4 make_uint4(prelude_word x, prelude_word y, prelude_word z,
                                            prelude_word w) {
    return {x, y, z, w};
}

__device__ __forceinline__ int min(int a, int b) {
    return a < b ? a : b;
}
__device__ __forceinline__ int max(int a, int b) {
    return a > b ? a : b;
}
__device__ __forceinline__ float fmaf(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
__device__ __forceinline__ float fminf(float a, float b) {
    return __builtin_fminf(a, b);
}
__device__ __forceinline__ float fmaxf(float a, float b) {
    return __builtin_fmaxf(a, b);
}
__device__ __forceinline__ float fabsf(float a) {
    return __builtin_fabsf(a);
}
__device__ __forceinline__ float copysignf(float size, float sign) {
    return __builtin_copysignf(size, sign);
}
__device__ __forceinline__ float rsqrtf(float a) {
    return __nvvm_rsqrt_approx_f(a);
}
__device__ __forceinline__ float __fdividef(float a, float b) {
    return __nvvm_div_approx_f(a, b);
}
__device__ __forceinline__ float __fmul_rn(float a, float b) {
    return __nvvm_mul_rn_f(a, b);
}
__device__ __forceinline__ float __fadd_rn(float a, float b) {
    return __nvvm_add_rn_f(a, b);
}
__device__ __forceinline__ int __float2int_rn(float a) {
    return __nvvm_f2i_rn(a);
}
__device__ __forceinline__ float __int_as_float(int bits) {
    return __builtin_bit_cast(float, bits);
}
__device__ __forceinline__ float __uint_as_float(prelude_word bits) {
    return __builtin_bit_cast(float, bits);
}
__device__ __forceinline__ prelude_word __float_as_uint(float value) {
    return __builtin_bit_cast(prelude_word, value);
}

/* __syncthreads is known to the compiler. */
__device__ __forceinline__ int __syncthreads_and(int predicate) {
    return __nvvm_bar0_and(predicate);
}
__device__ __forceinline__ void __syncwarp() {
    __nvvm_bar_warp_sync(0xffffffffu);
}
__device__ __forceinline__ int __shfl_xor_sync(prelude_word mask, int value, int distance) {
    return __nvvm_shfl_sync_bfly_i32(mask, value, distance, 31);
}
__device__ __forceinline__ float __shfl_xor_sync(prelude_word mask, float value, int distance) {
    return __nvvm_shfl_sync_bfly_f32(mask, value, distance, 31);
}
__device__ __forceinline__ prelude_word atomicAdd(prelude_word *address, prelude_word value) {
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

#endif
