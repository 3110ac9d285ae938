/* A model family as data: what a YAML description says, parsed and checked as far as that is
 * possible without a model file. The vocabulary, by top-level key (the files in families/ are
 * examples):
 *
 * - family: the name shown to users
 * - match: {gguf: {general.architecture: NAME or list}}: which files it is for
 * - refuse: {KEY: REASON, ...}: a file where the metadata key is present and not zero is refused
 * - config: {NAME: {gguf: KEY or list, rows: TENSOR, when: {NAME: NUMBER}, then: EXPRESSION,
 *   default: EXPRESSION}, ...}: the first key that is present, else the tensor's rows, else `then`
 *   when the condition holds, else the default. The names of enum description_known must be there;
 *   any other may be added. Expressions use names further up.
 * - ropes: {NAME: {pairing: none, adjacent or halves, dims, base, divisors: SLOT, scaling: {type:
 *   KEY, factor, original_context, gain, beta_fast, beta_slow}}, ...}
 * - layer_kinds: {NAME: {every: N, window: N, rope: NAME}, ...}: a layer takes the first kind that
 *   fits; every: N fits the N-th, 2N-th, ... layer
 * - tensors: {SLOT: {gguf: NAME, shape: [rows, row length] or [length], optional: true or tied_to:
 *   SLOT}, ...}; slots named layer.* exist once a layer, with {i} in the name
 * - ignored: tensor names that may be in the file unused
 * - model: ops in order; one entry {layers: [ops]} is repeated for each layer
 *
 * In keys {arch} stands for the file's general.architecture. The ops and their attributes are the
 * table in description_ops.c. Anything not in the vocabulary is an error that names the line. */
#ifndef CORE_MODEL_DESCRIPTION_H
#define CORE_MODEL_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/yaml.h"
#include "core/model/expression.h"
#include "core/model/model.h"

/* Config names that the program itself needs. */
enum description_known {
    KNOWN_LAYERS,
    KNOWN_WIDTH,
    KNOWN_HEADS,
    KNOWN_KV_HEADS,
    KNOWN_HEAD_DIM,
    KNOWN_FFN_WIDTH,
    KNOWN_VOCAB,
    KNOWN_CONTEXT,
    KNOWN_COUNT
};
extern const char *const description_known_names[KNOWN_COUNT];

struct description_config {
    const char *name;
    int line;
    size_t key_count;
    const char **keys;   /* metadata keys, {arch} not yet replaced */
    const char *rows_of; /* tensor name, or NULL */
    int when;            /* index of the config compared with when_value, or -1 */
    double when_value;
    struct expression then;
    bool has_fallback;
    struct expression fallback;
};

struct description_slot {
    const char *name;
    int line;
    const char *pattern; /* tensor name with {i} */
    bool per_layer;
    bool optional;
    bool used;   /* some op or rope names it */
    int tied_to; /* slot that stands in when absent, or -1 */
    int dim_count;
    struct expression shape[2]; /* rows, row length; or length alone */
};

struct description_rope {
    const char *name;
    int line;
    enum rope_pairing pairing;
    struct expression dims, base;
    int divisors;             /* slot, or -1 */
    const char *scaling_type; /* metadata key, or NULL: unscaled */
    struct expression factor, original_context, gain, beta_fast, beta_slow;
};

struct description_layer_kind {
    const char *name;
    int line;
    struct expression every; /* 1: fits every layer */
    struct expression window;
    int rope;
};

/* Attributes of ops. Slots: */
enum op_slot {
    SLOT_TABLE,
    SLOT_WEIGHT,
    SLOT_Q,
    SLOT_K,
    SLOT_V,
    SLOT_QKV,
    SLOT_OUT,
    SLOT_Q_BIAS,
    SLOT_K_BIAS,
    SLOT_V_BIAS,
    SLOT_QKV_BIAS,
    SLOT_OUT_BIAS,
    SLOT_Q_NORM,
    SLOT_K_NORM,
    SLOT_GATE,
    SLOT_UP,
    SLOT_GATE_UP,
    SLOT_DOWN,
    SLOT_GATE_BIAS,
    SLOT_UP_BIAS,
    SLOT_GATE_UP_BIAS,
    SLOT_DOWN_BIAS,
    SLOT_HEAD,
    OP_SLOT_COUNT
};
enum op_number { NUMBER_EPSILON, NUMBER_SCALE, NUMBER_SOFTCAP, OP_NUMBER_COUNT };

struct description_op {
    enum op_kind kind;
    int line;
    int slots[OP_SLOT_COUNT]; /* index of a slot, or -1 */
    struct expression numbers[OP_NUMBER_COUNT];
    int choice; /* norm: enum activation read; mlp: enum gate_kind */
};

struct description_refusal {
    const char *key;
    const char *reason;
};

struct description {
    const char *family;
    size_t architecture_count;
    const char **architectures; /* general.architecture values; none: not restricted */
    size_t refusal_count;
    struct description_refusal *refusals;
    int config_count;
    struct description_config *configs;
    int known[KNOWN_COUNT]; /* indices into configs */
    int slot_count;
    struct description_slot *slots;
    int rope_count;
    struct description_rope *ropes;
    int kind_count;
    struct description_layer_kind *kinds;
    size_t ignored_count;
    const char **ignored;
    int op_count; /* all, in order */
    struct description_op *ops;
    int layer_first, layer_end; /* ops [layer_first, layer_end) are repeated */
};

/* Parse one description; everything lives in `arena`. Errors name the line, not the file. */
enum status description_parse(const char *bytes, size_t length, struct arena *arena,
                              struct description **description, struct error *error);

bool description_matches(const struct description *description, const char *architecture);

/* ---- for the description_*.c files ---- */

/* Refuse anything but a mapping whose keys are all in `known` (NULL-terminated). */
enum status description_check_keys(const struct yaml_node *node, const char *what,
                                   const char *const *known, struct error *error);
/* A scalar's text. `node` may be NULL: then `what` at `line` is missing. */
enum status description_read_text(const struct yaml_node *node, const char *what, int line,
                                  const char **text, struct error *error);
/* A list of texts, or one text that stands for a list of one. */
enum status description_read_texts(const struct yaml_node *node, const char *what,
                                   struct arena *arena, const char ***texts, size_t *count,
                                   struct error *error);
enum status description_read_expression(const struct description *description,
                                        const struct yaml_node *node, const char *what,
                                        struct expression *expression, struct error *error);
/* The slot named by a scalar; it is marked as used. */
enum status description_read_slot(struct description *description, const struct yaml_node *node,
                                  int *slot, struct error *error);
/* The index of `text` among `names`, or an error that lists them. */
enum status description_read_choice(const struct yaml_node *node, const char *what,
                                    const char *const *names, int *choice, struct error *error);
/* description_config.c: config and tensors. */
enum status description_config_parse(struct description *description, const struct yaml_node *node,
                                     struct arena *arena, struct error *error);
enum status description_config_parse_tensors(struct description *description,
                                             const struct yaml_node *node, struct arena *arena,
                                             struct error *error);
/* description_ops.c */
enum status description_ops_parse(struct description *description, const struct yaml_node *node,
                                  struct arena *arena, struct error *error);

#endif
