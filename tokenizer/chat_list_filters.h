/* Filters of lists and dicts; `bound` as chat_call_bind fills it, strings in it flat. */
#ifndef TOKENIZER_CHAT_LIST_FILTERS_H
#define TOKENIZER_CHAT_LIST_FILTERS_H

#include "tokenizer/chat_call.h"

typedef enum status chat_list_filters_function(struct chat_evaluator *evaluator,
                                               struct chat_value value,
                                               const struct chat_value *bound,
                                               struct chat_value *result);

chat_list_filters_function chat_list_filters_dictsort;
chat_list_filters_function chat_list_filters_first;
chat_list_filters_function chat_list_filters_join;
chat_list_filters_function chat_list_filters_last;
chat_list_filters_function chat_list_filters_list;
chat_list_filters_function chat_list_filters_map;
chat_list_filters_function chat_list_filters_max;
chat_list_filters_function chat_list_filters_min;
chat_list_filters_function chat_list_filters_reject;
chat_list_filters_function chat_list_filters_rejectattr;
chat_list_filters_function chat_list_filters_reverse;
chat_list_filters_function chat_list_filters_select;
chat_list_filters_function chat_list_filters_selectattr;
chat_list_filters_function chat_list_filters_sort;
chat_list_filters_function chat_list_filters_sum;
chat_list_filters_function chat_list_filters_unique;

#endif
