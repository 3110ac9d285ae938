/* Reading out of values: attributes, items, slices, iteration, with Jinja's rules of what is tried
 * first and its undefined values for what is not there. */
#ifndef TOKENIZER_CHAT_ACCESS_H
#define TOKENIZER_CHAT_ACCESS_H

#include "tokenizer/chat_eval.h"

/* An undefined value: a variable (owner NULL), or `name` of an object of type `owner`. */
enum status chat_access_missing(struct chat_evaluator *evaluator, const char *owner,
                                struct view name, struct chat_value *value);
/* The error of using an undefined value. */
enum status chat_access_fail(struct chat_evaluator *evaluator, struct chat_value value);
/* What a for loop would run over: items of a list, keys of a dict, characters of a string. */
enum status chat_access_iterate(struct chat_evaluator *evaluator, struct chat_value value,
                                const struct chat_list **list);
/* object.name: attributes first; object[key]: items first. What is not there is undefined. */
enum status chat_access_attribute(struct chat_evaluator *evaluator, struct chat_value object,
                                  struct view name, struct chat_value *value);
enum status chat_access_item(struct chat_evaluator *evaluator, struct chat_value object,
                             struct chat_value key, struct chat_value *value);
/* object[start:stop:step]; none where left out. */
enum status chat_access_subrange(struct chat_evaluator *evaluator, struct chat_value object,
                                 const struct chat_value bounds[3], struct chat_value *value);

#endif
