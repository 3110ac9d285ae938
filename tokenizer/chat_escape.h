/* Escapes of string literals in templates: Python's, less named characters. */
#ifndef TOKENIZER_CHAT_ESCAPE_H
#define TOKENIZER_CHAT_ESCAPE_H

#include "core/base/error.h"
#include "tokenizer/chat_node.h"

/* The text of a string token: quotes off, escapes resolved. Unknown escapes stay as they are
 * written. */
enum status chat_escape_resolve(const struct chat_token *token, struct arena *arena,
                                struct view *text, struct error *error);

#endif
