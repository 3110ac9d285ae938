/* The table of compute kernels: one small struct of functions an op, several variants each (scalar,
 * avx2, avx512, avx512bf16, amx), listed best first in <op>.c; kernels.c takes the first whose
 * needs the CPU meets. The rows themselves are declared in kernels_variants.h. The scalar file is
 * the specification. Kernels take raw pointers and sizes; they allocate nothing, start no threads
 * and cannot fail.
 *
 * Unit: the number format that matmul inputs are rounded to before the products: fp32, or bf16
 * pairs with fp32 sums. It is fixed by CPU features alone and is part of a row's `numerics`. The
 * third one, int8 in groups with a scale (int8_layout.h), must be asked for.
 *
 * Fixed order of sums: every output element is one fp32 accumulator over ascending k (bf16:
 * ascending pairs; tiles: steps of 32 inputs from the first on), whatever the number of rows, the
 * blocking or the thread. Therefore a row's bits never depend on its neighbours. */
#ifndef CORE_KERNELS_KERNELS_H
#define CORE_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/cpu_features.h"

enum unit { UNIT_F32, UNIT_BF16, UNIT_INT8 };

enum {
    LINEAR_FEW_ROWS = 4,      /* that vector kernels multiply as they decode */
    LINEAR_FEW_ROWS_MAX = 16, /* that any kernels do */
};

enum {
    PANEL_COLUMNS = 64, /* output columns of a weight panel, keys of a KV page */
};

/* ---- linear (linear_<isa>.c; tiles in tile.h) ----
 * Rows in unit format: F32: float[k]; BF16: uint16_t[k], k even (pad with a zero); INT8: struct
 * int8_row_group[k/32], k a multiple of 32.
 * A panel holds `columns` outputs of k inputs: F32: float[k][columns]; BF16:
 * uint16_t[k/2][columns][2]; INT8: as int8_layout.h says, PANEL_COLUMNS columns always. */
struct tile;

struct linear_kernels {
    const char *name; /* "avx512-bf16" */
    enum unit unit;
    bool (*available)(const struct cpu_features *features);

    /* fp32 row → unit format; count elements, even. */
    void (*convert_row)(const float *in, int count, void *out);

    /* out[r][c] (+)= Σ_k rows[r][k] × panel[k][c] for r < row_count, c < column_count.
     * row_stride in bytes; panel_columns: the panel's row width (≥ column_count, multiple of 16);
     * column_count a multiple of 16; out_stride in floats; accumulate: start from out instead of 0.
     */
    void (*multiply)(const void *rows, size_t row_stride, int row_count, const void *panel,
                     int panel_columns, int k, float *out, size_t out_stride, int column_count,
                     bool accumulate);

    /* Weights of column block `block` (PANEL_COLUMNS outputs), inputs [k_first, k_first + k_count),
     * to a panel of PANEL_COLUMNS columns. k_first and k_count are multiples of 256 or end at the
     * row's end. An odd end is padded with a row of zeros, in both units. Panels are 64-byte
     * aligned. */
    void (*unpack_panel)(const struct tile *tile, int block, int k_first, int k_count, void *panel);

    /* The whole k of a block straight from the decoder, without a panel, for row_count ≤ few_rows:
     * the same bits as unpack_panel and multiply. Writes PANEL_COLUMNS columns. NULL where it would
     * not be faster; then few_rows is 0. */
    int few_rows;
    void (*multiply_few)(const struct tile *tile, int block, const void *rows, size_t row_stride,
                         int row_count, float *out, size_t out_stride);

    /* Gives back what the products keep in the processor, before the thread sleeps; may be called
     * at any time. NULL: they keep nothing. */
    void (*release)(void);

    int k_step; /* multiply may be cut at multiples of it without changing a bit */
    int chunk;  /* inputs to unpack at a time for many rows: the panel fits the L2 cache */

    /* For cutting a matmul's rows into tasks; they change no bit. */
    int pass_rows;     /* multiplied in one pass over a panel */
    int unpack_rows;   /* unpacking a panel costs about as much as multiplying these */
    size_t rows_bytes; /* of a task at most: its rows stay in cache from block to block */

    /* Ceilings of this instruction set: products in registers only, and reading alone. */
    uint64_t (*spin)(int rounds, float *sink);              /* returns the FLOPs done */
    uint64_t (*read)(const void *bytes, size_t byte_count); /* multiple of 512; any value */
};

/* ---- attention (attention_<isa>.c) ----
 * KV pages hold 64 tokens of one layer and KV head as bf16 in pair order, so that both products
 * read them as panels: K: uint16_t[head_dim/2][64 tokens][2 dims]; V: uint16_t[64/2][head_dim][2
 * tokens]. int8 pages (attention_page.h) have the same order in bytes and are expanded before use.
 */
enum { SOFTMAX_LANES = 16 }; /* partial sums of a row, added up in order at a span's end */

struct attention_kernels {
    const char *name;
    enum unit unit; /* equals the linear kernels' unit */
    bool (*available)(const struct cpu_features *features);

    int sub_rows; /* to attend at a time: what their products are best at */

    /* out[i] = in[i] × factor, rounded to the unit's format; any count. */
    void (*convert_query)(const float *in, int count, float factor, void *out);

    /* As linear multiply, but the panel is bf16 pairs whatever the unit of the rows; k even. */
    void (*multiply_pairs)(const void *rows, size_t row_stride, int row_count,
                           const uint16_t *panel, int panel_columns, int k, float *out,
                           size_t out_stride, int column_count, bool accumulate);

    /* Online softmax of row_count rows over one page. scores[rows][64], scaled to base 2, masked
     * entries -inf, become probabilities[rows][64] in the unit's format, relative to row_max[rows].
     * A row's maximum is a reference only: it moves when a score exceeds it by more than 8, and
     * then factors[row], otherwise 1, is what the row's earlier output must be multiplied with.
     * row_sum[rows][SOFTMAX_LANES] adds the rounded probabilities. A NaN score makes the sum NaN.
     */
    void (*softmax_page)(const float *scores, int row_count, void *probabilities, float *row_max,
                         float *row_sum, float *factors);

    /* out[i] = out[i] × factor. */
    void (*scale_row)(float *out, int count, float factor);
    /* into[i] = into[i] × into_factor + from[i] × from_factor */
    void (*blend_row)(float *into, float into_factor, const float *from, float from_factor,
                      int count);

    /* int8 part of a page, `head_dim` of its dimensions, and its tokens' scales [64] to bf16 pairs.
     */
    void (*expand_keys)(const int8_t *in, const float *scales, int head_dim, uint16_t *out);
    void (*expand_values)(const int8_t *in, const float *scales, int head_dim, uint16_t *out);
};

/* ---- elementwise (elementwise_<isa>.c) ---- */
struct elementwise_kernels {
    const char *name;
    bool (*available)(const struct cpu_features *features);
    /* out = in × weight / sqrt(mean(in²) + epsilon); sum of squares in one fixed order; in == out
     * is fine. */
    void (*rms_norm)(const float *in, const float *weight, int count, float epsilon, float *out);
    /* out[i] = act(gate[i]) × up[i]; our own exp and tanh: the same bits on every CPU of a variant.
     */
    void (*silu_mul)(const float *gate, const float *up, int count, float *out);
    void (*gelu_tanh_mul)(const float *gate, const float *up, int count, float *out);
    void (*add)(float *into, const float *from, int count);
    /* values[i] = cap × tanh(values[i] / cap) */
    void (*softcap)(float *values, int count, float cap);
    /* Index of the largest value, lowest index on ties (-0 is 0). *finite is false, and the index
     * any, when a NaN or +Inf is among them or nothing but -Inf, which only rules out its index. */
    int (*argmax)(const float *values, int count, bool *finite);
};

struct kernels {
    const struct linear_kernels *linear;
    const struct linear_kernels *linear_int8; /* NULL: not asked for */
    const struct attention_kernels *attention;
    const struct elementwise_kernels *elementwise;
    char numerics[48]; /* "cpu-avx512-bf16", "cpu-avx512-bf16/int8-avx512-vnni" */
};

/* The best variants for these (possibly masked) features. */
struct kernels kernels_select(const struct cpu_features *features);

/* Adds the best int8 matmul: it is taken for every weight that has codes. Changes `numerics`. */
void kernels_add_int8(struct kernels *kernels, const struct cpu_features *features);

/* All rows of each table, best first, for tests and benchmarks (linear.c, attention.c,
 * elementwise.c). */
size_t linear_variant_count(void);
const struct linear_kernels *linear_variant_at(size_t index);
size_t linear_int8_variant_count(void);
const struct linear_kernels *linear_int8_variant_at(size_t index);
size_t attention_variant_count(void);
const struct attention_kernels *attention_variant_at(size_t index);
size_t elementwise_variant_count(void);
const struct elementwise_kernels *elementwise_variant_at(size_t index);

/* ---- one column block of a matmul, whole k (linear.c) ---- */
struct tile_block;

struct linear_task {
    const void *rows;  /* [row_count] rows in unit format, k rounded up to even with a zero */
    size_t row_stride; /* bytes */
    int row_count;
    float *out;        /* [row_count][out_stride]: the concatenated output of the tile set */
    size_t out_stride; /* floats */
    void *panel;       /* scratch of this worker, linear_panel_bytes, 64-byte aligned */
};

/* Whether all parts of the set have codes that the int8 matmul takes as they are. */
struct tile_set;
bool linear_has_int8(const struct tile_set *set);

/* Unpacks the block chunk by chunk and multiplies all rows by it; writes exactly the block's
 * out_count columns from out_first. Different blocks may run at the same time. */
void linear_multiply_block(const struct linear_kernels *kernels, const struct tile_block *block,
                           const struct linear_task *task);

/* Inputs unpacked at a time: a multiple of 256, such that a panel stays in cache. */
int linear_k_chunk(const struct linear_kernels *kernels, int row_count);
size_t linear_panel_bytes(const struct linear_kernels *kernels);
/* Bytes of a row of k values in unit format, k rounded up to even. */
size_t linear_row_bytes(enum unit unit, int k);
/* The same from one row to the next such that rows lie in different sets of the caches. */
size_t linear_row_stride(enum unit unit, int k);

/* Into how many parts the rows are cut, each a task a block: tasks that divide evenly over the
 * workers against unpacking each block once a part. */
int linear_row_parts(const struct linear_kernels *kernels, int k, int row_count, int block_count,
                     int worker_count);
/* First row of part 0 ≤ part ≤ part_count. */
int linear_row_first(const struct linear_kernels *kernels, int row_count, int part_count, int part);

/* ---- rope (rope.c) ---- */
/* Rotation by rope in place: head[dims]; cos and sin: [dims/2] fp32 made in double by rope_table.
 */
void rope_adjacent(float *head, const float *cosines, const float *sines, int pair_count);
void rope_halves(float *head, const float *cosines, const float *sines, int pair_count);
/* cos and sin of position × frequencies[i], × magnitude, computed in double with our own series. */
void rope_table(const double *frequencies, int pair_count, double magnitude, int position,
                float *cosines, float *sines);

#endif
