/* The state of a row after some keys: unnormalised output, maximum (base 2) and sum; its merge
 * (online softmax, Milakov and Gimelshein 2018). The only place where this arithmetic is written:
 * attention within a task and merge_states between tasks give the same bits. */
#ifndef GPU_KERNELS_ATTENTION_STATE_CUH
#define GPU_KERNELS_ATTENTION_STATE_CUH

#include "gpu/kernels/numbers.cuh"

enum { STATE_TAIL = 4 }; /* floats behind a state's output */

struct state_summary {
    float most; /* −inf: no key yet */
    float sum;
};

struct state_factors {
    float into;
    float from;
};

__device__ __forceinline__ state_summary state_empty() {
    return {-NUMBERS_INFINITY, 0.0f};
}

/* What exponents are taken relative to: any finite number where no key was seen. */
__device__ __forceinline__ float state_reference(float most) {
    return most == -NUMBERS_INFINITY ? 0.0f : most;
}

/* into += from, both relative to their own maximum. Merging with an empty state changes no bit:
 * the factors are 1 and 0. */
__device__ __forceinline__ state_factors state_merge(state_summary &into, state_summary from) {
    float most = fmaxf(into.most, from.most), reference = state_reference(most);
    state_factors factors = {ptx_exp2(into.most - reference), ptx_exp2(from.most - reference)};
    into.most = most;
    into.sum = fmaf(from.sum, factors.from, __fmul_rn(into.sum, factors.into));
    return factors;
}

__device__ __forceinline__ float state_blend(float into, float from, state_factors factors) {
    return fmaf(from, factors.from, __fmul_rn(into, factors.into));
}

/* A row that saw no key is 0. */
__device__ __forceinline__ float state_normaliser(state_summary summary) {
    return summary.sum == 0 ? 0.0f : 1.0f / summary.sum;
}

/* Adding 0 turns −0 into 0: what masked keys contributed cannot show in a sign. */
__device__ __forceinline__ float state_output(float value, float normaliser) {
    return __fadd_rn(__fmul_rn(value, normaliser), 0.0f);
}

template <class FLOAT>
__device__ __forceinline__ FLOAT *state_row(FLOAT *states, int64_t state, int kv_heads, int head,
                                            int dim) {
    return states + (state * kv_heads + head) * (dim + STATE_TAIL);
}

#endif
