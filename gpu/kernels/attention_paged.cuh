/* The attention kernels of one KV element: attention_prefill_<kv>_<dim> and
 * attention_decode_<kv>_<dim>; kernel_arguments.h says what they compute. Both run the same code on
 * tiles of a different height, so a row has the same bits from both.
 *
 * FLOPs of a task: 4 × packed rows × keys × head_dim. Bytes: its keys' pages once (2 × 64 ×
 * head_dim × element bytes a page), 4 head_dim a query row, 2 head_dim out. Decode waits for
 * memory while group × 2 / element bytes is below the device's FLOPs a byte; prefill for the
 * matrix units. The tiles' heights: launch_config.h. Splitting a long sequence's spans over blocks
 * and merging their states is Flash-Decoding (Dao et al. 2023), at a fixed 512 keys. */
#ifndef GPU_KERNELS_ATTENTION_PAGED_CUH
#define GPU_KERNELS_ATTENTION_PAGED_CUH

#if DEVICE_PATH_MATRIX
#include "gpu/kernels/attention_mma.cuh"
#else
#include "gpu/kernels/attention_fma.cuh"
#endif

extern __shared__ __align__(16) unsigned char attention_memory[];

template <int KV, int DIM, bool DECODE>
__device__ __forceinline__ void attention_walk(const attention_arguments &arguments) {
    int64_t count = (int64_t)arguments.task_count * arguments.kv_heads;
    for (int64_t item = blockIdx.x; item < count; item += gridDim.x) {
        const attention_task &task = arguments.tasks[item / arguments.kv_heads];
        tile_walk walk = {arguments, task, (int)(item % arguments.kv_heads)};
#if DEVICE_PATH_MATRIX
        mma_task<mma_shape<KV, DIM, DECODE ? 1 : ATTENTION_PREFILL_ROWS / 16,
                           ATTENTION_COLUMN_WARPS(DECODE, DIM)>>(walk, attention_memory);
#else
        fma_task<fma_shape<KV, DIM, ATTENTION_FMA_ROWS(DECODE, DIM)>>(walk, attention_memory);
#endif
    }
}

#define ATTENTION_KERNEL(NAME, KV, DIM, DECODE)                               \
    extern "C" __global__ void __launch_bounds__(                             \
        ATTENTION_THREADS(DEVICE_PATH_MATRIX, DECODE, DIM), 1)                \
        NAME##_##DIM(const __grid_constant__ attention_arguments arguments) { \
        attention_walk<KV, DIM, DECODE>(arguments);                           \
    }

#define ATTENTION_KERNELS(NAME, KV, DECODE) \
    ATTENTION_KERNEL(NAME, KV, 64, DECODE)  \
    ATTENTION_KERNEL(NAME, KV, 80, DECODE)  \
    ATTENTION_KERNEL(NAME, KV, 96, DECODE)  \
    ATTENTION_KERNEL(NAME, KV, 128, DECODE) \
    ATTENTION_KERNEL(NAME, KV, 256, DECODE)

#endif
