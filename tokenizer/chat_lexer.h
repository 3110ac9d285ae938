/* Template source to tokens, with the blank-trimming rules of trim_blocks and lstrip_blocks: a
 * newline after a block tag goes, blanks before a block tag on its own line go, `-` eats all blanks
 * on its side,
 * `+` keeps them. One newline at the end of the source is dropped, and \r\n and \r become \n. */
#ifndef TOKENIZER_CHAT_LEXER_H
#define TOKENIZER_CHAT_LEXER_H

#include "core/base/error.h"
#include "tokenizer/chat_node.h"

/* All tokens of `source`, the last one CHAT_TOKEN_END, in `arena`. */
enum status chat_lexer_run(struct view source, struct arena *arena, struct chat_token **tokens,
                           struct error *error);

#endif
