/* Filters of lists and dicts; `bound` as chat_call_bind fills it, strings in it flat. */
#ifndef TOKENIZER_CHAT_LIST_FILTERS_H
#define TOKENIZER_CHAT_LIST_FILTERS_H

#include "tokenizer/chat_call.h"

enum status chat_list_filters_dictsort(struct chat_evaluator *evaluator, struct chat_value value,
                                       const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_first(struct chat_evaluator *evaluator, struct chat_value value,
                                    const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_join(struct chat_evaluator *evaluator, struct chat_value value,
                                   const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_last(struct chat_evaluator *evaluator, struct chat_value value,
                                   const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_list(struct chat_evaluator *evaluator, struct chat_value value,
                                   const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_map(struct chat_evaluator *evaluator, struct chat_value value,
                                  const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_max(struct chat_evaluator *evaluator, struct chat_value value,
                                  const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_min(struct chat_evaluator *evaluator, struct chat_value value,
                                  const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_reject(struct chat_evaluator *evaluator, struct chat_value value,
                                     const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_rejectattr(struct chat_evaluator *evaluator, struct chat_value value,
                                         const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_reverse(struct chat_evaluator *evaluator, struct chat_value value,
                                      const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_select(struct chat_evaluator *evaluator, struct chat_value value,
                                     const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_selectattr(struct chat_evaluator *evaluator, struct chat_value value,
                                         const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_sort(struct chat_evaluator *evaluator, struct chat_value value,
                                   const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_sum(struct chat_evaluator *evaluator, struct chat_value value,
                                  const struct chat_value *bound, struct chat_value *result);
enum status chat_list_filters_unique(struct chat_evaluator *evaluator, struct chat_value value,
                                     const struct chat_value *bound, struct chat_value *result);

#endif
