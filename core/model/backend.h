/* What computes a step: weights prepared once, then ops over the rows of a plan. The decoder walks
 * the model's ops and calls these; CPU, CUDA and the float64 reference implement them. An
 * implementation embeds `struct backend` as its first member.
 *
 * A row's bits may depend on its own sequence only: not on chunking, neighbours, threads or page
 * ids. */
#ifndef CORE_MODEL_BACKEND_H
#define CORE_MODEL_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/model/model.h"
#include "core/model/step_plan.h"

enum kv_type {
    KV_BF16,
    KV_INT8,
    KV_F16, /* CUDA only, as is fp8 (e4m3) */
    KV_FP8,
    KV_F64 /* the reference's */
};

struct backend_limits {
    int row_count_max; /* rows of a step: --batch-tokens plus decode rows */
    int run_count_max;
    int sample_count_max;
    int context_max;                             /* positions of a sequence */
    int64_t page_count_max[MODEL_KV_GROUPS_MAX]; /* address space; touched page by page */
    enum kv_type kv_type;
};

struct backend_memory { /* bytes, exact: what `reserve` and `prepare` hold at most */
    uint64_t weights;
    uint64_t kv_page[MODEL_KV_GROUPS_MAX]; /* one page of a group, all its layers */
    uint64_t scratch;                      /* activations and workspace under the limits */
};

struct backend;

struct backend_ops {
    /* The kernel path for rows and fingerprints ("cpu-avx512-bf16"). */
    const char *(*numerics)(const struct backend *backend);
    /* What K and V are kept in when nobody asks for something. */
    enum kv_type (*kv_type)(const struct backend *backend);
    /* Bytes free where weights, KV and scratch are taken from; NULL: that is the host's memory. */
    uint64_t (*available)(const struct backend *backend);
    /* Foretell memory without taking any; valid before prepare. */
    struct backend_memory (*memory)(const struct backend *backend, const struct model *model,
                                    const struct backend_limits *limits);
    /* Weights to tiles. Called once. */
    enum status (*prepare)(struct backend *backend, const struct model *model, struct error *error);
    /* KV address space and scratch. Called once, after prepare. */
    enum status (*reserve)(struct backend *backend, const struct backend_limits *limits,
                           struct error *error);

    enum status (*begin_step)(struct backend *backend, const struct step_plan *plan,
                              struct error *error);
    void (*embed)(struct backend *backend, const struct op_embed *op);
    void (*norm)(struct backend *backend, const struct op_norm *op);
    void (*linear)(struct backend *backend, const struct linear *linear, enum activation from,
                   enum activation to);
    /* bias is in linear; here: q/k norm, rope, K and V rounded into pages. Pages are zeroed beyond
     * the last written position, a run's stale ones included. Reads and rewrites ACTIVATION_QKV. */
    void (*kv_write)(struct backend *backend, const struct op_attention *op);
    void (*attention)(struct backend *backend, const struct op_attention *op); /* QKV → ATTENDED */
    void (*activation)(struct backend *backend, enum gate_kind gate); /* GATE_UP → GATED */
    void (*add_residual)(struct backend *backend);
    void (*logits)(struct backend *backend, const struct op_logits *op); /* of sample_rows */
    /* Waits for the step; device errors surface here. */
    enum status (*end_step)(struct backend *backend, struct error *error);

    /* Only where ops queue their work (elsewhere NULL), for times of ops. mark: a place behind what
     * was queued so far in the step, numbered from 0. mark_ns: of a finished step, how long after
     * its first mark the device came past another. */
    void (*mark)(struct backend *backend);
    int64_t (*mark_ns)(const struct backend *backend, int number);

    /* fp32 [sample_count][vocab] of the finished step, valid until the next begin_step. */
    const float *(*logits_view)(const struct backend *backend);
    void (*destroy)(struct backend *backend);
};

struct backend {
    const struct backend_ops *ops;
};

#endif
