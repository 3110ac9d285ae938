/* The CUDA backend's parts, for backend_cuda*.c only.
 *
 * Ops queue kernels and return nothing: the first failure is kept, what follows it is not queued,
 * and end_step gives it. */
#ifndef GPU_BACKEND_CUDA_STATE_H
#define GPU_BACKEND_CUDA_STATE_H

#include "core/model/backend.h"
#include "gpu/backend_cuda.h"
#include "gpu/device_host.h"
#include "gpu/step_tables.h"
#include "gpu/weight_ring.h"

/* A linear on the device: its parts' rows one behind another. */
struct cuda_linear {
    uint64_t weights, bias; /* bias fp32 [columns] or 0 */
    int64_t row_bytes;
    enum weight_type type;
    int columns, k;
    int split_count; /* of k, summed by the kernel `finish` */
};

/* A small vector or a table of the model in device memory. */
struct cuda_tensor {
    const struct tensor *tensor;
    uint64_t address;
};

struct cuda_rope {
    const struct rope *rope;
    uint64_t table; /* fp32 [context][dims / 2][2] */
};

/* What a matmul's result still has to be multiplied with and added to it. */
struct cuda_pending {
    uint64_t row_scale, bias;
};

/* Everything in the area of activations: addresses, set by backend_cuda_memory_lay_out. */
struct cuda_areas {
    uint64_t residual, hidden, qkv, gate_up;         /* fp32 rows */
    uint64_t unit_hidden, unit_attended, unit_gated; /* rows of the matmul's element */
    uint64_t scale_hidden, scale_gated;              /* fp32 [rows] */
    uint64_t gathered, gathered_scale;               /* of the sampled rows */
    uint64_t logits;                                 /* fp32 [samples][vocab] */
    uint64_t parts;                                  /* of matmuls whose k is split */
    uint64_t scratch, states;                        /* of attention */
    uint64_t tables;                                 /* struct step_tables' block */
    uint64_t counters;                               /* uint32_t [COUNTER_COUNT] */
};

/* Linears that do not stay on the device. */
struct cuda_stream {
    uint64_t limit;      /* bytes of weights on the device; 0: none */
    uint64_t ring_bytes; /* 0: all stay */
    int piece_count;
    int *piece_of; /* [linear_count] by linear.id; negative: stays; NULL: all stay */
    struct weight_ring_piece *pieces;
    struct weight_ring_part *parts;
    struct device_host *decoded; /* [piece_count]: of linears whose parts have several types */
    struct weight_ring *ring;
};

struct backend_cuda {
    struct backend base;
    struct device *device;
    enum element element; /* of matmul inputs */
    const struct model *model;
    struct cuda_linear *linears; /* [linear_count] by linear.id */
    struct cuda_tensor *vectors; /* [vector_count] fp32 */
    int vector_count;
    uint64_t embedding;
    struct cuda_stream stream;
    struct cuda_rope *ropes; /* [rope_count] */
    int rope_count;
    struct backend_limits limits;
    enum kv_element kv_element;
    uint64_t kv[MODEL_KV_GROUPS_MAX];
    uint64_t area; /* of activations and scratch */
    struct cuda_areas at;
    struct step_tables tables;
    struct device_host tables_host, logits_host;
    int attention_grid;          /* blocks that have scratch */
    struct driver_event **marks; /* [mark_capacity] */
    int mark_capacity;
    /* of the step in progress */
    const struct step_plan *plan;
    int mark_count;
    struct cuda_pending pending[ACTIVATION_COUNT];
    bool residual_pending; /* hidden is still to be added to residual */
    enum status status;    /* of what was queued */
    struct error error;
};

static inline struct backend_cuda *backend_cuda_of(struct backend *backend) {
    return (struct backend_cuda *)backend;
}

/* ---- backend_cuda_memory.c ---- */
enum kv_element backend_cuda_memory_element(enum kv_type type);
uint64_t backend_cuda_memory_page_bytes(const struct model *model, int kv_group,
                                        enum kv_element element);
struct backend_memory backend_cuda_memory_need(const struct backend *backend,
                                               const struct model *model,
                                               const struct backend_limits *limits);
enum status backend_cuda_memory_reserve(struct backend *backend,
                                        const struct backend_limits *limits, struct error *error);

/* ---- backend_cuda_weights.c ---- */
/* Bytes of all weights; and of the rope tables, which come on top. */
uint64_t backend_cuda_weights_bytes(const struct model *model);
uint64_t backend_cuda_weights_rope_bytes(const struct model *model, int context);
enum status backend_cuda_weights_prepare(struct backend *backend, const struct model *model,
                                         struct error *error);
/* Rope tables, when the context is known. */
enum status backend_cuda_weights_ropes(struct backend_cuda *cuda, int context, struct error *error);
void backend_cuda_weights_release(struct backend_cuda *cuda);
/* The type id of the kernels, and how it lies when parts of several types are made one. */
enum weight_type backend_cuda_weights_type(const struct backend_cuda *cuda,
                                           const struct linear *linear);
/* Whether it is the token table. */
bool backend_cuda_weights_is_tied(const struct model *model, const struct linear *linear);
uint64_t backend_cuda_weights_row_bytes(const struct linear *linear);
/* Of what always stays: the table, vectors, biases; without rope tables. */
uint64_t backend_cuda_weights_fixed_bytes(const struct model *model);
uint64_t backend_cuda_weights_vector(const struct backend_cuda *cuda, const struct tensor *tensor);

/* ---- backend_cuda_stream.c ---- */
/* What `all` bytes of weights, rope tables not among them, take under the limit. */
uint64_t backend_cuda_stream_memory(const struct backend_cuda *cuda, uint64_t all);
/* In prepare: which linears will be streamed; then, when all are prepared, the ring. */
enum status backend_cuda_stream_decide(struct backend_cuda *cuda, struct error *error);
bool backend_cuda_stream_has(const struct backend_cuda *cuda, int linear_id);
struct device_host *backend_cuda_stream_decoded(struct backend_cuda *cuda, int linear_id);
enum status backend_cuda_stream_start(struct backend_cuda *cuda, struct error *error);
enum status backend_cuda_stream_begin(struct backend_cuda *cuda, bool with_logits,
                                      struct error *error);
/* Around the use of a linear's weights: their address now. */
uint64_t backend_cuda_stream_take(struct backend_cuda *cuda, const struct cuda_linear *linear);
void backend_cuda_stream_give_back(struct backend_cuda *cuda, const struct cuda_linear *linear);
void backend_cuda_stream_release(struct backend_cuda *cuda);

/* ---- backend_cuda_ops.c ---- */
void backend_cuda_ops_embed(struct backend *backend, const struct op_embed *op);
void backend_cuda_ops_norm(struct backend *backend, const struct op_norm *op);
void backend_cuda_ops_linear(struct backend *backend, const struct linear *linear,
                             enum activation from, enum activation to);
void backend_cuda_ops_activation(struct backend *backend, enum gate_kind gate);
void backend_cuda_ops_add_residual(struct backend *backend);
void backend_cuda_ops_logits(struct backend *backend, const struct op_logits *op);
/* Queues a launch unless something failed before. */
void backend_cuda_ops_launch(struct backend_cuda *cuda, const struct launch_config *config,
                             int64_t grid, const void *arguments, size_t bytes);
/* Grid of a kernel of any grid, for so many useful threads. */
int backend_cuda_ops_grid(const struct backend_cuda *cuda, int64_t threads, int block_threads);

/* ---- backend_cuda_marks.c ---- */
void backend_cuda_marks_set(struct backend *backend);
int64_t backend_cuda_marks_ns(const struct backend *backend, int number);
void backend_cuda_marks_release(struct backend_cuda *cuda);

/* ---- backend_cuda_attention.c ---- */
void backend_cuda_attention_write(struct backend *backend, const struct op_attention *op);
void backend_cuda_attention_run(struct backend *backend, const struct op_attention *op);

#endif
