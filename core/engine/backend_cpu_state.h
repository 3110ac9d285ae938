/* The CPU backend's parts, for backend_cpu*.c only.
 *
 * Memory is taken in three places: weight tiles in prepare, the KV areas (address space, touched
 * page by page) and one scratch area in reserve. A step allocates nothing. */
#ifndef CORE_ENGINE_BACKEND_CPU_STATE_H
#define CORE_ENGINE_BACKEND_CPU_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/thread_pool.h"
#include "core/engine/tile_cache.h"
#include "core/engine/weight_stream.h"
#include "core/kernels/attention_block.h"
#include "core/kernels/kernels.h"
#include "core/kernels/tile.h"
#include "core/model/backend.h"

enum {
    CPU_HEAD_DIM_MAX = 512,   /* of any model */
    CPU_SPLIT_TASKS = 4,      /* fewer attention tasks a worker: spans are spread over tasks */
    CPU_SHARED_POSITIONS = 4, /* of a run, on average, that can share spans in one step */
};

/* A buffer of the step's rows. */
struct cpu_rows {
    float *values;
    size_t stride; /* floats */
};

/* Consecutive positions of a run in one KV page. */
struct cpu_piece {
    const struct step_run *run;
    int row_first;
    int position_first;
    int count;
};

/* Consecutive positions of a run that a task attends together. */
struct cpu_block {
    const struct step_run *run;
    int row_first;
    int position_first;
    int count;
    size_t state;        /* floats before its span states, when spans are spread over tasks */
    int shared_spans;    /* of the global KV group, attended together with other blocks; 0: none */
    size_t shared_state; /* floats before its merged states of these */
};

/* One span of a block, when spans are spread over tasks. */
struct cpu_span_task {
    int block;
    int span;
};

/* Some of the blocks that share their first spans: one task a KV head. */
struct cpu_shared_task {
    int first; /* in shared_blocks */
    int count;
    int span_count;
};

/* Rotary tables of a step: one a distinct rope of the model. */
struct cpu_rope_table {
    const struct rope *rope;
    float *cosines; /* [rows][dims / 2] */
    float *sines;   /* [rows][dims / 2] */
};

/* Everything that lies in the scratch area, its pointers set by backend_cpu_memory_lay_out. */
struct cpu_scratch {
    struct cpu_rows activations[ACTIVATION_COUNT];
    char *unit_rows; /* [rows][largest input] in unit format */
    size_t unit_stride;
    float *logits; /* [samples][vocab] */
    float *vector; /* a norm weight, a bias */
    float *vector_second;
    float *even;  /* [kv_heads][head_dim]: a layer's key factors */
    char *panels; /* [workers][panel_bytes] */
    size_t panel_bytes;
    char *attention; /* [workers][attention_bytes] */
    size_t attention_bytes;
    struct cpu_rope_table *ropes; /* [rope_count] */
    int rope_count;
    struct cpu_piece *pieces;
    int piece_max;
    struct cpu_block *blocks;
    int block_max;
    struct cpu_span_task *span_tasks;
    int span_task_max;
    int *shared_blocks; /* [block_max] numbers of blocks, those of a shared task side by side */
    struct cpu_shared_task *shared_tasks; /* [block_max] */
    float *states;                        /* of span tasks or shared spans, all KV heads */
    size_t state_floats_max;
};

/* A small vector of the model, norm weight or bias, as fp32. */
struct cpu_vector {
    const struct tensor *tensor;
    const float *values;
};

/* Columns of a linear that are multiplied together: all of it, or a slice that is streamed. */
struct cpu_slice {
    struct tile_set set;
    int out_first; /* of the linear's outputs */
};

/* Weights beyond a limit of memory: some linears stay, the others are streamed in slices. */
struct cpu_stream {
    uint64_t limit;              /* bytes of weights in memory; 0: all of them stay */
    struct weight_stream *reads; /* of slices; NULL: nothing is streamed */
    struct cpu_slice *slices;    /* [slice_count] in the order of use */
    int slice_count;
    int *first_slice; /* [linear_count] by linear.id */
    int *slices_of;   /* [linear_count]; 0: it stays */
    char *resident;
    size_t resident_bytes;
};

struct backend_cpu {
    struct backend base;
    struct thread_pool *pool; /* borrowed */
    int worker_count;
    struct kernels kernels;
    const struct model *model; /* borrowed, from prepare on */
    struct tile_set *tiles;    /* [linear_count] by linear.id */
    uint8_t *tile_memory;      /* of all of them */
    size_t tile_bytes;
    bool packed;                    /* here, not by an earlier run */
    struct tile_cache *cache;       /* NULL: none */
    struct tile_cache_tiles cached; /* what tile_memory points into when the cache had the tiles */
    struct cpu_stream stream;
    struct cpu_vector *vectors; /* [vector_count], sorted by tensor */
    int vector_count;
    float *vector_memory;
    uint8_t *embedded; /* a row of the embedding as in the file */
    int tile_count;
    struct backend_limits limits;
    char *kv[MODEL_KV_GROUPS_MAX];
    size_t kv_bytes[MODEL_KV_GROUPS_MAX];
    char *scratch_memory;
    size_t scratch_bytes;
    struct cpu_scratch scratch;
    const struct step_plan *plan; /* of the step in progress */
    int piece_count;
    int block_count;
    int shared_task_count;
    size_t attention_values; /* a measure of the step's attention, for the choice of threads */
};

static inline struct backend_cpu *backend_cpu_of(struct backend *backend) {
    return (struct backend_cpu *)backend;
}

/* ---- backend_cpu_tasks.c ---- */

/* Runs the tasks on the pool, or here when all of them together touch few values: waking the other
 * workers costs a few microseconds. */
void backend_cpu_tasks_run(struct backend_cpu *cpu, int task_count, size_t value_count,
                           void (*function)(void *context, int task, int worker), void *context);

/* function(context, first, end) over parts of [0, row_count). */
struct cpu_row_loop {
    void (*function)(void *context, int row_first, int row_end);
    void *context;
    int row_count;
    size_t values_per_row;
};
void backend_cpu_tasks_over_rows(struct backend_cpu *cpu, const struct cpu_row_loop *loop);

/* ---- backend_cpu_memory.c ---- */

/* Sets the pointers of `scratch` into `memory` (NULL: only counts) and returns the bytes. */
size_t backend_cpu_memory_lay_out(const struct backend_cpu *cpu, const struct model *model,
                                  const struct backend_limits *limits, char *memory,
                                  struct cpu_scratch *scratch);
struct backend_memory backend_cpu_memory_need(const struct backend *backend,
                                              const struct model *model,
                                              const struct backend_limits *limits);
enum status backend_cpu_memory_reserve(struct backend *backend, const struct backend_limits *limits,
                                       struct error *error);
void backend_cpu_memory_release(struct backend_cpu *cpu);
/* Zeroed address space; in huge pages when the kernel has them. */
enum status backend_cpu_memory_map(size_t bytes, const char *what, char **memory,
                                   struct error *error);

/* Whether two ropes have the same tables, pairing aside. */
bool backend_cpu_memory_same_rope(const struct rope *a, const struct rope *b);

enum attention_page_type backend_cpu_memory_page_type(enum kv_type type);
/* Bytes of one page of a group: [layer][KV head] parts of attention_page_bytes. */
size_t backend_cpu_memory_page_bytes(const struct model *model, int kv_group, enum kv_type type);

/* ---- backend_cpu_weights.c ---- */

enum status backend_cpu_weights_prepare(struct backend *backend, const struct model *model,
                                        struct error *error);
/* Of all tiles; *largest (may be NULL): of the largest linear's. */
uint64_t backend_cpu_weights_bytes(const struct model *model, uint64_t *largest);
/* The sets of all linears, one behind another in tile_memory. */
enum status backend_cpu_weights_create_sets(struct backend_cpu *cpu,
                                            const struct linear *const *linears,
                                            struct error *error);
/* Packs a linear into the memory of its set. */
void backend_cpu_weights_pack(const struct backend_cpu *cpu, const struct linear *linear);
void backend_cpu_weights_release(struct backend_cpu *cpu);

/* A small vector (norm weight, bias) as fp32 in `out`. */
void backend_cpu_weights_read_vector(const struct backend_cpu *cpu, const struct tensor *tensor,
                                     float *out);

/* ---- backend_cpu_stream.c ---- */

/* What the weights take of memory under the limit. */
uint64_t backend_cpu_stream_memory(const struct backend_cpu *cpu, const struct model *model);
bool backend_cpu_stream_is_needed(const struct backend_cpu *cpu);
/* Instead of having all tiles in memory; `linears` in the order of their tiles. */
enum status backend_cpu_stream_prepare(struct backend_cpu *cpu, const struct linear *const *linears,
                                       struct error *error);
void backend_cpu_stream_begin_step(struct backend_cpu *cpu);
enum status backend_cpu_stream_end_step(struct backend_cpu *cpu, struct error *error);
/* What a linear is multiplied in, one after another: 1 where it stays. */
int backend_cpu_stream_slice_count(const struct backend_cpu *cpu, const struct linear *linear);
/* The tiles of a slice, there until it is given back. */
struct cpu_slice backend_cpu_stream_take(struct backend_cpu *cpu, const struct linear *linear,
                                         int slice);
void backend_cpu_stream_give_back(struct backend_cpu *cpu, const struct linear *linear);
void backend_cpu_stream_release(struct backend_cpu *cpu);

/* ---- backend_cpu_linear.c ---- */

void backend_cpu_linear(struct backend *backend, const struct linear *linear, enum activation from,
                        enum activation to);
void backend_cpu_linear_logits(struct backend *backend, const struct op_logits *op);

/* ---- backend_cpu_rows.c ---- */

void backend_cpu_rows_embed(struct backend *backend, const struct op_embed *op);
void backend_cpu_rows_norm(struct backend *backend, const struct op_norm *op);
void backend_cpu_rows_activation(struct backend *backend, enum gate_kind gate);
void backend_cpu_rows_add_residual(struct backend *backend);

/* ---- backend_cpu_attention.c ---- */

/* Pieces, blocks and rotary tables of a step. */
void backend_cpu_attention_begin(struct backend_cpu *cpu);
void backend_cpu_attention_write(struct backend *backend, const struct op_attention *op);
void backend_cpu_attention_run(struct backend *backend, const struct op_attention *op);

/* ---- backend_cpu_shared.c ---- */

/* Finds the step's blocks whose sequences have their first spans' pages in the global KV group in
 * common and lists them as shared tasks. */
void backend_cpu_shared_begin(struct backend_cpu *cpu);

#endif
