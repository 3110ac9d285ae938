/* Operators on values, with Python's meaning: arithmetic, concatenation, comparison, membership. */
#ifndef TOKENIZER_CHAT_OPERATORS_H
#define TOKENIZER_CHAT_OPERATORS_H

#include "tokenizer/chat_eval.h"

enum status chat_operators_apply(struct chat_evaluator *evaluator, enum chat_operation operation,
                                 struct chat_value left, struct chat_value right,
                                 struct chat_value *result);
/* ==, !=, <, <=, >, >=, in, not in; strings flat. */
enum status chat_operators_compare(struct chat_evaluator *evaluator, enum chat_operation operation,
                                   struct chat_value left, struct chat_value right, bool *result);
enum status chat_operators_negate(struct chat_evaluator *evaluator, struct chat_value value,
                                  struct chat_value *result);

#endif
