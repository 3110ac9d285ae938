/* Vocabularies of a few tokens for tokenizer tests, filled by hand. Running out of room or memory
 * ends the test. */
#ifndef TESTS_SUPPORT_SMALL_VOCABULARY_H
#define TESTS_SUPPORT_SMALL_VOCABULARY_H

#include "tokenizer/tokenizer.h"

enum { SMALL_TOKENS_MAX = 512, SMALL_TEXT_MAX = 16384 };

struct small_vocabulary {
    struct tokenizer_source source; /* points into the rest; a test may change it */
    struct view tokens[SMALL_TOKENS_MAX];
    uint8_t classes[SMALL_TOKENS_MAX];
    float scores[SMALL_TOKENS_MAX];
    struct view merges[SMALL_TOKENS_MAX];
    char text[SMALL_TEXT_MAX];
    size_t text_length;
};

/* Byte-level BPE: token i is byte i in the alphabet, for all 256. */
void small_vocabulary_bytes(struct small_vocabulary *vocabulary, const char *splitter);
/* SentencePiece: token 0 is <unk>, token 1 + b is byte b. */
void small_vocabulary_pieces(struct small_vocabulary *vocabulary);

int32_t small_vocabulary_add(struct small_vocabulary *vocabulary, const char *stored,
                             enum token_class class);
/* A merge "left right" and the token it makes. */
int32_t small_vocabulary_merge(struct small_vocabulary *vocabulary, const char *line);
int32_t small_vocabulary_piece(struct small_vocabulary *vocabulary, const char *stored,
                               float score);

#endif
