/* Running statements: output, branches, loops, assignments, blocks. */
#ifndef TOKENIZER_CHAT_STATEMENT_H
#define TOKENIZER_CHAT_STATEMENT_H

#include "tokenizer/chat_eval.h"

/* Statements linked by next. Stops early at break and continue: evaluator->flow says so. */
enum status chat_statement_run(struct chat_evaluator *evaluator, const struct chat_node *body);
/* The same in a scope of its own inside `parent`, its output gathered as a string. */
enum status chat_statement_capture(struct chat_evaluator *evaluator, const struct chat_node *body,
                                   struct chat_scope *parent, const struct chat_string **text);
enum status chat_statement_assign(struct chat_evaluator *evaluator, const struct chat_node *target,
                                  struct chat_value value);

#endif
