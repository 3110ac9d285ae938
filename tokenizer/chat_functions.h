/* The functions every template sees: range, namespace, dict, raise_exception, strftime_now. */
#ifndef TOKENIZER_CHAT_FUNCTIONS_H
#define TOKENIZER_CHAT_FUNCTIONS_H

#include "tokenizer/chat_call.h"

/* NULL: no such function. */
const struct chat_function *chat_functions_find(struct view name);
enum status chat_functions_call(struct chat_evaluator *evaluator,
                                const struct chat_function *function,
                                const struct chat_arguments *arguments, struct chat_value *result);

#endif
