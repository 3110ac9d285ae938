/* A loaded model: configuration, weights by slot, and the compiled list of ops that is its forward
 * pass. An architecture is a YAML description (families/<name>.yaml, or a user's own file); nothing
 * in C knows a family by name. Tensors stay borrowed views into the mapped file; backends copy what
 * they need. */
#ifndef CORE_MODEL_MODEL_H
#define CORE_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/weights/gguf.h"

enum {
    MODEL_KV_GROUPS_MAX = 4, /* layers with the same window share a KV group */
    LINEAR_PARTS_MAX = 3,    /* q|k|v */
    KV_PAGE_TOKENS = 64,
};

/* y = x · Wᵀ + b. Parts are concatenated along the output (q|k|v, gate|up).
 * Part tensors: [out_part rows][in]; biases: [out_part] or NULL. */
struct linear {
    int id; /* dense, 0..model.linear_count-1: backends keep their tiles under it */
    int in;
    int out; /* sum of the parts' rows */
    int part_count;
    const struct tensor *parts[LINEAR_PARTS_MAX];
    const struct tensor *biases[LINEAR_PARTS_MAX];
};

enum rope_pairing {
    ROPE_NONE,
    ROPE_ADJACENT, /* (2i, 2i+1): GGUF llama */
    ROPE_HALVES,   /* (i, i + dims/2): neox */
};

/* Rotary embedding of one kind of layer; angle(position, i) = position × frequencies[i]. */
struct rope {
    enum rope_pairing pairing;
    int dims;                  /* rotated dimensions of a head, even, ≤ head_dim */
    const double *frequencies; /* [dims / 2], scaling already applied */
    double magnitude;          /* factor on cos and sin (yarn, longrope), else 1 */
};

enum gate_kind { GATE_SILU, GATE_GELU_TANH };

/* Activation buffers of a backend, rows of the step by these widths. */
enum activation {
    ACTIVATION_RESIDUAL, /* [rows][width] fp32: the residual stream */
    ACTIVATION_HIDDEN,   /* [rows][width]: input or output of a sublayer */
    ACTIVATION_QKV,      /* [rows][(heads + 2 kv_heads) × head_dim] */
    ACTIVATION_ATTENDED, /* [rows][heads × head_dim] */
    ACTIVATION_GATE_UP,  /* [rows][2 × ffn_width]: gate first, then up */
    ACTIVATION_GATED,    /* [rows][ffn_width] */
    ACTIVATION_COUNT
};

enum op_kind {
    OP_EMBED,        /* residual = embedding[token] × scale */
    OP_NORM,         /* hidden = rms_norm(from) × weight */
    OP_ATTENTION,    /* hidden = out(attend(qkv(hidden))) */
    OP_ADD_RESIDUAL, /* residual += hidden */
    OP_MLP,          /* hidden = down(act(gate(hidden)) × up(hidden)) */
    OP_LOGITS,       /* logits of the sampled rows = head(hidden) */
    OP_KIND_COUNT
};

struct op_embed {
    const struct tensor *table; /* [vocab][width] */
    float scale;
};

struct op_norm {
    enum activation from;        /* RESIDUAL, or HIDDEN (post norms): written in place */
    const struct tensor *weight; /* [width], F32 or unpackable */
    float epsilon;
};

struct op_attention {
    int kv_group;       /* which KV pool group */
    int layer_in_group; /* which layer of the group's pages */
    int window; /* 0: all; else a position sees the last `window` positions, itself included */
    const struct rope *rope;
    const struct tensor *q_norm; /* [head_dim] rms norm of each q head before rope, or NULL */
    const struct tensor *k_norm;
    float norm_epsilon;
    float scale;   /* on q·k */
    float softcap; /* 0: none; else cap × tanh(score / cap) */
    struct linear qkv;
    struct linear out;
};

struct op_mlp {
    enum gate_kind gate;
    struct linear gate_up; /* two parts */
    struct linear down;
};

struct op_logits {
    struct linear head; /* one part: [vocab][width]; tied models name the embedding here */
    float softcap;
};

struct op {
    enum op_kind kind;
    int layer; /* -1 outside the layers */
    union {
        struct op_embed embed;
        struct op_norm norm;
        struct op_attention attention;
        struct op_mlp mlp;
        struct op_logits logits;
    };
};

struct kv_group {
    int layer_count;
    int window; /* 0: global */
};

struct model {
    char family[32]; /* description's name: "llama" */
    char name[128];  /* for rows: model_name_from_path of the file */
    int layer_count;
    int width;
    int head_count;
    int kv_head_count;
    int head_dim;
    int ffn_width;
    int vocab_count;
    int context_max; /* the model's own limit, tokens */
    int op_count;
    struct op *ops; /* [op_count], layers unrolled */
    int linear_count;
    int kv_group_count;
    struct kv_group kv_groups[MODEL_KV_GROUPS_MAX];
    int64_t parameter_count;
    uint64_t weight_bytes; /* as in the file, tied tensors once */
    struct gguf *gguf;     /* owned */
    struct arena arena;    /* owns ops, ropes, names */
};

/* Open and compile. `architecture_path` may be NULL: the built-in descriptions are matched by
 * general.architecture. Missing, extra or misshapen tensors are named with what was expected and
 * found. */
enum status model_open(const char *path, const char *architecture_path, struct model **model,
                       struct error *error);
void model_close(struct model *model);

/* The linears of an op in the order of their use, at most two; NULL-terminated. */
void model_linears_of(const struct op *op, const struct linear *linears[3]);

/* KV bytes per token of one layer: K and V, `element_bytes` each (2 for bf16). */
uint64_t model_kv_bytes_per_token(const struct model *model, int element_bytes);

#endif
