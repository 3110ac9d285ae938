/* What both matrix paths of attention share: which keys a task's rows see, and tiles of 64 keys or
 * values from a page to shared memory as 16-bit rows. */
#ifndef GPU_KERNELS_ATTENTION_TILE_CUH
#define GPU_KERNELS_ATTENTION_TILE_CUH

#include "gpu/launch_config.h"
#include "gpu/kernels/attention_state.cuh"
#include "gpu/kernels/kv_element.cuh"

enum { SPAN_TILES = ATTENTION_SPAN / KV_TILE };

/* What the products of pages of this element are taken in. */
constexpr __device__ int tile_element(int kv) {
    return kv == KV_ELEMENT_F16 || !DEVICE_PATH_AMPERE ? ELEMENT_F16 : ELEMENT_BF16;
}

/* One task of one KV head. */
struct tile_walk {
    const attention_arguments &arguments;
    const attention_task &task;
    int head; /* KV head */

    __device__ __forceinline__ int first_key(int position) const {
        return arguments.window > 0 ? max(position - arguments.window + 1, 0) : 0;
    }
    /* Tiles that some row sees. */
    __device__ __forceinline__ int tile_first() const {
        return max(task.span_first * SPAN_TILES, first_key(task.position_least) / KV_TILE);
    }
    __device__ __forceinline__ int tile_end() const {
        int keys = min(task.key_count, task.position_most + 1);
        return min(task.span_end * SPAN_TILES, (max(keys, 0) + KV_TILE - 1) / KV_TILE);
    }
    /* Whether all rows see all keys of the tile. */
    __device__ __forceinline__ bool whole(int tile) const {
        return tile * KV_TILE + KV_TILE - 1 <= min(task.position_least, task.key_count - 1) &&
               first_key(task.position_most) <= tile * KV_TILE;
    }
    __device__ __forceinline__ const uint8_t *share(int tile) const {
        int64_t page = arguments.page_table[task.pages + tile];
        return arguments.kv + page * arguments.page_stride + head * arguments.head_stride;
    }
    /* Row of the step that a packed row of the task belongs to, and its query head. */
    __device__ __forceinline__ int64_t row(int packed) const {
        return task.row_first + (task.packed_first + packed) / arguments.group;
    }
    __device__ __forceinline__ int query_head(int packed) const {
        return head * arguments.group + (task.packed_first + packed) % arguments.group;
    }
    /* Last and first key that a packed row sees; rows that are not there see what is never
     * stored. */
    __device__ __forceinline__ int2 visible(int packed) const {
        int position = packed < task.packed_count ? arguments.positions[row(packed)] : -1;
        return make_int2(first_key(position), min(position, task.key_count - 1));
    }
    __device__ __forceinline__ const float *query(int packed, int dim) const {
        return arguments.qkv + row(packed) * arguments.qkv_stride +
               (int64_t)query_head(packed) * dim;
    }
    /* Queries are scaled so that scores come out in base 2, unless a softcap comes between. */
    __device__ __forceinline__ float query_factor() const {
        return arguments.softcap > 0 ? arguments.scale : arguments.scale * NUMBERS_LOG2E;
    }
    __device__ __forceinline__ int64_t out_index(int packed, int dim) const {
        int64_t heads = (int64_t)arguments.kv_heads * arguments.group;
        return (row(packed) * heads + query_head(packed)) * dim;
    }
};

/* Score to base 2, behind the softcap. */
__device__ __forceinline__ float tile_softcap(float score, float cap) {
    return cap * NUMBERS_LOG2E * numbers_tanh(score / cap);
}

/* 16 elements of 8 bits to two 16-byte pieces. */
template <int KV>
__device__ __forceinline__ void tile_expand(const uint4 bytes, float scale, uint16_t *out) {
    const uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    uint32_t pairs[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        pairs[i] = ptx_pack<tile_element(KV)>(kv_decode8<KV>(words[i / 2], i % 2 * 2) * scale,
                                              kv_decode8<KV>(words[i / 2], i % 2 * 2 + 1) * scale);
    *(uint4 *)out = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    *(uint4 *)(out + 8) = make_uint4(pairs[4], pairs[5], pairs[6], pairs[7]);
}

/* The keys, or the values, of a tile into shared rows of DIM + 8: an odd number of 16-byte pieces,
 * so that eight rows lie in different banks. Rows at or behind key_count are zeros: whatever lies
 * in their slots is not read. The copies of 16-bit elements are asynchronous where the device can.
 */
template <int KV, int DIM, int THREADS>
__device__ __forceinline__ void tile_load(const tile_walk &walk, int tile, bool values,
                                          uint16_t *out) {
    const uint8_t *share = walk.share(tile);
    int count = walk.task.key_count - tile * KV_TILE;
    if (KV == KV_ELEMENT_F16 || KV == KV_ELEMENT_BF16) {
        constexpr int PIECES = DIM / 8;
        const uint8_t *from = share + (values ? KV_TILE * DIM * 2 : 0) + threadIdx.x * 16;
        int row = (int)threadIdx.x / PIECES, column = (int)threadIdx.x % PIECES;
        uint16_t *to = out + row * (DIM + 8) + column * 8;
        /* Copies through registers: so many that they fit beside the state. */
        constexpr int COUNT = KV_TILE * PIECES / THREADS, UNROLL = DEVICE_PATH_AMPERE ? COUNT : 4;
#pragma unroll UNROLL
        for (int i = 0; i < COUNT; i++) {
            ptx_copy16(to, from + i * (THREADS * 16), row < count);
            /* The next piece, THREADS further on. */
            constexpr int ROWS = THREADS / PIECES, REST = THREADS % PIECES;
            bool carry = REST && column + REST >= PIECES;
            row += ROWS + carry;
            column += carry ? REST - PIECES : REST;
            to += ROWS * (DIM + 8) + REST * 8 + (carry ? 8 : 0);
        }
        return;
    }
    constexpr int PIECES = DIM / 16;
    const uint8_t *from = share + (values ? KV_TILE * DIM : 0);
    const float *scales = (const float *)(share + 2 * KV_TILE * DIM) + (values ? KV_TILE : 0);
#pragma unroll 2
    for (int i = 0; i < (KV_TILE * PIECES + THREADS - 1) / THREADS; i++) {
        int piece = i * THREADS + (int)threadIdx.x, row = piece / PIECES;
        if (KV_TILE * PIECES % THREADS && row >= KV_TILE)
            break;
        bool valid = row < count;
        uint4 bytes = valid ? *(const uint4 *)(from + (int64_t)piece * 16) : make_uint4(0, 0, 0, 0);
        float scale = valid ? scales[row] : 0.0f;
        tile_expand<KV>(bytes, KV == KV_ELEMENT_E4M3 ? scale * KV_E4M3_FACTOR : scale,
                        out + row * (DIM + 8) + piece % PIECES * 16);
    }
}

#endif
