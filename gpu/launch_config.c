/* The rows of the table, and their look-up. */
#include "gpu/launch_config.h"

#include "core/weights/quant_type.h"

/* Two enums, one for C and one that CUDA can read, of the same ids. */
_Static_assert((int)WEIGHT_F32 == (int)QUANT_F32 && (int)WEIGHT_F16 == (int)QUANT_F16, "ids");
_Static_assert((int)WEIGHT_Q4_0 == (int)QUANT_Q4_0 && (int)WEIGHT_Q4_1 == (int)QUANT_Q4_1, "ids");
_Static_assert((int)WEIGHT_Q5_0 == (int)QUANT_Q5_0 && (int)WEIGHT_Q5_1 == (int)QUANT_Q5_1, "ids");
_Static_assert((int)WEIGHT_Q8_0 == (int)QUANT_Q8_0 && (int)WEIGHT_BF16 == (int)QUANT_BF16, "ids");
_Static_assert((int)WEIGHT_Q2_K == (int)QUANT_Q2_K && (int)WEIGHT_Q3_K == (int)QUANT_Q3_K, "ids");
_Static_assert((int)WEIGHT_Q4_K == (int)QUANT_Q4_K && (int)WEIGHT_Q5_K == (int)QUANT_Q5_K, "ids");
_Static_assert((int)WEIGHT_Q6_K == (int)QUANT_Q6_K && (int)WEIGHT_IQ4_NL == (int)QUANT_IQ4_NL,
               "ids");
_Static_assert((int)WEIGHT_IQ4_XS == (int)QUANT_IQ4_XS, "ids");

static const struct launch_config configs[KERNEL_ID_COUNT] = {
    [KERNEL_EMBED] = {"weight_kernels", "embed", ROW_THREADS, 1, 0, 0},
    [KERNEL_RMS_NORM] = {"row_kernels", "rms_norm", ROW_THREADS, 1, 0, 0},
    [KERNEL_FINISH] = {"row_kernels", "finish", ROW_THREADS, 1, 0, 0},
    [KERNEL_KV_WRITE] = {"page_kernels", "kv_write", WARP_THREADS, 1, 0, 0},
    [KERNEL_MERGE_STATES] = {"page_kernels", "merge_states", WARP_THREADS, 1, 0, 0},
    [KERNEL_GATED_ACTIVATION] = {"row_kernels", "gated_activation", ROW_THREADS, 1, 0, 0},
    [KERNEL_SOFTCAP] = {"row_kernels", "softcap", ROW_THREADS, 1, 0, 0},
    [KERNEL_DEQUANTISE] = {"weight_kernels", "dequantise", ROW_THREADS, 1, 0, 0},
    [KERNEL_GATHER_ROWS] = {"row_kernels", "gather_rows", ROW_THREADS, 1, 0, 0},
    [KERNEL_ARGMAX] = {"row_kernels", "argmax", ROW_THREADS, 1, 0, 0},
};

const struct launch_config *launch_config_find(enum kernel_id kernel) {
    return &configs[kernel];
}

enum matrix_path launch_config_path(int compute_capability) {
    return compute_capability >= 80   ? MATRIX_AMPERE
           : compute_capability >= 75 ? MATRIX_TURING
                                      : MATRIX_FMA;
}

enum element launch_config_matmul_element(enum matrix_path path) {
    return path == MATRIX_AMPERE ? ELEMENT_BF16 : ELEMENT_F16;
}

/* Scratch is a block's output state: threads × what each holds of it. */
#define MATRIX_SCRATCH(decode, dim)                           \
    ((((dim) / 8 + ATTENTION_COLUMN_WARPS(decode, dim) - 1) / \
      ATTENTION_COLUMN_WARPS(decode, dim)) *                  \
     ATTENTION_THREADS(1, decode, dim) * 16)
#define FMA_SCRATCH(decode, dim) \
    (ATTENTION_FMA_ROWS(decode, dim) / 8 * (((dim) / 2 + 15) / 16) * 128 * 8)

#define MATRIX_ROWS(decode) ((decode) ? ATTENTION_DECODE_ROWS : ATTENTION_PREFILL_ROWS)
#define MATRIX_CONFIG(buffers, name, decode, kv, dim)                                          \
    {                                                                                          \
        "attention_" kv, "attention_" name "_" kv "_" #dim, ATTENTION_THREADS(1, decode, dim), \
            MATRIX_ROWS(decode),                                                               \
            ATTENTION_MATRIX_BYTES(buffers, MATRIX_ROWS(decode),                               \
                                   ATTENTION_COLUMN_WARPS(decode, dim), dim),                  \
            MATRIX_SCRATCH(decode, dim)                                                        \
    }
#define FMA_CONFIG(unused, name, decode, kv, dim)                                                 \
    {                                                                                             \
        "attention_" kv, "attention_" name "_" kv "_" #dim, 128, ATTENTION_FMA_ROWS(decode, dim), \
            ATTENTION_FMA_BYTES(ATTENTION_FMA_ROWS(decode, dim), dim), FMA_SCRATCH(decode, dim)   \
    }

static const int head_dims[ATTENTION_HEAD_DIM_COUNT] = {64, 80, 96, 128, 256};
#define BY_DIM(CONFIG, buffers, name, decode, kv)                                          \
    {                                                                                      \
        CONFIG(buffers, name, decode, kv, 64), CONFIG(buffers, name, decode, kv, 80),      \
            CONFIG(buffers, name, decode, kv, 96), CONFIG(buffers, name, decode, kv, 128), \
            CONFIG(buffers, name, decode, kv, 256)                                         \
    }
#define BY_USE(CONFIG, buffers, kv) \
    { BY_DIM(CONFIG, buffers, "prefill", 0, kv), BY_DIM(CONFIG, buffers, "decode", 1, kv) }
#define BY_KV(CONFIG, buffers)                               \
    {                                                        \
        [KV_ELEMENT_F16] = BY_USE(CONFIG, buffers, "f16"),   \
        [KV_ELEMENT_BF16] = BY_USE(CONFIG, buffers, "bf16"), \
        [KV_ELEMENT_INT8] = BY_USE(CONFIG, buffers, "int8"), \
        [KV_ELEMENT_E4M3] = BY_USE(CONFIG, buffers, "e4m3"), \
    }

static const struct launch_config attention[MATRIX_PATH_COUNT][4][2][ATTENTION_HEAD_DIM_COUNT] = {
    [MATRIX_FMA] = BY_KV(FMA_CONFIG, 1),
    [MATRIX_TURING] = BY_KV(MATRIX_CONFIG, 1),
    [MATRIX_AMPERE] = BY_KV(MATRIX_CONFIG, 2),
};

const struct launch_config *launch_config_attention(enum matrix_path path, bool decode,
                                                    enum kv_element element, int head_dim) {
    if (element == KV_ELEMENT_BF16 && path != MATRIX_AMPERE)
        return NULL;
    for (int i = 0; i < ATTENTION_HEAD_DIM_COUNT; i++)
        if (head_dims[i] == head_dim)
            return &attention[path][element][decode][i];
    return NULL;
}

#define LINEAR_CONFIGS(image, name)                                               \
    {                                                                             \
        {image, "linear_" name "_few", LINEAR_THREADS, LINEAR_FEW_TILE, 0, 0}, {  \
            image, "linear_" name "_many", LINEAR_THREADS, LINEAR_MANY_TILE, 0, 0 \
        }                                                                         \
    }

static const struct linear_row {
    enum weight_type type;
    struct launch_config configs[2];
} linears[] = {
    {WEIGHT_F32, LINEAR_CONFIGS("linear_dense", "f32")},
    {WEIGHT_F16, LINEAR_CONFIGS("linear_dense", "f16")},
    {WEIGHT_BF16, LINEAR_CONFIGS("linear_dense", "bf16")},
    {WEIGHT_Q4_0, LINEAR_CONFIGS("linear_simple", "q4_0")},
    {WEIGHT_Q4_1, LINEAR_CONFIGS("linear_simple", "q4_1")},
    {WEIGHT_Q5_0, LINEAR_CONFIGS("linear_simple", "q5_0")},
    {WEIGHT_Q5_1, LINEAR_CONFIGS("linear_simple", "q5_1")},
    {WEIGHT_Q8_0, LINEAR_CONFIGS("linear_simple", "q8_0")},
    {WEIGHT_IQ4_NL, LINEAR_CONFIGS("linear_simple", "iq4_nl")},
    {WEIGHT_Q2_K, LINEAR_CONFIGS("linear_k", "q2_k")},
    {WEIGHT_Q3_K, LINEAR_CONFIGS("linear_k", "q3_k")},
    {WEIGHT_Q4_K, LINEAR_CONFIGS("linear_k", "q4_k")},
    {WEIGHT_Q5_K, LINEAR_CONFIGS("linear_k", "q5_k")},
    {WEIGHT_Q6_K, LINEAR_CONFIGS("linear_k", "q6_k")},
    {WEIGHT_IQ4_XS, LINEAR_CONFIGS("linear_k", "iq4_xs")},
};

const struct launch_config *launch_config_linear(enum weight_type type, bool many) {
    for (size_t i = 0; i < sizeof linears / sizeof linears[0]; i++)
        if (linears[i].type == type)
            return &linears[i].configs[many];
    return NULL;
}

/* 264 blocks are two a multiprocessor of the largest device; 512 k are eight chunks. */
int launch_config_splits(int columns, int k) {
    enum { BLOCKS = 264, SPLIT_K = 512, SPLITS_MAX = 16 };
    int blocks = (columns + LINEAR_COLUMNS - 1) / LINEAR_COLUMNS;
    int wanted = blocks > 0 ? (BLOCKS + blocks - 1) / blocks : 1, most = k / SPLIT_K;
    most = most < 1 ? 1 : most > SPLITS_MAX ? SPLITS_MAX : most;
    return wanted < most ? wanted : most;
}

int launch_config_grid(int64_t threads, int block_threads, int multiprocessors) {
    enum { THREADS_OF_MULTIPROCESSOR = 2048 };
    int64_t blocks = (threads + block_threads - 1) / block_threads;
    int64_t most = (int64_t)multiprocessors * (THREADS_OF_MULTIPROCESSOR / block_threads);
    return (int)(blocks < most ? blocks : most);
}
