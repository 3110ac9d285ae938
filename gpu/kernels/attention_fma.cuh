/* Attention without matrix units (below 7.5): the same walk with fp32 FMA over fp16 storage. A
 * block of 128 threads is 8 groups of 16 lanes; a group has ROWS / 8 packed rows, its lanes take
 * keys lane, lane + 16, ... and pairs of output columns likewise. Every element is one chain over
 * ascending k, and a row's sum is taken in the same order whatever ROWS is, so ROWS is not part of
 * the bits. */
#ifndef GPU_KERNELS_ATTENTION_FMA_CUH
#define GPU_KERNELS_ATTENTION_FMA_CUH

#include "gpu/kernels/attention_tile.cuh"

template <int KV_, int DIM_, int ROWS_> struct fma_shape {
    static constexpr int KV = KV_, DIM = DIM_, ROWS = ROWS_;
    static constexpr int THREADS = 128, LANES = 16;
    static constexpr int OWN = ROWS / 8;         /* rows of a group */
    static constexpr int KEYS = KV_TILE / LANES; /* of a lane */
    static constexpr int PAIRS = (DIM / 2 + LANES - 1) / LANES;
    static constexpr bool EVEN = DIM / 2 % LANES == 0;
    static constexpr int STRIDE = DIM + 8;
    /* The two groups of a warp lie in different banks. */
    static constexpr int WEIGHT_STRIDE = ATTENTION_WEIGHT_STRIDE(ROWS);
};

template <class SHAPE> struct fma_shared {
    uint16_t *tile;    /* [64][STRIDE] keys, then values */
    uint16_t *queries; /* [ROWS][STRIDE] */
    float *weights;    /* [ROWS][WEIGHT_STRIDE] probabilities */

    __device__ __forceinline__ explicit fma_shared(unsigned char *memory) {
        tile = (uint16_t *)memory;
        queries = tile + KV_TILE * SHAPE::STRIDE;
        weights = (float *)(queries + SHAPE::ROWS * SHAPE::STRIDE);
    }
};

template <class SHAPE> struct fma_state {
    float out[SHAPE::OWN][SHAPE::PAIRS][2];
    state_summary summary[SHAPE::OWN];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int r = 0; r < SHAPE::OWN; r++) {
            summary[r] = state_empty();
#pragma unroll
            for (int j = 0; j < SHAPE::PAIRS; j++)
                out[r][j][0] = out[r][j][1] = 0;
        }
    }
};

template <class SHAPE> struct fma_place {
    int lane, group;
    int2 visible[SHAPE::OWN];

    __device__ __forceinline__ fma_place() {
        lane = (int)threadIdx.x % SHAPE::LANES;
        group = (int)threadIdx.x / SHAPE::LANES;
    }
    __device__ __forceinline__ int packed(int r) const {
        return group * SHAPE::OWN + r;
    }
    __device__ __forceinline__ int column(int pair) const {
        return 2 * (lane + pair * SHAPE::LANES);
    }
    __device__ __forceinline__ bool has(int pair) const {
        return SHAPE::EVEN || column(pair) < SHAPE::DIM;
    }
};

template <class SHAPE>
__device__ __forceinline__ void fma_load_queries(const tile_walk &walk, uint16_t *shared) {
    constexpr int PAIRS = SHAPE::DIM / 2;
    float factor = walk.query_factor();
    for (int i = (int)threadIdx.x; i < SHAPE::ROWS * PAIRS; i += SHAPE::THREADS) {
        int packed = i / PAIRS, pair = i % PAIRS;
        float2 value = make_float2(0, 0);
        if (packed < walk.task.packed_count)
            value = *(const float2 *)(walk.query(packed, SHAPE::DIM) + 2 * pair);
        *(uint32_t *)(shared + packed * SHAPE::STRIDE + 2 * pair) =
            ptx_pack<ELEMENT_F16>(value.x * factor, value.y * factor);
    }
}

__device__ __forceinline__ void fma_unpack(const uint16_t *in, float out[8]) {
    uint4 pieces = *(const uint4 *)in;
    const uint32_t words[4] = {pieces.x, pieces.y, pieces.z, pieces.w};
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = ptx_f16_to_f32((uint16_t)(words[i / 2] >> (i % 2 * 16)));
}

template <class SHAPE>
__device__ __forceinline__ void fma_scores(const fma_shared<SHAPE> &shared,
                                           const fma_place<SHAPE> &place,
                                           float scores[SHAPE::OWN][SHAPE::KEYS]) {
#pragma unroll
    for (int r = 0; r < SHAPE::OWN; r++)
#pragma unroll
        for (int j = 0; j < SHAPE::KEYS; j++)
            scores[r][j] = 0;
#pragma unroll 1
    for (int d = 0; d < SHAPE::DIM; d += 8) {
        float query[SHAPE::OWN][8];
#pragma unroll
        for (int r = 0; r < SHAPE::OWN; r++)
            fma_unpack(shared.queries + place.packed(r) * SHAPE::STRIDE + d, query[r]);
#pragma unroll
        for (int j = 0; j < SHAPE::KEYS; j++) {
            float key[8];
            fma_unpack(shared.tile + (place.lane + j * SHAPE::LANES) * SHAPE::STRIDE + d, key);
#pragma unroll
            for (int r = 0; r < SHAPE::OWN; r++)
#pragma unroll
                for (int i = 0; i < 8; i++)
                    scores[r][j] = fmaf(query[r][i], key[i], scores[r][j]);
        }
    }
}

template <class SHAPE>
__device__ __forceinline__ void fma_mask(const tile_walk &walk, const fma_place<SHAPE> &place,
                                         int tile, float scores[SHAPE::OWN][SHAPE::KEYS]) {
    float cap = walk.arguments.softcap;
    bool whole = walk.whole(tile);
#pragma unroll
    for (int r = 0; r < SHAPE::OWN; r++)
#pragma unroll
        for (int j = 0; j < SHAPE::KEYS; j++) {
            int key = tile * KV_TILE + place.lane + j * SHAPE::LANES;
            if (cap > 0)
                scores[r][j] = tile_softcap(scores[r][j], cap);
            if (!whole && (key < place.visible[r].x || key > place.visible[r].y))
                scores[r][j] = -NUMBERS_INFINITY;
        }
}

/* Over the 16 lanes of a group. */
template <bool MAXIMUM> __device__ __forceinline__ float fma_reduce(float value) {
#pragma unroll
    for (int distance = 8; distance > 0; distance /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = MAXIMUM ? fmaxf(value, other) : value + other;
    }
    return value;
}

template <class SHAPE>
__device__ __forceinline__ void fma_softmax(const float scores[SHAPE::OWN][SHAPE::KEYS],
                                            const fma_place<SHAPE> &place, float *weights,
                                            fma_state<SHAPE> &state) {
#pragma unroll
    for (int r = 0; r < SHAPE::OWN; r++) {
        float most = scores[r][0], sum = 0;
#pragma unroll
        for (int j = 1; j < SHAPE::KEYS; j++)
            most = fmaxf(most, scores[r][j]);
        state_summary &summary = state.summary[r];
        float before = summary.most;
        summary.most = fmaxf(before, fma_reduce<true>(most));
        float reference = state_reference(summary.most), factor = ptx_exp2(before - reference);
#pragma unroll
        for (int j = 0; j < SHAPE::KEYS; j++) {
            float weight = ptx_exp2(scores[r][j] - reference);
            weights[place.packed(r) * SHAPE::WEIGHT_STRIDE + place.lane + j * SHAPE::LANES] =
                weight;
            sum += weight;
        }
        summary.sum = fmaf(summary.sum, factor, fma_reduce<false>(sum));
#pragma unroll
        for (int j = 0; j < SHAPE::PAIRS; j++) {
            state.out[r][j][0] *= factor;
            state.out[r][j][1] *= factor;
        }
    }
}

template <class SHAPE>
__device__ __forceinline__ void fma_values(const fma_shared<SHAPE> &shared,
                                           const fma_place<SHAPE> &place, fma_state<SHAPE> &state) {
#pragma unroll 4
    for (int key = 0; key < KV_TILE; key++) {
        float weight[SHAPE::OWN];
#pragma unroll
        for (int r = 0; r < SHAPE::OWN; r++)
            weight[r] = shared.weights[place.packed(r) * SHAPE::WEIGHT_STRIDE + key];
#pragma unroll
        for (int j = 0; j < SHAPE::PAIRS; j++) {
            if (!place.has(j))
                continue;
            uint32_t pair =
                *(const uint32_t *)(shared.tile + key * SHAPE::STRIDE + place.column(j));
            float low = ptx_f16_to_f32((uint16_t)pair);
            float high = ptx_f16_to_f32((uint16_t)(pair >> 16));
#pragma unroll
            for (int r = 0; r < SHAPE::OWN; r++) {
                state.out[r][j][0] = fmaf(weight[r], low, state.out[r][j][0]);
                state.out[r][j][1] = fmaf(weight[r], high, state.out[r][j][1]);
            }
        }
    }
}

/* As mma_merged: [OWN × PAIRS][threads] of two in the block's scratch. */
template <class SHAPE> struct fma_merged {
    float2 *scratch;
    state_summary summary[SHAPE::OWN];
    bool any;

    __device__ __forceinline__ explicit fma_merged(float *memory)
        : scratch((float2 *)memory +
                  (int64_t)blockIdx.x * SHAPE::OWN * SHAPE::PAIRS * SHAPE::THREADS + threadIdx.x),
          any(false) {
    }
    __device__ __forceinline__ void take(fma_state<SHAPE> &state) {
        if (!any)
            return;
#pragma unroll
        for (int r = 0; r < SHAPE::OWN; r++) {
            state_factors factors = state_merge(summary[r], state.summary[r]);
            state.summary[r] = summary[r];
#pragma unroll
            for (int j = 0; j < SHAPE::PAIRS; j++) {
                float2 before = scratch[(r * SHAPE::PAIRS + j) * SHAPE::THREADS];
                state.out[r][j][0] = state_blend(before.x, state.out[r][j][0], factors);
                state.out[r][j][1] = state_blend(before.y, state.out[r][j][1], factors);
            }
        }
    }
    __device__ __forceinline__ void put(fma_state<SHAPE> &state) {
        take(state);
        any = true;
#pragma unroll
        for (int r = 0; r < SHAPE::OWN; r++) {
            summary[r] = state.summary[r];
#pragma unroll
            for (int j = 0; j < SHAPE::PAIRS; j++)
                scratch[(r * SHAPE::PAIRS + j) * SHAPE::THREADS] =
                    make_float2(state.out[r][j][0], state.out[r][j][1]);
        }
        state.clear();
    }
};

template <class SHAPE>
__device__ __forceinline__ void
fma_read_states(const tile_walk &walk, const fma_place<SHAPE> &place, fma_state<SHAPE> &state) {
#pragma unroll
    for (int r = 0; r < SHAPE::OWN; r++) {
        if (place.packed(r) >= walk.task.packed_count)
            continue;
        const float *from =
            state_row((const float *)walk.arguments.states, walk.task.state_from + place.packed(r),
                      walk.arguments.kv_heads, walk.head, SHAPE::DIM);
        state.summary[r] = {from[SHAPE::DIM], from[SHAPE::DIM + 1]};
#pragma unroll
        for (int j = 0; j < SHAPE::PAIRS; j++) {
            if (!place.has(j))
                continue;
            float2 pair = *(const float2 *)(from + place.column(j));
            state.out[r][j][0] = pair.x;
            state.out[r][j][1] = pair.y;
        }
    }
}

template <class SHAPE>
__device__ __forceinline__ void fma_write(const tile_walk &walk, const fma_place<SHAPE> &place,
                                          const fma_state<SHAPE> &state) {
#pragma unroll
    for (int r = 0; r < SHAPE::OWN; r++) {
        int packed = place.packed(r);
        if (packed >= walk.task.packed_count)
            continue;
        bool final = walk.task.state < 0;
        float *to = final ? nullptr
                          : state_row(walk.arguments.states, walk.task.state + packed,
                                      walk.arguments.kv_heads, walk.head, SHAPE::DIM);
        int64_t index = walk.out_index(packed, SHAPE::DIM);
        float factor = state_normaliser(state.summary[r]);
#pragma unroll
        for (int j = 0; j < SHAPE::PAIRS; j++) {
            if (!place.has(j))
                continue;
            float low = state.out[r][j][0], high = state.out[r][j][1];
            if (final)
                numbers_store2(walk.arguments.out, walk.arguments.out_element,
                               index + place.column(j), state_output(low, factor),
                               state_output(high, factor));
            else
                *(float2 *)(to + place.column(j)) = make_float2(low, high);
        }
        if (!final && place.lane == 0)
            *(float2 *)(to + SHAPE::DIM) = make_float2(state.summary[r].most, state.summary[r].sum);
    }
}

template <class SHAPE>
__device__ __forceinline__ void fma_task(const tile_walk &walk, unsigned char *memory) {
    fma_shared<SHAPE> shared(memory);
    fma_place<SHAPE> place;
    fma_state<SHAPE> state;
    fma_merged<SHAPE> merged(walk.arguments.scratch);
    int first = walk.tile_first(), end = walk.tile_end();
#pragma unroll
    for (int r = 0; r < SHAPE::OWN; r++)
        place.visible[r] = walk.visible(place.packed(r));
    __syncthreads(); /* the last task's queries are read */
    fma_load_queries<SHAPE>(walk, shared.queries);
    state.clear();
    if (walk.task.state_from >= 0) {
        fma_read_states<SHAPE>(walk, place, state);
        if (first < end)
            merged.put(state);
    }
    for (int tile = first; tile < end; tile++) {
        float scores[SHAPE::OWN][SHAPE::KEYS];
        if (tile % SPAN_TILES == 0 && tile > first)
            merged.put(state);
        __syncthreads(); /* the last values are read */
        tile_load<SHAPE::KV, SHAPE::DIM, SHAPE::THREADS>(walk, tile, false, shared.tile);
        __syncthreads();
        fma_scores<SHAPE>(shared, place, scores);
        fma_mask<SHAPE>(walk, place, tile, scores);
        fma_softmax<SHAPE>(scores, place, shared.weights, state);
        __syncthreads(); /* the keys are read */
        tile_load<SHAPE::KV, SHAPE::DIM, SHAPE::THREADS>(walk, tile, true, shared.tile);
        __syncthreads();
        fma_values<SHAPE>(shared, place, state);
    }
    merged.take(state);
    fma_write<SHAPE>(walk, place, state);
}

#endif
