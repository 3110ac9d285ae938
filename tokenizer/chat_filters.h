/* Filters: one table of names, parameters and functions. Those of text and numbers are in
 * chat_filters.c, those of lists and dicts in chat_list_filters.c. */
#ifndef TOKENIZER_CHAT_FILTERS_H
#define TOKENIZER_CHAT_FILTERS_H

#include "tokenizer/chat_call.h"

struct chat_filter;

/* NULL: no such filter. */
const struct chat_filter *chat_filters_find(struct view name);
enum status chat_filters_apply(struct chat_evaluator *evaluator, const struct chat_filter *filter,
                               struct chat_value value, const struct chat_arguments *arguments,
                               struct chat_value *result);

/* Filters that are methods as well; `bound` as chat_call_bind fills it. */
enum status chat_filters_replace(struct chat_evaluator *evaluator, struct chat_value value,
                                 const struct chat_value *bound, struct chat_value *result);
enum status chat_filters_items(struct chat_evaluator *evaluator, struct chat_value value,
                               const struct chat_value *bound, struct chat_value *result);

#endif
