/* What the host hands to each CUDA kernel: one struct a kernel, passed by value as its only
 * parameter. Read by C11 and by CUDA C++; a pointer is a typed device pointer there and a 64-bit
 * device address here, so both sides see one layout.
 *
 * Rows are rows of the step. Counts are elements, strides are elements unless named bytes. Every
 * kernel uses grid.x only and block.x only; "grid" says how many blocks a kernel needs, and a grid
 * of 0 blocks is not launched. Kernels that say "any grid" walk their work with a stride of the
 * grid. Threads a block and shared bytes are in launch_config.h.
 *
 * A matmul's result is fp32 [rows][columns], not yet multiplied with its row scale nor biased: the
 * kernel that reads it next does both (`row_scale`, `bias`; NULL: none).
 *
 * fp16 range: where an fp16 matmul input could overflow, its row is written times a power of two
 * and row_scale[row] is the inverse that the result must be multiplied with; otherwise 1.
 * bf16 and fp32 rows are never scaled. */
#ifndef GPU_KERNELS_KERNEL_ARGUMENTS_H
#define GPU_KERNELS_KERNEL_ARGUMENTS_H

#include <stdint.h>

#if defined(__CUDACC__) || defined(__CUDA__) /* nvcc, clang */
#define DEVICE_POINTER(type) type *
#else
#define DEVICE_POINTER(type) uint64_t
#endif

/* Element types of activations. Matmul inputs are bf16 from compute capability 8.0, else fp16. */
enum element { ELEMENT_F32, ELEMENT_F16, ELEMENT_BF16 };

/* Element types of KV pages. */
enum kv_element { KV_ELEMENT_F16, KV_ELEMENT_BF16, KV_ELEMENT_INT8, KV_ELEMENT_E4M3 };

/* Weight formats, blocks as in the file; the numbers are GGUF's type ids (enum quant_id). */
enum weight_type {
    WEIGHT_F32 = 0,
    WEIGHT_F16 = 1,
    WEIGHT_Q4_0 = 2,
    WEIGHT_Q4_1 = 3,
    WEIGHT_Q5_0 = 6,
    WEIGHT_Q5_1 = 7,
    WEIGHT_Q8_0 = 8,
    WEIGHT_Q2_K = 10,
    WEIGHT_Q3_K = 11,
    WEIGHT_Q4_K = 12,
    WEIGHT_Q5_K = 13,
    WEIGHT_Q6_K = 14,
    WEIGHT_IQ4_NL = 20,
    WEIGHT_IQ4_XS = 23,
    WEIGHT_BF16 = 30,
};

enum kernel_rope { KERNEL_ROPE_NONE, KERNEL_ROPE_ADJACENT, KERNEL_ROPE_HALVES };

enum kernel_gate { KERNEL_GATE_SILU, KERNEL_GATE_GELU_TANH };

/* uint32[2] in device memory, zeroed by the host when it wants to; only for reports. */
enum { COUNTER_SCALED_ROWS, COUNTER_OVERFLOWED_VALUES, COUNTER_COUNT };

/* ---- KV pages ----
 * A page holds KV_TILE tokens of all layers and KV heads of a group. The share of one layer and
 * KV head is contiguous and 16-byte aligned:
 *   keys   [64 tokens][head_dim], then values [64 tokens][head_dim], of the KV element; then, for
 *   the 8-bit types only, float[64] scales of the keys and float[64] of the values, one a token:
 *   value = element × scale. int8: largest size → 127; e4m3: largest size → 448.
 * It lies at kv + page × page_stride + head × head_stride (bytes; the host adds the layer's offset
 * to kv). No dimension is padded. Tokens at or behind key_count are never read, so a page needs no
 * zeroing; a vector that is not finite has a NaN scale, or stays so in 16 bits. */
enum { KV_TILE = 64, ATTENTION_SPAN = 512 };

static inline uint64_t kv_share_bytes(enum kv_element element, int head_dim) {
    uint64_t elements = 2ull * KV_TILE * (uint64_t)head_dim;
    return element == KV_ELEMENT_F16 || element == KV_ELEMENT_BF16
               ? elements * 2
               : elements + 2ull * KV_TILE * sizeof(float);
}

/* embed: out[row] = table[tokens[row]] × scale. Any grid, rows × width / 8 threads useful.
 * A token outside [0, vocab) gives a row of NaN. width: a multiple of 8. */
struct embed_arguments {
    DEVICE_POINTER(const uint8_t) table;  /* [vocab] rows of row_bytes, blocks of `type` */
    DEVICE_POINTER(const int32_t) tokens; /* [rows] */
    DEVICE_POINTER(float) out;            /* [rows][width] */
    int64_t row_bytes;
    int32_t rows;
    int32_t width;
    int32_t vocab;
    int32_t type; /* enum weight_type */
    float scale;
    int32_t padding;
};

/* rms_norm: x = in × row_scale + bias; with `residual`: x += residual, residual = x;
 * out = x × weight / sqrt(mean(x²) + epsilon). Grid: rows. `out` may be `in` when it is fp32.
 * (residual += hidden, then the next sublayer's norm, in one pass over memory.) */
struct rms_norm_arguments {
    DEVICE_POINTER(const float) in;        /* [rows][width] */
    DEVICE_POINTER(const float) row_scale; /* [rows] or NULL */
    DEVICE_POINTER(const float) bias;      /* [width] or NULL */
    DEVICE_POINTER(float) residual;        /* [rows][width] or NULL */
    DEVICE_POINTER(const float) weight;    /* [width] */
    DEVICE_POINTER(void) out;              /* [rows][width] of out_element */
    DEVICE_POINTER(float) out_scale;       /* [rows]; NULL: rows are not scaled */
    DEVICE_POINTER(uint32_t) counters;     /* [COUNTER_COUNT] or NULL */
    int32_t rows;
    int32_t width;
    float epsilon;
    int32_t out_element; /* enum element */
};

/* finish: out (+)= (Σ_s parts[s] in ascending s) × row_scale + bias: a matmul's last touch, for
 * bias add, residual add and the sum over the k splits of `linear`. Any grid.
 * `parts` may be `out` when split_count is 1 and accumulate is 0. */
struct finish_arguments {
    DEVICE_POINTER(const float) parts;     /* [split_count][rows][columns] */
    DEVICE_POINTER(const float) row_scale; /* [rows] or NULL */
    DEVICE_POINTER(const float) bias;      /* [columns] or NULL */
    DEVICE_POINTER(float) out;             /* [rows][columns] */
    int32_t rows;
    int32_t columns;
    int32_t split_count;
    int32_t accumulate; /* 1: out is added to (residual) */
};

/* kv_write: q, k and v of each row, scaled and biased; q and k rms-normed a head (NULL: not) and
 * rotated; q back in place as fp32, k and v rounded into the row's slot. Any grid, one warp a
 * (row, head of heads + 2 kv_heads). */
struct kv_write_arguments {
    DEVICE_POINTER(float) qkv; /* [rows][(heads + 2 kv_heads) × head_dim]: q heads, k, v */
    DEVICE_POINTER(const float) row_scale; /* [rows] or NULL */
    DEVICE_POINTER(const float) bias;      /* [(heads + 2 kv_heads) × head_dim] or NULL */
    DEVICE_POINTER(const float) q_norm;    /* [head_dim] or NULL */
    DEVICE_POINTER(const float) k_norm;    /* [head_dim] or NULL */
    DEVICE_POINTER(const float)
    rope_table;                              /* [position][rope_dims / 2][2] cos, sin, with the
                                                magnitude; NULL when rope is none */
    DEVICE_POINTER(const int32_t) positions; /* [rows]: rows of the rope table */
    DEVICE_POINTER(const int64_t)
    slots; /* [rows]: page × 64 + place in the page; -1: not written */
    DEVICE_POINTER(uint8_t) kv;
    DEVICE_POINTER(uint32_t) counters; /* [COUNTER_COUNT] or NULL */
    int64_t page_stride;               /* bytes */
    int64_t head_stride;               /* bytes */
    int32_t rows;
    int32_t heads;
    int32_t kv_heads;
    int32_t head_dim;  /* even, ≤ 256 */
    int32_t rope_dims; /* even, ≤ head_dim */
    int32_t rope;      /* enum kernel_rope */
    float norm_epsilon;
    int32_t kv_element; /* enum kv_element */
};

/* One block of attention_prefill (≤ its 64 packed rows) or attention_decode (≤ 16). Packed rows of
 * a KV head: its `group` query heads at one row, then those of the next row. The task takes packed
 * rows [packed_first, packed_first + packed_count) counted from row_first's first, over the spans
 * [span_first, span_end) of 512 keys that begin at position 0. The keys of all its rows lie in one
 * page table. Rows see keys of positions ≤ their own, and > own − window.
 *
 * A row's bits depend on its own position, query and keys alone: they are the same from prefill
 * and from decode, from one task over all spans, or from several whose states are merged in
 * ascending order of spans. */
struct attention_task {
    int64_t pages;      /* index into page_table of the page of position 0 */
    int64_t state;      /* first of packed_count state rows to write; -1: write `out` */
    int64_t state_from; /* first of packed_count state rows to continue from; -1: none */
    int32_t row_first;
    int32_t packed_first;
    int32_t packed_count;
    int32_t position_least; /* bounds of the rows' positions */
    int32_t position_most;
    int32_t key_count; /* keys in the pages; later slots are not read */
    int32_t span_first;
    int32_t span_end;
};

/* attention_prefill_<kv>_<dim>, attention_decode_<kv>_<dim>: any grid; task_count × kv_heads
 * blocks useful. Put the longest tasks first. scratch: needed where a task walks more than one
 * span: launch_config's scratch_bytes × grid. A task without keys or rows gives rows of zeros.
 * State rows: float [state][kv_heads][head_dim + 4]: unnormalised output, maximum (base 2), sum, 2
 * unused. */
struct attention_arguments {
    DEVICE_POINTER(const float) qkv; /* after kv_write: the q heads are read */
    DEVICE_POINTER(void) out;        /* [rows][kv_heads × group × head_dim] of out_element */
    DEVICE_POINTER(const uint8_t) kv;
    DEVICE_POINTER(const int32_t) page_table;
    DEVICE_POINTER(const int32_t) positions; /* [rows] */
    DEVICE_POINTER(const struct attention_task) tasks;
    DEVICE_POINTER(float) states;  /* NULL when no task has any */
    DEVICE_POINTER(float) scratch; /* NULL when no task walks two spans */
    int64_t page_stride;           /* bytes */
    int64_t head_stride;           /* bytes */
    int64_t qkv_stride;            /* floats from a row to the next */
    int32_t task_count;
    int32_t kv_heads;
    int32_t group;       /* query heads a KV head, any number */
    int32_t window;      /* 0: none */
    float scale;         /* on q·k */
    float softcap;       /* 0: none */
    int32_t out_element; /* enum element */
    int32_t padding;
};

/* merge_states: states of the same packed rows, merged in the list's order, normalised, written.
 * Any grid, one warp a (packed row, KV head). An empty list gives zeros. */
struct merge_task {
    int32_t row_first;
    int32_t packed_first;
    int32_t packed_count;
    int32_t list_count;
    int64_t list_first; /* into state_list: each entry is the state row of the first packed row */
};

struct merge_states_arguments {
    DEVICE_POINTER(const float) states;
    DEVICE_POINTER(const int64_t) state_list;
    DEVICE_POINTER(const struct merge_task) tasks;
    DEVICE_POINTER(const int32_t) row_tasks; /* [packed_rows][2]: task, its packed row */
    DEVICE_POINTER(void) out;                /* as attention's */
    int64_t packed_rows;                     /* sum of the tasks' packed_count */
    int32_t kv_heads;
    int32_t group;
    int32_t head_dim; /* ≤ 256 */
    int32_t out_element;
};

/* gated_activation: out = act(gate) × up. Grid: rows. */
struct gated_activation_arguments {
    DEVICE_POINTER(const float) gate_up;   /* [rows][2 × width]: gate, then up */
    DEVICE_POINTER(const float) row_scale; /* [rows] or NULL */
    DEVICE_POINTER(const float) bias;      /* [2 × width] or NULL */
    DEVICE_POINTER(void) out;              /* [rows][width] of out_element */
    DEVICE_POINTER(float) out_scale;       /* [rows]; NULL: rows are not scaled */
    DEVICE_POINTER(uint32_t) counters;     /* [COUNTER_COUNT] or NULL */
    int32_t rows;
    int32_t width;
    int32_t gate; /* enum kernel_gate */
    int32_t out_element;
};

/* softcap: values = cap × tanh(values / cap), in place. Any grid. */
struct softcap_arguments {
    DEVICE_POINTER(float) values;
    int64_t count;
    float cap;
    int32_t padding;
};

/* dequantise: blocks → [rows][columns], rounded to nearest even. Any grid, rows × columns / 8
 * threads useful. columns: a multiple of the type's block and of 8. Rows of the output are
 * out_stride ≥ columns apart, a multiple of 8. */
struct dequantise_arguments {
    DEVICE_POINTER(const uint8_t) blocks;
    DEVICE_POINTER(void) out;
    DEVICE_POINTER(uint32_t) counters; /* finite weights that fp16 cannot hold; or NULL */
    int64_t row_bytes;
    int64_t out_stride;
    int64_t rows;
    int32_t columns;
    int32_t type; /* enum weight_type */
    int32_t out_element;
    int32_t padding;
};

/* linear_<type>_few, linear_<type>_many: parts[s][row][column] = Σ in[row][k] × weight[column][k]
 * over the k of split s; weights are rounded to the matmul's element, sums are fp32 in ascending k.
 * The bits of a row are the same from both and for any number of rows; split_count, which is part
 * of the bits, must come from the shape alone (launch_config_splits). Grid:
 * ceil(columns / LINEAR_COLUMNS) × split_count × ceil(rows / the config's rows).
 * k: a multiple of LINEAR_STEP. */
enum { LINEAR_COLUMNS = 64, LINEAR_STEP = 32 };

struct linear_arguments {
    DEVICE_POINTER(const uint8_t) weights; /* [columns] rows of row_bytes */
    DEVICE_POINTER(const uint16_t) in; /* [rows][k] bf16 (cc ≥ 8.0) or fp16, 16-byte aligned */
    DEVICE_POINTER(float) parts;       /* [split_count][rows][columns] */
    int64_t row_bytes;
    int32_t rows;
    int32_t columns;
    int32_t k;
    int32_t split_count;
};

/* gather_rows: out[i] = in[indices[i]], and the row scales likewise. Any grid. */
struct gather_rows_arguments {
    DEVICE_POINTER(const uint8_t) in;
    DEVICE_POINTER(const int32_t) indices; /* [rows] */
    DEVICE_POINTER(uint8_t) out;
    DEVICE_POINTER(const float) scale_in; /* by row, or NULL */
    DEVICE_POINTER(float) scale_out;      /* [rows], or NULL */
    int64_t row_bytes;                    /* a multiple of 4 */
    int32_t rows;
    int32_t padding;
};

/* argmax: ids[row] = index of the largest value, the lowest on ties (−0 is 0). finite[row] is 0,
 * and the index any, when a NaN or +Inf is among them or nothing but −Inf. Grid: rows. */
struct argmax_arguments {
    DEVICE_POINTER(const float) values; /* [rows][stride] */
    DEVICE_POINTER(int32_t) ids;        /* [rows] */
    DEVICE_POINTER(int32_t) finite;     /* [rows] */
    int64_t stride;
    int32_t rows;
    int32_t count; /* > 0 */
};

#endif
