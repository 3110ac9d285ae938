/* All inline PTX of the kernels, one instruction a function, and what stands for it on older
 * devices. Nothing else in gpu/kernels may contain asm. */
#ifndef GPU_KERNELS_PTX_CUH
#define GPU_KERNELS_PTX_CUH

#include <stdint.h>

#include "gpu/kernels/kernel_arguments.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define DEVICE_PATH_AMPERE 1
#else
#define DEVICE_PATH_AMPERE 0
#endif
#ifndef DEVICE_PATH_MATRIX /* 0 by the command line: the FMA path, for checks on any device */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
#define DEVICE_PATH_MATRIX 1
#else
#define DEVICE_PATH_MATRIX 0
#endif
#endif

/* ---- numbers ---- */
__device__ __forceinline__ float ptx_f16_to_f32(uint16_t bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

__device__ __forceinline__ uint16_t ptx_f32_to_f16(float value) {
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

/* 2^x; ±0 gives exactly 1, −inf exactly 0. */
__device__ __forceinline__ float ptx_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ uint16_t ptx_f32_to_bf16(float value) {
#if DEVICE_PATH_AMPERE
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    uint32_t bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}

/* Two floats to a pair of 16-bit elements, the first in the low half. */
template <int ELEMENT> __device__ __forceinline__ uint32_t ptx_pack(float low, float high) {
#if DEVICE_PATH_AMPERE
    uint32_t pair;
    if (ELEMENT == ELEMENT_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    if (ELEMENT == ELEMENT_BF16)
        return ptx_f32_to_bf16(low) | (uint32_t)ptx_f32_to_bf16(high) << 16;
    return ptx_f32_to_f16(low) | (uint32_t)ptx_f32_to_f16(high) << 16;
#endif
}

/* ---- shared memory and asynchronous copies ---- */
#if DEVICE_PATH_MATRIX || DEVICE_PATH_AMPERE
__device__ __forceinline__ uint32_t ptx_shared_address(const void *pointer) {
    return (uint32_t)__cvta_generic_to_shared(pointer);
}
#endif

/* 16 bytes from global to shared memory, both aligned; zeros where not `valid`, and then nothing
 * is read. Before 8.0 the copy is done at once. */
__device__ __forceinline__ void ptx_copy16(void *to, const void *from, bool valid) {
#if DEVICE_PATH_AMPERE
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(ptx_shared_address(to)), "l"(__cvta_generic_to_global(from)),
                   "r"(valid ? 16 : 0)
                 : "memory");
#else
    *(uint4 *)to = valid ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
#endif
}

/* The copies issued since the last one become a group. */
__device__ __forceinline__ void ptx_copy_commit() {
#if DEVICE_PATH_AMPERE
    asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}

/* Until at most PENDING groups of this thread are not done. */
template <int PENDING> __device__ __forceinline__ void ptx_copy_wait() {
#if DEVICE_PATH_AMPERE
    asm volatile("cp.async.wait_group %0;" : : "n"(PENDING) : "memory");
#endif
}

#if DEVICE_PATH_MATRIX
/* ---- matrices ----
 * ldmatrix: lane l gives the address of row l % 8 of 8×8 matrix l / 8. */
__device__ __forceinline__ void ptx_load_matrix4(uint32_t out[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(ptx_shared_address(row))
                 : "memory");
}

__device__ __forceinline__ void ptx_load_matrix2(uint32_t out[2], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(out[0]), "=r"(out[1])
                 : "r"(ptx_shared_address(row))
                 : "memory");
}

__device__ __forceinline__ void ptx_load_matrix4_transposed(uint32_t out[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(ptx_shared_address(row))
                 : "memory");
}

/* c[16×8] += a[16×16] b[16×8], fp32 sums; fragments as mma.m16n8k16 lays them out. On 7.5 two
 * m16n8k8, whose fragments are the halves. */
template <int ELEMENT>
__device__ __forceinline__ void ptx_multiply(float c[4], const uint32_t a[4], uint32_t b0,
                                             uint32_t b1) {
#if DEVICE_PATH_AMPERE
    if (ELEMENT == ELEMENT_BF16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    static_assert(ELEMENT == ELEMENT_F16, "7.5 multiplies fp16 only");
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}
#endif

#endif
