/* Attention on matrix units, as FlashAttention-2 (Dao 2023) does it: scores, probabilities and
 * output stay in registers, K and V pass through shared memory, the next tile's copy runs under
 * this one's products.
 *
 * ROW_WARPS groups of 16 packed rows; COLUMN_WARPS warps share a group's rows: each computes the
 * scores of its part of a tile's keys, and its part of the output's columns. An element of a
 * product is one chain over ascending k, whichever warp computes it; maxima are exact; a row's sum
 * is a product with a column of ones. So the bits do not depend on ROW_WARPS and COLUMN_WARPS. */
#ifndef GPU_KERNELS_ATTENTION_MMA_CUH
#define GPU_KERNELS_ATTENTION_MMA_CUH

#include "gpu/kernels/attention_tile.cuh"

template <int KV_, int DIM_, int ROW_WARPS_, int COLUMN_WARPS_> struct mma_shape {
    static constexpr int KV = KV_, DIM = DIM_;
    static constexpr int ROW_WARPS = ROW_WARPS_, COLUMN_WARPS = COLUMN_WARPS_;
    static constexpr int ELEMENT = tile_element(KV_);
    static constexpr int THREADS = 32 * ROW_WARPS * COLUMN_WARPS;
    static constexpr int STRIDE = DIM + 8; /* elements from a shared row to the next */
    static constexpr int STEPS = DIM / 16; /* of a score's sum */
    /* Steps whose query fragments wait in shared memory instead of registers. */
    static constexpr int SHARED_STEPS = COLUMN_WARPS == 2 ? ATTENTION_SHARED_STEPS : 0;
    static constexpr int OWN_STEPS = STEPS - SHARED_STEPS;
    static constexpr int KEYS = KV_TILE / COLUMN_WARPS; /* of a warp */
    static constexpr int KEY_GROUPS = KEYS / 8;
    static constexpr int COLUMN_GROUPS = (DIM / 8 + COLUMN_WARPS - 1) / COLUMN_WARPS;
    static constexpr bool EVEN = DIM / 8 % COLUMN_WARPS == 0;
    static constexpr int PAIR_STRIDE = KV_TILE + 8;
    /* Probabilities and maxima that warps of a row group exchange. */
    static constexpr bool EXCHANGES = COLUMN_WARPS > 1;
};

/* Shared memory: keys, values (before 8.0: in the same place), probabilities, maxima. */
template <class SHAPE> struct mma_shared {
    uint16_t *keys;
    uint16_t *values;
    uint16_t *pairs; /* [rows][PAIR_STRIDE] */
    float *most;     /* [COLUMN_WARPS][rows] */
    uint4 *queries;  /* [SHARED_STEPS][ROW_WARPS][32] fragments */

    __device__ __forceinline__ explicit mma_shared(unsigned char *memory) {
        keys = (uint16_t *)memory;
        values = keys + (DEVICE_PATH_AMPERE ? KV_TILE * SHAPE::STRIDE : 0);
        pairs = values + KV_TILE * SHAPE::STRIDE;
        most = (float *)(pairs + 16 * SHAPE::ROW_WARPS * SHAPE::PAIR_STRIDE);
        queries = (uint4 *)(most + SHAPE::COLUMN_WARPS * 16 * SHAPE::ROW_WARPS);
    }
};

/* A thread's share of a row group's state: rows lane / 4 and lane / 4 + 8, two columns of each
 * group of 8. Fragments as mma.m16n8k16 lays them out. */
template <class SHAPE> struct mma_state {
    float out[SHAPE::COLUMN_GROUPS][4];
    float sum[4]; /* a product with ones: columns are equal */
    float most[2];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int n = 0; n < SHAPE::COLUMN_GROUPS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                out[n][i] = 0;
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[i] = 0;
        most[0] = most[1] = -NUMBERS_INFINITY;
    }
    __device__ __forceinline__ state_summary summary(int half) const {
        return {most[half], sum[2 * half]};
    }
};

/* Where a thread stands. */
template <class SHAPE> struct mma_place {
    int lane, row_warp, column_warp;

    __device__ __forceinline__ mma_place() {
        int warp = (int)threadIdx.x / 32;
        lane = (int)threadIdx.x % 32;
        row_warp = warp / SHAPE::COLUMN_WARPS;
        column_warp = warp % SHAPE::COLUMN_WARPS;
    }
    __device__ __forceinline__ int packed(int half) const {
        return row_warp * 16 + lane / 4 + 8 * half;
    }
    __device__ __forceinline__ int column(int group) const {
        return (column_warp * SHAPE::COLUMN_GROUPS + group) * 8 + lane % 4 * 2;
    }
    __device__ __forceinline__ bool has(int group) const {
        return SHAPE::EVEN || column_warp * SHAPE::COLUMN_GROUPS + group < SHAPE::DIM / 8;
    }
};

/* Two neighbouring columns of a query, scaled; zeros where there is no row. */
template <class SHAPE>
__device__ __forceinline__ uint32_t mma_query_pair(const float *query, int column, float factor) {
    float2 pair = make_float2(0, 0);
    if (query)
        pair = *(const float2 *)(query + column);
    return ptx_pack<SHAPE::ELEMENT>(pair.x * factor, pair.y * factor);
}

/* Left operands of all steps, the first SHARED_STEPS to shared memory. */
template <class SHAPE>
__device__ __forceinline__ void mma_load_queries(const tile_walk &walk,
                                                 const mma_place<SHAPE> &place, uint4 *shared,
                                                 uint32_t queries[SHAPE::OWN_STEPS][4]) {
    float factor = walk.query_factor();
    const float *rows[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        rows[half] = place.packed(half) < walk.task.packed_count
                         ? walk.query(place.packed(half), SHAPE::DIM)
                         : nullptr;
#pragma unroll
    for (int step = 0; step < SHAPE::STEPS; step++) {
        uint32_t pairs[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            pairs[i] = mma_query_pair<SHAPE>(rows[i % 2],
                                             step * 16 + i / 2 * 8 + place.lane % 4 * 2, factor);
        if (step < SHAPE::SHARED_STEPS) {
            if (place.column_warp == 0)
                shared[(step * SHAPE::ROW_WARPS + place.row_warp) * 32 + place.lane] =
                    make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            queries[step - SHAPE::SHARED_STEPS][i] = pairs[i];
    }
}

template <class SHAPE>
__device__ __forceinline__ void mma_query_step(const uint32_t queries[SHAPE::OWN_STEPS][4],
                                               const uint4 *shared, const mma_place<SHAPE> &place,
                                               int step, uint32_t out[4]) {
    if (step < SHAPE::SHARED_STEPS) {
        uint4 a = shared[(step * SHAPE::ROW_WARPS + place.row_warp) * 32 + place.lane];
        out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        out[i] = queries[step - SHAPE::SHARED_STEPS][i];
}

/* scores[16 × KEYS] of the warp's keys. */
template <class SHAPE>
__device__ __forceinline__ void
mma_scores(const uint32_t queries[SHAPE::OWN_STEPS][4], const mma_shared<SHAPE> &shared,
           const mma_place<SHAPE> &place, float scores[SHAPE::KEY_GROUPS][4]) {
    const uint16_t *row =
        shared.keys + (place.column_warp * SHAPE::KEYS + place.lane % 8) * SHAPE::STRIDE;
#pragma unroll
    for (int i = 0; i < SHAPE::KEY_GROUPS * 4; i++)
        scores[i / 4][i % 4] = 0;
#pragma unroll
    for (int step = 0; step < SHAPE::STEPS; step += 2) {
        bool pair = step + 1 < SHAPE::STEPS;
        uint32_t a[2][4], b[4] = {};
        mma_query_step<SHAPE>(queries, shared.queries, place, step, a[0]);
        if (pair)
            mma_query_step<SHAPE>(queries, shared.queries, place, step + 1, a[1]);
#pragma unroll
        for (int n = 0; n < SHAPE::KEY_GROUPS; n++) {
            const uint16_t *at = row + n * 8 * SHAPE::STRIDE + step * 16;
            if (pair)
                ptx_load_matrix4(b, at + place.lane / 8 * 8);
            else
                ptx_load_matrix2(b, at + place.lane / 8 % 2 * 8);
            ptx_multiply<SHAPE::ELEMENT>(scores[n], a[0], b[0], b[1]);
            if (pair)
                ptx_multiply<SHAPE::ELEMENT>(scores[n], a[1], b[2], b[3]);
        }
    }
}

/* Softcap, and −inf where a row does not see a key. */
template <class SHAPE>
__device__ __forceinline__ void mma_mask(const tile_walk &walk, const mma_place<SHAPE> &place,
                                         int tile, float scores[SHAPE::KEY_GROUPS][4]) {
    float cap = walk.arguments.softcap;
    bool whole = walk.whole(tile);
    if (whole && !(cap > 0))
        return;
    int key_first = tile * KV_TILE + place.column_warp * SHAPE::KEYS + place.lane % 4 * 2;
    int2 visible[2] = {}; /* read again for the few tiles that need it: registers are scarce */
    if (!whole) {
        visible[0] = walk.visible(place.packed(0));
        visible[1] = walk.visible(place.packed(1));
    }
#pragma unroll
    for (int n = 0; n < SHAPE::KEY_GROUPS; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int key = key_first + n * 8 + i % 2;
            if (cap > 0)
                scores[n][i] = tile_softcap(scores[n][i], cap);
            if (!whole && (key < visible[i / 2].x || key > visible[i / 2].y))
                scores[n][i] = -NUMBERS_INFINITY;
        }
}

/* Largest score of the warp's keys in each of the thread's rows. */
template <class SHAPE>
__device__ __forceinline__ void mma_most(const float scores[SHAPE::KEY_GROUPS][4], float most[2]) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        most[half] = -NUMBERS_INFINITY;
#pragma unroll
        for (int n = 0; n < SHAPE::KEY_GROUPS; n++)
            most[half] = fmaxf(most[half], fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
        most[half] = fmaxf(most[half], __shfl_xor_sync(0xffffffffu, most[half], 1));
        most[half] = fmaxf(most[half], __shfl_xor_sync(0xffffffffu, most[half], 2));
    }
}

/* Scores become probabilities relative to the new maxima, in pairs of 16 bits; what was summed
 * before is rescaled. */
template <class SHAPE>
__device__ __forceinline__ void mma_softmax(const float scores[SHAPE::KEY_GROUPS][4],
                                            const float most[2], mma_state<SHAPE> &state,
                                            uint32_t pairs[SHAPE::KEY_GROUPS][2]) {
    float reference[2], factor[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float before = state.most[half];
        state.most[half] = fmaxf(before, most[half]);
        reference[half] = state_reference(state.most[half]);
        factor[half] = ptx_exp2(before - reference[half]);
    }
#pragma unroll
    for (int n = 0; n < SHAPE::KEY_GROUPS; n++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            pairs[n][half] =
                ptx_pack<SHAPE::ELEMENT>(ptx_exp2(scores[n][2 * half] - reference[half]),
                                         ptx_exp2(scores[n][2 * half + 1] - reference[half]));
#pragma unroll
    for (int i = 0; i < 4; i++)
        state.sum[i] *= factor[i / 2];
#pragma unroll
    for (int n = 0; n < SHAPE::COLUMN_GROUPS; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            state.out[n][i] *= factor[i / 2];
}

/* state += probabilities × values, and × ones. */
template <class SHAPE>
__device__ __forceinline__ void mma_values(const uint32_t probabilities[KV_TILE / 16][4],
                                           const uint16_t *values, const mma_place<SHAPE> &place,
                                           mma_state<SHAPE> &state) {
    constexpr uint32_t ONES = SHAPE::ELEMENT == ELEMENT_BF16 ? 0x3f803f80u : 0x3c003c00u;
    const uint16_t *row =
        values + place.lane * SHAPE::STRIDE + place.column_warp * SHAPE::COLUMN_GROUPS * 8;
#pragma unroll
    for (int step = 0; step < KV_TILE / 16; step += 2) {
#pragma unroll
        for (int n = 0; n < SHAPE::COLUMN_GROUPS; n++) {
            if (!place.has(n))
                break;
            uint32_t b[4];
            ptx_load_matrix4_transposed(b, row + step * 16 * SHAPE::STRIDE + n * 8);
            ptx_multiply<SHAPE::ELEMENT>(state.out[n], probabilities[step], b[0], b[1]);
            ptx_multiply<SHAPE::ELEMENT>(state.out[n], probabilities[step + 1], b[2], b[3]);
        }
        ptx_multiply<SHAPE::ELEMENT>(state.sum, probabilities[step], ONES, ONES);
        ptx_multiply<SHAPE::ELEMENT>(state.sum, probabilities[step + 1], ONES, ONES);
    }
}

/* Probabilities as left operands: of one warp the fragments are what it holds; of several they
 * pass through shared memory. */
template <class SHAPE>
__device__ __forceinline__ void mma_write_pairs(const uint32_t pairs[SHAPE::KEY_GROUPS][2],
                                                const mma_place<SHAPE> &place, uint16_t *shared) {
#pragma unroll
    for (int n = 0; n < SHAPE::KEY_GROUPS; n++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            *(uint32_t *)(shared + place.packed(half) * SHAPE::PAIR_STRIDE +
                          place.column_warp * SHAPE::KEYS + n * 8 + place.lane % 4 * 2) =
                pairs[n][half];
}

template <class SHAPE>
__device__ __forceinline__ void
mma_read_pairs(const uint32_t pairs[SHAPE::KEY_GROUPS][2], const mma_place<SHAPE> &place,
               const uint16_t *shared, uint32_t probabilities[KV_TILE / 16][4]) {
#pragma unroll
    for (int step = 0; step < KV_TILE / 16; step++) {
        if constexpr (SHAPE::EXCHANGES) {
            ptx_load_matrix4(probabilities[step],
                             shared + (place.row_warp * 16 + place.lane % 16) * SHAPE::PAIR_STRIDE +
                                 step * 16 + place.lane / 16 * 8);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                probabilities[step][i] = pairs[2 * step + i / 2][i % 2];
        }
    }
}

/* The state of a span goes into what was merged before it, which waits in the block's scratch:
 * [COLUMN_GROUPS][threads] of four, a thread reads back what it wrote itself. */
template <class SHAPE> struct mma_merged {
    float4 *scratch;
    state_summary summary[2];
    bool any;

    __device__ __forceinline__ explicit mma_merged(float *memory)
        : scratch((float4 *)memory + (int64_t)blockIdx.x * SHAPE::COLUMN_GROUPS * SHAPE::THREADS +
                  threadIdx.x),
          any(false) {
    }
    /* state = merged + state */
    __device__ __forceinline__ void take(mma_state<SHAPE> &state) {
        if (!any)
            return;
        state_factors factors[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            factors[half] = state_merge(summary[half], state.summary(half));
            state.most[half] = summary[half].most;
            state.sum[2 * half] = state.sum[2 * half + 1] = summary[half].sum;
        }
#pragma unroll
        for (int n = 0; n < SHAPE::COLUMN_GROUPS; n++) {
            float4 before = scratch[n * SHAPE::THREADS];
            state.out[n][0] = state_blend(before.x, state.out[n][0], factors[0]);
            state.out[n][1] = state_blend(before.y, state.out[n][1], factors[0]);
            state.out[n][2] = state_blend(before.z, state.out[n][2], factors[1]);
            state.out[n][3] = state_blend(before.w, state.out[n][3], factors[1]);
        }
    }
    /* merged += state, state = empty */
    __device__ __forceinline__ void put(mma_state<SHAPE> &state) {
        take(state);
        any = true;
        summary[0] = state.summary(0);
        summary[1] = state.summary(1);
#pragma unroll
        for (int n = 0; n < SHAPE::COLUMN_GROUPS; n++)
            scratch[n * SHAPE::THREADS] =
                make_float4(state.out[n][0], state.out[n][1], state.out[n][2], state.out[n][3]);
        state.clear();
    }
};

template <class SHAPE>
__device__ __forceinline__ void
mma_read_states(const tile_walk &walk, const mma_place<SHAPE> &place, mma_state<SHAPE> &state) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int packed = place.packed(half);
        if (packed >= walk.task.packed_count)
            continue;
        const float *from =
            state_row((const float *)walk.arguments.states, walk.task.state_from + packed,
                      walk.arguments.kv_heads, walk.head, SHAPE::DIM);
        state.most[half] = from[SHAPE::DIM];
        state.sum[2 * half] = state.sum[2 * half + 1] = from[SHAPE::DIM + 1];
#pragma unroll
        for (int n = 0; n < SHAPE::COLUMN_GROUPS; n++) {
            if (!place.has(n))
                break;
            float2 pair = *(const float2 *)(from + place.column(n));
            state.out[n][2 * half] = pair.x;
            state.out[n][2 * half + 1] = pair.y;
        }
    }
}

template <class SHAPE>
__device__ __forceinline__ void mma_write_states(const tile_walk &walk,
                                                 const mma_place<SHAPE> &place,
                                                 const mma_state<SHAPE> &state) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int packed = place.packed(half);
        if (packed >= walk.task.packed_count)
            continue;
        float *to = state_row(walk.arguments.states, walk.task.state + packed,
                              walk.arguments.kv_heads, walk.head, SHAPE::DIM);
#pragma unroll
        for (int n = 0; n < SHAPE::COLUMN_GROUPS; n++) {
            if (!place.has(n))
                break;
            *(float2 *)(to + place.column(n)) =
                make_float2(state.out[n][2 * half], state.out[n][2 * half + 1]);
        }
        if (place.column_warp == 0 && place.lane % 4 == 0)
            *(float2 *)(to + SHAPE::DIM) = make_float2(state.most[half], state.sum[2 * half]);
    }
}

/* Four neighbouring columns a lane, of 16 in two groups that the lanes of a row hold two by two: a
 * row's 32 bytes leave together. All lanes take part. */
__device__ __forceinline__ uint2 mma_gather_columns(uint32_t first_group, uint32_t second_group) {
    int lane = (int)threadIdx.x % 32, from = lane / 4 * 4 + lane % 2 * 2;
    uint32_t low_first = __shfl_sync(0xffffffffu, first_group, from);
    uint32_t high_first = __shfl_sync(0xffffffffu, first_group, from + 1);
    uint32_t low_second = __shfl_sync(0xffffffffu, second_group, from);
    uint32_t high_second = __shfl_sync(0xffffffffu, second_group, from + 1);
    bool second = lane % 4 >= 2;
    return make_uint2(second ? low_second : low_first, second ? high_second : high_first);
}

/* Two groups of 8 columns of one row in 16 bits, at out[index + the groups' first column]. */
template <int ELEMENT>
__device__ __forceinline__ void mma_write_groups(uint16_t *out, bool valid, const float values[4]) {
    int lane = (int)threadIdx.x % 32;
    uint2 columns = mma_gather_columns(ptx_pack<ELEMENT>(values[0], values[1]),
                                       ptx_pack<ELEMENT>(values[2], values[3]));
    if (valid)
        *(uint2 *)(out + lane % 4 * 4) = columns;
}

template <class SHAPE>
__device__ __forceinline__ void mma_write_out(const tile_walk &walk, const mma_place<SHAPE> &place,
                                              const mma_state<SHAPE> &state) {
    constexpr bool PAIRS = SHAPE::EVEN && SHAPE::COLUMN_GROUPS % 2 == 0;
    int element = walk.arguments.out_element;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int packed = place.packed(half);
        bool valid = packed < walk.task.packed_count;
        int64_t index = valid ? walk.out_index(packed, SHAPE::DIM) : 0;
        float factor = state_normaliser(state.summary(half));
#pragma unroll
        for (int n = 0; n < SHAPE::COLUMN_GROUPS; n += PAIRS ? 2 : 1) {
            float values[4];
#pragma unroll
            for (int i = 0; i < (PAIRS ? 4 : 2); i++)
                values[i] = state_output(state.out[n + i / 2][2 * half + i % 2], factor);
            if (PAIRS && element != ELEMENT_F32) {
                uint16_t *out = (uint16_t *)walk.arguments.out + index +
                                (place.column_warp * SHAPE::COLUMN_GROUPS + n) * 8;
                if (element == ELEMENT_F16)
                    mma_write_groups<ELEMENT_F16>(out, valid, values);
                else
                    mma_write_groups<ELEMENT_BF16>(out, valid, values);
                continue;
            }
            if (!valid || !place.has(n))
                continue;
#pragma unroll
            for (int i = 0; i < (PAIRS ? 2 : 1); i++)
                numbers_store2(walk.arguments.out, element, index + place.column(n + i),
                               values[2 * i], values[2 * i + 1]);
        }
    }
}

/* One tile. From 8.0: its keys are under way; its values' copy runs under the scores, the next
 * keys' under softmax and output. */
template <class SHAPE>
__device__ __forceinline__ void mma_tile(const tile_walk &walk, const mma_place<SHAPE> &place,
                                         const uint32_t queries[SHAPE::OWN_STEPS][4], int tile,
                                         int tile_end, const mma_shared<SHAPE> &shared,
                                         mma_state<SHAPE> &state) {
    float scores[SHAPE::KEY_GROUPS][4], most[2];
    if (!DEVICE_PATH_AMPERE) {
        __syncthreads(); /* the place's last values are read */
        tile_load<SHAPE::KV, SHAPE::DIM, SHAPE::THREADS>(walk, tile, false, shared.keys);
    }
    ptx_copy_wait<0>();
    __syncthreads(); /* keys are there; the last values are read */
    if (DEVICE_PATH_AMPERE) {
        tile_load<SHAPE::KV, SHAPE::DIM, SHAPE::THREADS>(walk, tile, true, shared.values);
        ptx_copy_commit();
    }
    mma_scores<SHAPE>(queries, shared, place, scores);
    mma_mask<SHAPE>(walk, place, tile, scores);
    mma_most<SHAPE>(scores, most);
    if (SHAPE::EXCHANGES && place.lane % 4 == 0)
#pragma unroll
        for (int half = 0; half < 2; half++)
            shared.most[place.column_warp * 16 * SHAPE::ROW_WARPS + place.packed(half)] =
                most[half];
    __syncthreads(); /* keys are read; maxima are there */
    if (!DEVICE_PATH_AMPERE)
        tile_load<SHAPE::KV, SHAPE::DIM, SHAPE::THREADS>(walk, tile, true, shared.values);
    else if (tile + 1 < tile_end)
        tile_load<SHAPE::KV, SHAPE::DIM, SHAPE::THREADS>(walk, tile + 1, false, shared.keys);
    ptx_copy_commit();
    if (SHAPE::EXCHANGES)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int warp = 0; warp < SHAPE::COLUMN_WARPS; warp++)
                most[half] = fmaxf(most[half],
                                   shared.most[warp * 16 * SHAPE::ROW_WARPS + place.packed(half)]);
    uint32_t pairs[SHAPE::KEY_GROUPS][2], probabilities[KV_TILE / 16][4];
    mma_softmax<SHAPE>(scores, most, state, pairs);
    if (SHAPE::EXCHANGES)
        mma_write_pairs<SHAPE>(pairs, place, shared.pairs);
    ptx_copy_wait<1>();
    __syncthreads(); /* values and probabilities are there */
    mma_read_pairs<SHAPE>(pairs, place, shared.pairs, probabilities);
    mma_values<SHAPE>(probabilities, shared.values, place, state);
}

template <class SHAPE>
__device__ __forceinline__ void mma_task(const tile_walk &walk, unsigned char *memory) {
    mma_shared<SHAPE> shared(memory);
    mma_place<SHAPE> place;
    uint32_t queries[SHAPE::OWN_STEPS][4];
    mma_state<SHAPE> state;
    mma_merged<SHAPE> merged(walk.arguments.scratch);
    int first = walk.tile_first(), end = walk.tile_end();
    mma_load_queries<SHAPE>(walk, place, shared.queries, queries);
    state.clear();
    if (walk.task.state_from >= 0) {
        mma_read_states<SHAPE>(walk, place, state);
        if (first < end)
            merged.put(state);
    }
    if (DEVICE_PATH_AMPERE && first < end) {
        tile_load<SHAPE::KV, SHAPE::DIM, SHAPE::THREADS>(walk, first, false, shared.keys);
        ptx_copy_commit();
    }
#pragma unroll 1
    for (int tile = first; tile < end; tile++) {
        if (tile % SPAN_TILES == 0 && tile > first)
            merged.put(state);
        mma_tile<SHAPE>(walk, place, queries, tile, end, shared, state);
    }
    merged.take(state);
    if (walk.task.state >= 0)
        mma_write_states<SHAPE>(walk, place, state);
    else
        mma_write_out<SHAPE>(walk, place, state);
}

#endif
