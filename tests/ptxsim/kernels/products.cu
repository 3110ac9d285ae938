// Matrix products as the compiler emits them: one warp, one product, operands in memory; and code
// whose control flow and roundings are the compiler's own.
#include <stdint.h>

// Element (row, k) of A is at a[row * depth + k], (k, column) of B at b[column * depth + k].
template <typename T> __device__ uint32_t word_of(const T *element) {
    return *(const uint32_t *)element;
}

template <typename T, int DEPTH> struct fragments {
    static const int per = 4 / sizeof(T);
    static const int steps = DEPTH / (4 * per);
    uint32_t a[2 * steps], b[steps];

    __device__ fragments(const T *a_rows, const T *b_columns) {
        const int group = threadIdx.x / 4, within = threadIdx.x % 4 * per;
#pragma unroll
        for (int step = 0; step < steps; step++) {
            a[2 * step] = word_of(a_rows + group * DEPTH + within + step * 4 * per);
            a[2 * step + 1] = word_of(a_rows + (group + 8) * DEPTH + within + step * 4 * per);
            b[step] = word_of(b_columns + group * DEPTH + within + step * 4 * per);
        }
    }
};

template <typename C> __device__ void store(C *out, const C c[4]) {
    const int row = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
    out[row * 8 + column] = c[0];
    out[row * 8 + column + 1] = c[1];
    out[(row + 8) * 8 + column] = c[2];
    out[(row + 8) * 8 + column + 1] = c[3];
}

#define PRODUCT(kernel, type, depth, result, letter, instruction, a_list, b_list, ...) \
    extern "C" __global__ void kernel(const type *a, const type *b, result *out) {     \
        fragments<type, depth> f(a, b);                                                \
        result c[4] = {1, 2, 3, 4};                                                    \
        asm(instruction " {%0,%1,%2,%3}, " a_list ", " b_list ", {%0,%1,%2,%3};"       \
            : letter(c[0]), letter(c[1]), letter(c[2]), letter(c[3])                   \
            : __VA_ARGS__);                                                            \
        store(out, c);                                                                 \
    }
#define A2 "r"(f.a[0]), "r"(f.a[1])
#define A4 A2, "r"(f.a[2]), "r"(f.a[3])

PRODUCT(f16_k8, uint16_t, 8, float, "+f", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
        "{%4,%5}", "{%6}", A2, "r"(f.b[0]))
#if __CUDA_ARCH__ >= 800
#define B2 "r"(f.b[0]), "r"(f.b[1])
PRODUCT(f16_k16, uint16_t, 16, float, "+f", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "{%4,%5,%6,%7}", "{%8,%9}", A4, B2)
PRODUCT(bf16_k16, uint16_t, 16, float, "+f", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        "{%4,%5,%6,%7}", "{%8,%9}", A4, B2)
PRODUCT(s8_k16, int8_t, 16, int, "+r", "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", "{%4,%5}",
        "{%6}", A2, "r"(f.b[0]))
PRODUCT(s8_k32, int8_t, 32, int, "+r", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        "{%4,%5,%6,%7}", "{%8,%9}", A4, B2)
#endif
#if __CUDA_ARCH__ >= 890
PRODUCT(e4m3_k32, uint8_t, 32, float, "+f", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
        "{%4,%5,%6,%7}", "{%8,%9}", A4, B2)
#endif

// out[i] = expf(in[i]), with everything the compiler makes of it.
extern "C" __global__ void exponentials(const float *in, float *out, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = expf(in[i]);
}

// One multiply-add and a few integers a step: what the simulator's speed is measured with.
extern "C" __global__ void steps(float *out, int count) {
    float sum = threadIdx.x;
    uint32_t state = threadIdx.x;
#pragma unroll 4
    for (int i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        sum = sum * 0.5f + (float)(state >> 20);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
