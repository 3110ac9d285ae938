/* Writing K and V into pages, and merging attention states. Both wait for memory. */
#include "gpu/launch_config.h"
#include "gpu/kernels/attention_state.cuh"
#include "gpu/kernels/kv_element.cuh"

enum { HEAD_DIM_MAX = 256, WARPS = WARP_THREADS / 32 };

/* rms norm of a head that lies in the warp's shared memory; the sum's order is fixed. */
__device__ __forceinline__ void norm_head(float *head, const float *weight, int dim, float epsilon,
                                          int lane) {
    float sum = 0;
    for (int d = lane; d < dim; d += 32)
        sum = fmaf(head[d], head[d], sum);
    float factor = rsqrtf(numbers_warp_sum(sum) / (float)dim + epsilon);
    for (int d = lane; d < dim; d += 32)
        head[d] = head[d] * factor * weight[d];
    __syncwarp();
}

__device__ __forceinline__ void rotate_head(float *head, const float *table, int dims, int rope,
                                            int lane) {
    int pairs = dims / 2;
    for (int i = lane; i < pairs; i += 32) {
        int first = rope == KERNEL_ROPE_HALVES ? i : 2 * i;
        int second = rope == KERNEL_ROPE_HALVES ? i + pairs : 2 * i + 1;
        float cosine = table[2 * i], sine = table[2 * i + 1];
        float a = head[first], b = head[second];
        head[first] = a * cosine - b * sine;
        head[second] = a * sine + b * cosine;
    }
    __syncwarp();
}

/* One token's key or value into its slot. */
__device__ __forceinline__ void write_slot(const kv_write_arguments &arguments, const float *head,
                                           int64_t slot, int kv_head, bool is_value, int lane) {
    int dim = arguments.head_dim, place = (int)(slot % KV_TILE), element = arguments.kv_element;
    uint8_t *share =
        arguments.kv + slot / KV_TILE * arguments.page_stride + kv_head * arguments.head_stride;
    int64_t at = ((int64_t)(is_value ? KV_TILE : 0) + place) * dim;
    if (element == KV_ELEMENT_F16 || element == KV_ELEMENT_BF16) {
        bool lost = false;
        for (int d = lane; d < dim; d += 32) {
            lost = lost || (fabsf(head[d]) >= 65520.0f && fabsf(head[d]) < NUMBERS_INFINITY);
            ((uint16_t *)share)[at + d] =
                element == KV_ELEMENT_F16 ? ptx_f32_to_f16(head[d]) : ptx_f32_to_bf16(head[d]);
        }
        if (lost && element == KV_ELEMENT_F16 && arguments.counters)
            atomicAdd(&arguments.counters[COUNTER_OVERFLOWED_VALUES], 1u);
        return;
    }
    float most = 0, check = 0;
    for (int d = lane; d < dim; d += 32) {
        most = fmaxf(most, fabsf(head[d]));
        check += head[d] * 0.0f;
    }
    bool finite = numbers_warp_sum(check) == 0;
    float scale = numbers_warp_max(most) / (element == KV_ELEMENT_INT8 ? 127.0f : 448.0f);
    float factor = finite && scale >= 1.17549435e-38f ? 1.0f / scale : 0.0f;
    for (int d = lane; d < dim; d += 32)
        share[at + d] = factor == 0                  ? 0
                        : element == KV_ELEMENT_INT8 ? kv_encode_int8(head[d] * factor)
                                                     : kv_encode_e4m3(head[d] * factor);
    if (lane == 0)
        ((float *)(share + 2 * KV_TILE * dim))[(is_value ? KV_TILE : 0) + place] =
            finite ? scale : NUMBERS_NAN;
}

/* Bytes of a row: 4 (heads + 2 kv_heads) head_dim in, 4 heads × head_dim out, and the pages'. */
extern "C" __global__ void __launch_bounds__(WARP_THREADS)
    kv_write(const __grid_constant__ kv_write_arguments arguments) {
    __shared__ float shared[WARPS][HEAD_DIM_MAX];
    float *head = shared[threadIdx.x / 32];
    int lane = threadIdx.x % 32, dim = arguments.head_dim;
    int q_end = arguments.heads, k_end = q_end + arguments.kv_heads;
    int all = k_end + arguments.kv_heads;
    int64_t count = (int64_t)arguments.rows * all;
    for (int64_t item = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; item < count;
         item += (int64_t)gridDim.x * WARPS) {
        int64_t row = item / all;
        int which = (int)(item % all);
        float *in = arguments.qkv + item * dim;
        float scale = arguments.row_scale ? arguments.row_scale[row] : 1.0f;
        for (int d = lane; d < dim; d += 32)
            head[d] = numbers_load(in, d, scale, arguments.bias, which * dim + d);
        __syncwarp();
        const float *weight = which < q_end ? arguments.q_norm : arguments.k_norm;
        if (which < k_end && weight)
            norm_head(head, weight, dim, arguments.norm_epsilon, lane);
        if (which < k_end && arguments.rope != KERNEL_ROPE_NONE)
            rotate_head(head,
                        arguments.rope_table +
                            (int64_t)arguments.positions[row] * arguments.rope_dims,
                        arguments.rope_dims, arguments.rope, lane);
        if (which < q_end) {
            for (int d = lane; d < dim; d += 32)
                in[d] = head[d];
        } else if (arguments.slots[row] >= 0) {
            bool is_value = which >= k_end;
            write_slot(arguments, head, arguments.slots[row], which - (is_value ? k_end : q_end),
                       is_value, lane);
        }
        __syncwarp();
    }
}

/* Bytes of a packed row: 4 (head_dim + 4) a state, 2 head_dim out. Flash-Decoding's second step. */
extern "C" __global__ void __launch_bounds__(WARP_THREADS)
    merge_states(const __grid_constant__ merge_states_arguments arguments) {
    int lane = threadIdx.x % 32, dim = arguments.head_dim, heads = arguments.kv_heads;
    int64_t count = arguments.packed_rows * heads;
    for (int64_t item = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; item < count;
         item += (int64_t)gridDim.x * WARPS) {
        int64_t packed_row = item / heads;
        int head = (int)(item % heads);
        int task_index = arguments.row_tasks[2 * packed_row];
        int local = arguments.row_tasks[2 * packed_row + 1];
        const merge_task task = arguments.tasks[task_index];
        float merged[HEAD_DIM_MAX / 32] = {};
        state_summary summary = state_empty();
        for (int i = 0; i < task.list_count; i++) {
            int64_t state = arguments.state_list[task.list_first + i] + local;
            const float *from = state_row(arguments.states, state, heads, head, dim);
            state_factors factors = state_merge(summary, {from[dim], from[dim + 1]});
#pragma unroll
            for (int j = 0; j < HEAD_DIM_MAX / 32; j++)
                if (lane + 32 * j < dim)
                    merged[j] = state_blend(merged[j], from[lane + 32 * j], factors);
        }
        int packed = task.packed_first + local;
        int64_t row = task.row_first + packed / arguments.group;
        int64_t out = (row * heads + head) * arguments.group + packed % arguments.group;
        float factor = state_normaliser(summary);
#pragma unroll
        for (int j = 0; j < HEAD_DIM_MAX / 32; j++)
            if (lane + 32 * j < dim)
                numbers_store(arguments.out, arguments.out_element, out * dim + lane + 32 * j,
                              state_output(merged[j], factor));
    }
}
