/* Tests: `x is defined` and the like. */
#ifndef TOKENIZER_CHAT_TESTS_H
#define TOKENIZER_CHAT_TESTS_H

#include "tokenizer/chat_call.h"

struct chat_test;

/* NULL: no such test. */
const struct chat_test *chat_tests_find(struct view name);
enum status chat_tests_apply(struct chat_evaluator *evaluator, const struct chat_test *test,
                             struct chat_value value, const struct chat_arguments *arguments,
                             bool *result);

#endif
