/* The tokens of a model: their bytes in one block, their classes, and a flat hash from bytes to the
 * id of an ordinary token. Added tokens (control, user-defined) are not in the hash: nothing that
 * merging makes can be one of them. The exception are SentencePiece's user-defined runs of spaces:
 * the reference has them as ordinary tokens of the best score, and so they are here. */
#ifndef TOKENIZER_VOCABULARY_H
#define TOKENIZER_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "tokenizer/tokenizer.h"

struct vocabulary_slot {
    uint32_t hash;
    int32_t id; /* -1: free */
};

struct vocabulary {
    int32_t count;
    uint8_t *classes;              /* [count] of enum token_class */
    uint32_t *offsets;             /* [count + 1] into bytes */
    char *bytes;                   /* what tokens stand for in output, one after the other */
    struct vocabulary_slot *slots; /* power of two, linear probing */
    size_t slot_mask;
    int32_t byte_ids[256]; /* the token of a single byte, or -1 */
};

/* Reads tokens and classes of `source`. Two ordinary tokens of the same text, byte tokens that name
 * no byte, and counts out of range are STATUS_CORRUPT. */
enum status vocabulary_init(struct vocabulary *vocabulary, const struct tokenizer_source *source,
                            struct error *error);
void vocabulary_deinit(struct vocabulary *vocabulary);

/* The ordinary token of exactly these bytes, or -1. */
int32_t vocabulary_find(const struct vocabulary *vocabulary, const char *bytes, size_t length);

static inline struct view vocabulary_bytes(const struct vocabulary *vocabulary, int32_t id) {
    uint32_t first = vocabulary->offsets[id];
    return (struct view){vocabulary->bytes + first, vocabulary->offsets[id + 1] - first};
}

/* Recognised in text by its literal form, before any merging. */
static inline bool vocabulary_is_added(const struct vocabulary *vocabulary, int32_t id) {
    uint8_t class = vocabulary->classes[id];
    return class == TOKEN_CONTROL || class == TOKEN_USER_DEFINED || class == TOKEN_UNKNOWN;
}

/* A hash of tokens and classes: equal for equal vocabularies. */
uint64_t vocabulary_identity(const struct vocabulary *vocabulary);

#endif
