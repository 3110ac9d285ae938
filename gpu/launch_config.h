/* The one table of tiles and launch shapes: by kernel, matrix path (a class of compute
 * capabilities) and head_dim. Kernels take their constants from here; the host looks rows up. */
#ifndef GPU_LAUNCH_CONFIG_H
#define GPU_LAUNCH_CONFIG_H

#include <stdbool.h>

#include "gpu/kernels/kernel_arguments.h"

/* How a device multiplies. */
enum matrix_path {
    MATRIX_FMA,    /* below 7.5: fp32 FMA over fp16 storage */
    MATRIX_TURING, /* 7.5: m16n8k8 fp16, no cp.async */
    MATRIX_AMPERE, /* from 8.0: m16n8k16 fp16 and bf16, cp.async */
    MATRIX_PATH_COUNT
};

enum {
    ATTENTION_PREFILL_ROWS = 64, /* packed rows of a task */
    ATTENTION_DECODE_ROWS = 16,
    ATTENTION_HEAD_DIM_COUNT = 5, /* 64, 80, 96, 128, 256 */
    LINEAR_FEW_TILE = 16,         /* rows of a block of linear_<type>_few */
    LINEAR_MANY_TILE = 64,        /* and of linear_<type>_many */
    LINEAR_THREADS = 128,
    ROW_THREADS = 256,  /* kernels with a block a row, and those of any grid */
    WARP_THREADS = 128, /* kernels with a warp an item: WARP_THREADS / 32 items a block */
};

/* Attention on matrix units: 64 packed rows of prefill are four groups of 16, decode is one group.
 * Warps that share a group's rows take a part of the keys and of the output columns each: four of
 * decode; at head_dim 256, whose output would not fit one warp's registers, two of prefill.
 * By FMA: 128 threads; 32 packed rows of prefill, or 16 at head_dim 256, to stay within 48 KB. */
#define ATTENTION_COLUMN_WARPS(decode, head_dim) ((decode) ? 4 : (head_dim) > 128 ? 2 : 1)
#define ATTENTION_FMA_ROWS(decode, head_dim) \
    ((decode) || (head_dim) > 128 ? ATTENTION_DECODE_ROWS : ATTENTION_PREFILL_ROWS / 2)
#define ATTENTION_THREADS(matrix, decode, head_dim) \
    ((matrix) && !(decode) ? 128 * ATTENTION_COLUMN_WARPS(decode, head_dim) : 128)

/* Rows of keys, values and queries are padded by 8 elements, of probabilities by 8.
 * Keys and values have a buffer each from 8.0, else one. At head_dim 256 half of the
 * queries' fragments, 16 columns of a row in 32 bytes, wait in shared memory. */
#define ATTENTION_SHARED_STEPS 8
#define ATTENTION_TILE_BYTES(head_dim) (KV_TILE * ((head_dim) + 8) * 2)
#define ATTENTION_MATRIX_BYTES(buffers, rows, column_warps, head_dim)                    \
    ((buffers)*ATTENTION_TILE_BYTES(head_dim) +                                          \
     ((column_warps) > 1 ? (rows) * (KV_TILE + 8) * 2 + (rows) * (column_warps)*4 : 0) + \
     ((column_warps) == 2 ? (rows)*ATTENTION_SHARED_STEPS * 32 : 0))
/* Rows of probabilities by FMA, in floats: a warp's two groups of rows are 16 banks apart. */
#define ATTENTION_WEIGHT_STRIDE(rows) (KV_TILE + ((rows) > 16 ? 4 : 8))
#define ATTENTION_FMA_BYTES(rows, head_dim)                           \
    (ATTENTION_TILE_BYTES(head_dim) + (rows) * ((head_dim) + 8) * 2 + \
     (rows)*ATTENTION_WEIGHT_STRIDE(rows) * 4)

enum kernel_id {
    KERNEL_EMBED,
    KERNEL_RMS_NORM,
    KERNEL_FINISH,
    KERNEL_KV_WRITE,
    KERNEL_MERGE_STATES,
    KERNEL_GATED_ACTIVATION,
    KERNEL_SOFTCAP,
    KERNEL_DEQUANTISE,
    KERNEL_GATHER_ROWS,
    KERNEL_ARGMAX,
    KERNEL_ID_COUNT
};

/* What to load and how to launch it. */
struct launch_config {
    const char *image; /* name in gpu_images */
    const char *entry; /* function of the module */
    int threads;
    int rows;          /* packed rows (attention) or rows (linear) of a block; else 1 */
    int shared_bytes;  /* dynamic */
    int scratch_bytes; /* attention: of a block, where a task walks more than one span */
};

enum matrix_path launch_config_path(int compute_capability); /* 10 × major + minor: 89 */

/* The element type of matmul inputs and of `linear`. */
enum element launch_config_matmul_element(enum matrix_path path);

const struct launch_config *launch_config_find(enum kernel_id kernel);

/* NULL: no kernel for this head_dim, or KV element on this path (bf16 pages need MATRIX_AMPERE). */
const struct launch_config *launch_config_attention(enum matrix_path path, bool decode,
                                                    enum kv_element element, int head_dim);

/* Every type of enum weight_type; NULL for another number. `many`: the larger row tile. */
const struct launch_config *launch_config_linear(enum weight_type type, bool many);

/* Splits of k for `linear`, by the shape alone: enough blocks to keep a large device's memory busy
 * at few rows, at least 512 k a split. */
int launch_config_splits(int columns, int k);

/* Blocks of a kernel of "any grid" for so many useful threads, on a device of so many SMs. */
int launch_config_grid(int64_t threads, int block_threads, int multiprocessors);

#endif
