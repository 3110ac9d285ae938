/* A matmul that decodes weight blocks as it goes: linear_<type>_few and linear_<type>_many.
 *
 * A block of 128 threads takes 64 columns (outputs) and 16 or 64 rows. Weights of 64 columns × 64 k
 * are decoded to 16 bits in shared memory once for all rows; the activations lie beside them. Four
 * warps take 16 columns each; every element of the result is one fp32 chain over ascending k, so
 * its bits depend neither on the height of the tile nor on the other rows. Few columns would leave
 * a large device idle: then k is cut into a number of splits that follows from the shape alone, and
 * `finish` adds them in order.
 *
 * Bytes: columns × row_bytes once a block of rows, 2 rows × k, 4 rows × columns × splits. FLOPs:
 * 2 rows × columns × k. Waits for memory up to about 16 rows of 4-bit weights; many rows are better
 * served by dequantise and the library's matmul. */
#ifndef GPU_KERNELS_LINEAR_BLOCKS_CUH
#define GPU_KERNELS_LINEAR_BLOCKS_CUH

#include "gpu/launch_config.h"
#include "gpu/kernels/block_formats.cuh"

enum {
    LINEAR_ELEMENT = DEVICE_PATH_AMPERE ? ELEMENT_BF16 : ELEMENT_F16,
    LINEAR_CHUNK = 64,                /* k at a time */
    LINEAR_STRIDE = LINEAR_CHUNK + 8, /* of a shared row: eight rows in different banks */
    LINEAR_PIECES = LINEAR_CHUNK / 8, /* of 16 bytes */
};

/* The k of a split: whole chunks, shared out as evenly as they go. */
struct linear_range {
    int first;
    int end;
};

__device__ __forceinline__ linear_range linear_split(int k, int split, int split_count) {
    int64_t chunks = (k + LINEAR_CHUNK - 1) / LINEAR_CHUNK;
    int first = (int)(chunks * split / split_count) * LINEAR_CHUNK;
    int end = (int)(chunks * (split + 1) / split_count) * LINEAR_CHUNK;
    return {first, min(end, k)};
}

/* Decoded weights [64 columns][64 k], zeros beyond the matrix. */
template <int TYPE>
__device__ __forceinline__ void linear_load_weights(const linear_arguments &arguments,
                                                    int column_first, int k_first, int k_end,
                                                    uint16_t *out) {
    constexpr int COUNT = LINEAR_COLUMNS * LINEAR_PIECES / LINEAR_THREADS;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        int piece = i * LINEAR_THREADS + (int)threadIdx.x;
        int column = piece / LINEAR_PIECES, k = k_first + piece % LINEAR_PIECES * 8;
        float values[8] = {};
        if (column_first + column < arguments.columns && k < k_end)
            block_decode_row<TYPE>(
                arguments.weights + (column_first + column) * arguments.row_bytes, k, values);
        *(uint4 *)(out + column * LINEAR_STRIDE + piece % LINEAR_PIECES * 8) =
            make_uint4(ptx_pack<LINEAR_ELEMENT>(values[0], values[1]),
                       ptx_pack<LINEAR_ELEMENT>(values[2], values[3]),
                       ptx_pack<LINEAR_ELEMENT>(values[4], values[5]),
                       ptx_pack<LINEAR_ELEMENT>(values[6], values[7]));
    }
}

/* Activations [ROWS][64 k], zeros beyond the rows and the split. */
template <int ROWS>
__device__ __forceinline__ void linear_load_rows(const linear_arguments &arguments, int row_first,
                                                 int k_first, int k_end, uint16_t *out) {
#pragma unroll
    for (int i = 0; i < ROWS * LINEAR_PIECES / LINEAR_THREADS; i++) {
        int piece = i * LINEAR_THREADS + (int)threadIdx.x;
        int row = piece / LINEAR_PIECES, k = k_first + piece % LINEAR_PIECES * 8;
        bool valid = row_first + row < arguments.rows && k < k_end;
        const uint16_t *from =
            arguments.in + (valid ? (int64_t)(row_first + row) * arguments.k + k : 0);
        ptx_copy16(out + row * LINEAR_STRIDE + piece % LINEAR_PIECES * 8, from, valid);
    }
    ptx_copy_commit();
}

#if DEVICE_PATH_MATRIX
/* A warp: all rows × its 16 columns. */
template <int ROWS> struct linear_sums {
    float sums[ROWS / 16][2][4];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < ROWS / 16 * 8; i++)
            sums[i / 8][i / 4 % 2][i % 4] = 0;
    }
    __device__ __forceinline__ void add(const uint16_t *rows, const uint16_t *weights) {
        int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
        for (int k = 0; k < LINEAR_CHUNK; k += 16) {
            uint32_t b[4];
            ptx_load_matrix4(b, weights + (warp * 16 + lane / 16 * 8 + lane % 8) * LINEAR_STRIDE +
                                    k + lane / 8 % 2 * 8);
#pragma unroll
            for (int m = 0; m < ROWS / 16; m++) {
                uint32_t a[4];
                ptx_load_matrix4(a,
                                 rows + (m * 16 + lane % 16) * LINEAR_STRIDE + k + lane / 16 * 8);
                ptx_multiply<LINEAR_ELEMENT>(sums[m][0], a, b[0], b[1]);
                ptx_multiply<LINEAR_ELEMENT>(sums[m][1], a, b[2], b[3]);
            }
        }
    }
    template <class STORE> __device__ __forceinline__ void each(STORE store) const {
        int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
        for (int i = 0; i < ROWS / 16 * 8; i++)
            store(i / 8 * 16 + i % 4 / 2 * 8 + lane / 4,
                  warp * 16 + i / 4 % 2 * 8 + lane % 4 * 2 + i % 2, sums[i / 8][i / 4 % 2][i % 4]);
    }
};
#else
/* A thread: rows warp, warp + 4, ... × columns lane, lane + 32. */
template <int ROWS> struct linear_sums {
    float sums[ROWS / 4][2];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < ROWS / 2; i++)
            sums[i / 2][i % 2] = 0;
    }
    __device__ __forceinline__ void add(const uint16_t *rows, const uint16_t *weights) {
        int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll 1
        for (int k = 0; k < LINEAR_CHUNK; k += 8) {
            float weight[2][8];
            unpack(weights + lane * LINEAR_STRIDE + k, weight[0]);
            unpack(weights + (lane + 32) * LINEAR_STRIDE + k, weight[1]);
#pragma unroll
            for (int m = 0; m < ROWS / 4; m++) {
                float row[8];
                unpack(rows + (m * 4 + warp) * LINEAR_STRIDE + k, row);
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    sums[m][0] = fmaf(row[i], weight[0][i], sums[m][0]);
                    sums[m][1] = fmaf(row[i], weight[1][i], sums[m][1]);
                }
            }
        }
    }
    template <class STORE> __device__ __forceinline__ void each(STORE store) const {
        int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
        for (int i = 0; i < ROWS / 2; i++)
            store(i / 2 * 4 + warp, lane + i % 2 * 32, sums[i / 2][i % 2]);
    }

  private:
    static __device__ __forceinline__ void unpack(const uint16_t *in, float out[8]) {
        uint4 pieces = *(const uint4 *)in;
        const uint32_t words[4] = {pieces.x, pieces.y, pieces.z, pieces.w};
#pragma unroll
        for (int i = 0; i < 8; i++)
            out[i] = ptx_f16_to_f32((uint16_t)(words[i / 2] >> (i % 2 * 16)));
    }
};
#endif

/* Two buffers: the next chunk is decoded, and its rows copied, while this one is multiplied. */
template <int TYPE, int ROWS>
__device__ __forceinline__ void linear_walk(const linear_arguments &arguments) {
    __shared__ __align__(16) uint16_t weights[2][LINEAR_COLUMNS * LINEAR_STRIDE];
    __shared__ __align__(16) uint16_t rows[2][ROWS * LINEAR_STRIDE];
    int column_blocks = (arguments.columns + LINEAR_COLUMNS - 1) / LINEAR_COLUMNS;
    int64_t block = blockIdx.x;
    int column_first = (int)(block % column_blocks) * LINEAR_COLUMNS;
    int split = (int)(block / column_blocks % arguments.split_count);
    int row_first = (int)(block / column_blocks / arguments.split_count) * ROWS;
    linear_range range = linear_split(arguments.k, split, arguments.split_count);
    linear_sums<ROWS> sums;
    sums.clear();
    if (range.first < range.end) {
        linear_load_rows<ROWS>(arguments, row_first, range.first, range.end, rows[0]);
        linear_load_weights<TYPE>(arguments, column_first, range.first, range.end, weights[0]);
    }
    int buffer = 0;
#pragma unroll 1
    for (int k = range.first; k < range.end; k += LINEAR_CHUNK, buffer ^= 1) {
        ptx_copy_wait<0>();
        __syncthreads(); /* this buffer is there, the other is read */
        if (k + LINEAR_CHUNK < range.end) {
            linear_load_rows<ROWS>(arguments, row_first, k + LINEAR_CHUNK, range.end,
                                   rows[buffer ^ 1]);
            linear_load_weights<TYPE>(arguments, column_first, k + LINEAR_CHUNK, range.end,
                                      weights[buffer ^ 1]);
        }
        sums.add(rows[buffer], weights[buffer]);
    }
    sums.each([&](int row, int column, float sum) {
        if (row_first + row < arguments.rows && column_first + column < arguments.columns)
            arguments
                .parts[((int64_t)split * arguments.rows + row_first + row) * arguments.columns +
                       column_first + column] = sum;
    });
}

#define LINEAR_KERNEL(NAME, TYPE, ROWS)                            \
    extern "C" __global__ void __launch_bounds__(LINEAR_THREADS)   \
        NAME(const __grid_constant__ linear_arguments arguments) { \
        linear_walk<TYPE, ROWS>(arguments);                        \
    }

#define LINEAR_KERNELS(NAME, TYPE)                            \
    LINEAR_KERNEL(linear_##NAME##_few, TYPE, LINEAR_FEW_TILE) \
    LINEAR_KERNEL(linear_##NAME##_many, TYPE, LINEAR_MANY_TILE)

#endif
