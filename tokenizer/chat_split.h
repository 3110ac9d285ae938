/* str.split, str.rsplit and str.splitlines: parts are slices of the string. */
#ifndef TOKENIZER_CHAT_SPLIT_H
#define TOKENIZER_CHAT_SPLIT_H

#include "tokenizer/chat_call.h"

/* Methods: `bound` is separator (none: runs of blanks) and the most cuts (-1: all). */
enum status chat_split_call(struct chat_evaluator *evaluator, struct chat_value receiver,
                            const struct chat_value *bound, struct chat_value *result);
enum status chat_split_right(struct chat_evaluator *evaluator, struct chat_value receiver,
                             const struct chat_value *bound, struct chat_value *result);
/* `bound`: whether line ends stay with their lines. */
enum status chat_split_lines(struct chat_evaluator *evaluator, struct chat_value receiver,
                             const struct chat_value *bound, struct chat_value *result);

#endif
