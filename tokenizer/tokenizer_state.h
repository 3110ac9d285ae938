/* What a tokenizer and a thread's scratch consist of; for the files of this folder only. */
#ifndef TOKENIZER_TOKENIZER_STATE_H
#define TOKENIZER_TOKENIZER_STATE_H

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pair_table.h"
#include "tokenizer/splitter.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_cache.h"

enum {
    TOKENIZER_ENDS_MAX = 16,
    TOKENIZER_NEIGHBOUR_WORDS = 65536 / 64,
};

struct tokenizer {
    enum tokenizer_model model;
    struct vocabulary vocabulary;
    struct added_tokens added;
    uint64_t identity; /* equal for tokenizers that give equal ids */
    int32_t bos_id, eos_id, unknown_id;
    int32_t ends[TOKENIZER_ENDS_MAX];
    size_t end_count;
    bool wants_bos;

    /* byte-level BPE */
    const struct splitter *splitter;
    struct pair_table pairs;

    /* SentencePiece-style BPE */
    uint32_t *score_keys; /* [count]: smaller for better scores */
    bool space_prefix;
    /* A bit for every two bytes that are neighbours in some token. No merge crosses two that are in
     * none, so the text is cut there. */
    uint64_t neighbours[TOKENIZER_NEIGHBOUR_WORDS];
};

struct tokenizer_scratch {
    struct normalizer normalizer;
    struct bpe_work work;
    struct word_cache cache;
};

/* Whether `left` and `right` are neighbours in some token. */
static inline bool tokenizer_are_neighbours(const uint64_t *neighbours, char left, char right) {
    unsigned pair = (unsigned)(unsigned char)left << 8 | (unsigned char)right;
    return neighbours[pair / 64] >> pair % 64 & 1;
}

/* Room for `extra` more tokens. false: out of memory. */
bool token_list_reserve(struct token_list *list, size_t extra);

/* Append the ids of the word at text[offset, offset + length): what lies between two cuts, all of
 * which is merged as one. Offsets are in `text`. false: out of memory. */
bool word_encoder_append(const struct tokenizer *tokenizer, struct tokenizer_scratch *scratch,
                         struct view text, size_t offset, size_t length, struct token_list *list);

#endif
