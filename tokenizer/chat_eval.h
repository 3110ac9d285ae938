/* The evaluator: walks a template's tree with everything counted: steps, depth, memory, output. One
 * evaluator serves one rendering. Expressions are in chat_eval.c, operators in chat_operators.c,
 * statements in chat_statement.c, calls in chat_call.c. */
#ifndef TOKENIZER_CHAT_EVAL_H
#define TOKENIZER_CHAT_EVAL_H

#include "core/base/error.h"
#include "tokenizer/chat_node.h"
#include "tokenizer/marked_text.h"

enum {
    CHAT_EVAL_DEPTH_MAX = 800,      /* nested expressions, statements and macro calls */
    CHAT_EVAL_STEPS_MAX = 5000000,  /* nodes visited, and bytes looked at by the dozen */
    CHAT_EVAL_BYTES_MAX = 64 << 20, /* memory and output, beside what the input needs */
    CHAT_EVAL_RANGE_MAX = 100000,   /* items of range() */
};

struct chat_variable {
    struct view name;
    struct chat_value value;
    struct chat_variable *next;
};

/* Names set here are seen here and in scopes inside. */
struct chat_scope {
    struct chat_scope *parent;
    struct chat_variable *variables;
};

/* A macro, or the body of a call block, with the scope it was written in. */
struct chat_macro {
    struct view name;
    const struct chat_node *parameters; /* CHAT_NODE_KEYWORD, linked */
    const struct chat_node *body;
    struct chat_scope *scope;
};

enum chat_flow { CHAT_FLOW_ON, CHAT_FLOW_BREAK, CHAT_FLOW_CONTINUE };

struct chat_evaluator {
    struct arena arena;
    struct error *error;
    struct chat_scope *scope;
    struct marked_text *out;            /* where output goes… */
    const struct chat_string *captured; /* …unless a block gathers it here */
    bool capturing;
    const struct chat_string *block; /* what CHAT_NODE_CAPTURED stands for */
    enum chat_flow flow;
    size_t steps, steps_max;
    size_t bytes_max; /* longest string, and output */
    int depth;
    int line; /* of the node being evaluated, for errors */
    long long date;
};

/* STATUS_BAD_INPUT with the line. */
enum status chat_eval_fail(struct chat_evaluator *evaluator, const char *format, ...)
    ERROR_FORMAT(2, 3);
/* The answer to a full arena. */
enum status chat_eval_full(struct chat_evaluator *evaluator);
/* Count work that is not a node: `bytes` looked at or items handled. */
enum status chat_eval_charge(struct chat_evaluator *evaluator, size_t bytes);

enum status chat_eval_expression(struct chat_evaluator *evaluator, const struct chat_node *node,
                                 struct chat_value *value);
/* As chat_eval_expression, strings flat: for what is compared or stored in a list. */
enum status chat_eval_flat_expression(struct chat_evaluator *evaluator,
                                      const struct chat_node *node, struct chat_value *value);
enum status chat_eval_flatten(struct chat_evaluator *evaluator, struct chat_value *value);
/* str(value), flat. */
enum status chat_eval_text(struct chat_evaluator *evaluator, struct chat_value value,
                           const struct chat_string **text);
/* A builder's string as a value. */
enum status chat_eval_built(struct chat_evaluator *evaluator, struct chat_string_builder *builder,
                            struct chat_value *value);
enum status chat_eval_concat(struct chat_evaluator *evaluator, const struct chat_string *left,
                             const struct chat_string *right, const struct chat_string **result);
/* A value of its own for `text`, written by the template. */
enum status chat_eval_new_text(struct chat_evaluator *evaluator, struct view text,
                               struct chat_value *value);
/* Slice [first, first + length) of a flat string, as a value. */
enum status chat_eval_slice(struct chat_evaluator *evaluator, const struct chat_string *flat,
                            size_t first, size_t length, struct chat_value *value);
enum status chat_eval_new_list(struct chat_evaluator *evaluator, size_t count,
                               struct chat_list **list);

/* NULL: not set anywhere. */
const struct chat_value *chat_eval_find_name(const struct chat_evaluator *evaluator,
                                             struct view name);
enum status chat_eval_set_name(struct chat_evaluator *evaluator, struct view name,
                               struct chat_value value);
/* Enter a new scope inside `parent`. */
enum status chat_eval_push_scope(struct chat_evaluator *evaluator, struct chat_scope *parent);

#endif
