/* Tokens that are recognised in text by their literal form before it is split and merged: control
 * tokens, where the text may be trusted, and user-defined ones everywhere. */
#ifndef TOKENIZER_ADDED_TOKENS_H
#define TOKENIZER_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "tokenizer/vocabulary.h"

struct added_token {
    struct view text;
    int32_t id;
    bool needs_trust; /* never matches a document's bytes */
};

struct added_tokens {
    struct added_token *tokens; /* sorted by text */
    size_t count;
    uint32_t first[257]; /* tokens whose text begins with byte b: [first[b], first[b + 1]) */
};

/* Collects the added tokens. A user-defined token that is also one of the `role_count` ids of
 * `roles` (BOS, end tokens) needs trust. Two of one text are STATUS_CORRUPT. */
enum status added_tokens_init(struct added_tokens *added, const struct vocabulary *vocabulary,
                              const int32_t *roles, size_t role_count, struct error *error);
void added_tokens_deinit(struct added_tokens *added);

/* The longest token that begins at `at`, within [at, end); those that need trust must end by
 * `trusted_end` (≤ at: none is trusted). NULL: none. */
const struct added_token *added_tokens_match(const struct added_tokens *added, const char *at,
                                             const char *end, const char *trusted_end);

/* The token of exactly this text, or NULL. */
const struct added_token *added_tokens_find(const struct added_tokens *added, struct view text);

#endif
