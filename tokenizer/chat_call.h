/* Calls: what arguments there are, how they bind to parameters, the environment's functions and
 * macros. */
#ifndef TOKENIZER_CHAT_CALL_H
#define TOKENIZER_CHAT_CALL_H

#include "tokenizer/chat_eval.h"

enum { CHAT_CALL_PARAMETERS_MAX = 6 };

struct chat_keyword {
    struct view name;
    struct chat_value value;
};

struct chat_arguments {
    size_t count;
    struct chat_value *values;
    size_t keyword_count;
    struct chat_keyword *keywords;
};

/* Parameters of something written in C. "" takes a positional argument only. */
struct chat_signature {
    const char *name;
    int required;
    int count;
    const char *parameters[CHAT_CALL_PARAMETERS_MAX];
};

/* Receivers are the values methods were read from. */
struct chat_bound {
    struct chat_value receiver;
    const struct chat_method *method;
};

enum status chat_call_arguments(struct chat_evaluator *evaluator, const struct chat_node *list,
                                struct chat_arguments *arguments);
/* Fill bound[CHAT_CALL_PARAMETERS_MAX], CHAT_ABSENT where nothing was given. */
enum status chat_call_bind(struct chat_evaluator *evaluator, const struct chat_signature *signature,
                           const struct chat_arguments *arguments, struct chat_value *bound);
enum status chat_call_value(struct chat_evaluator *evaluator, struct chat_value callee,
                            const struct chat_arguments *arguments, struct chat_value *result);
/* As chat_call_value for a macro, with what `caller` is inside it (CHAT_ABSENT: not set). */
enum status chat_call_macro(struct chat_evaluator *evaluator, const struct chat_macro *macro,
                            const struct chat_arguments *arguments, struct chat_value caller,
                            struct chat_value *result);

#endif
