/* Methods of strings, dicts, lists and loops. Those that would change a list or dict are refused,
 * as transformers' sandbox refuses them. */
#ifndef TOKENIZER_CHAT_METHODS_H
#define TOKENIZER_CHAT_METHODS_H

#include "tokenizer/chat_call.h"

/* NULL: values of this kind have no such method. */
const struct chat_method *chat_methods_find(enum chat_value_kind kind, struct view name);
enum status chat_methods_call(struct chat_evaluator *evaluator, const struct chat_bound *bound,
                              const struct chat_arguments *arguments, struct chat_value *result);

/* [first, end) of `bytes` without characters of `set` (NULL: blanks) at its ends. */
enum { CHAT_METHODS_LEFT = 1, CHAT_METHODS_RIGHT = 2 };
void chat_methods_strip(struct view bytes, const struct view *set, int sides, size_t *first,
                        size_t *end);

#endif
