/* One word to ids: from the cache, or by merging. Byte-level words start as one symbol a byte and
 * merge by the table of merges; SentencePiece-style ones start as one symbol a character and merge
 * by the scores of what the merge makes, looked up by its text. */
#include "tokenizer/tokenizer_state.h"

#include "tokenizer/unicode_classes.h"

/* Context of find_piece. */
struct piece_rules {
    const struct vocabulary *vocabulary;
    const uint32_t *score_keys;
    const uint64_t *neighbours;
    const char *text;
};

/* Best score first; of equal ones the longer left part, then the longer right part: the order in
 * which the reference lists the merges it derives from scores. */
static bool find_piece(const void *context, const struct bpe_symbol *left,
                       const struct bpe_symbol *right, struct bpe_merge *merge) {
    const struct piece_rules *rules = context;
    const char *border = rules->text + right->start;
    if (!tokenizer_are_neighbours(rules->neighbours, border[-1], border[0]))
        return false;
    int32_t id = vocabulary_find(rules->vocabulary, rules->text + left->start,
                                 (size_t)left->length + right->length);
    if (id < 0)
        return false;
    uint32_t lengths = (0xFFFFu - left->length) << 16 | (0xFFFFu - right->length);
    *merge = (struct bpe_merge){(uint64_t)rules->score_keys[id] << 32 | lengths, id};
    return true;
}

/* One symbol a byte. A byte that has no token is left out, as the reference does. */
static void fill_bytes(const struct tokenizer *tokenizer, struct bpe_work *work, struct view text,
                       size_t offset, size_t length) {
    for (size_t at = offset; at < offset + length; at++) {
        int32_t id = tokenizer->vocabulary.byte_ids[(unsigned char)text.bytes[at]];
        if (id >= 0)
            work->symbols[work->count++] = (struct bpe_symbol){(uint32_t)at, 1, id};
    }
}

/* One symbol a character, with id -1 when it is no token. A bad byte is a character. */
static void fill_characters(const struct tokenizer *tokenizer, struct bpe_work *work,
                            struct view text, size_t offset, size_t length) {
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    size_t end = offset + length;
    while (offset < end) {
        unsigned size = unicode_classes_read(bytes + offset, bytes + end).length;
        int32_t id = vocabulary_find(&tokenizer->vocabulary, text.bytes + offset, size);
        work->symbols[work->count++] = (struct bpe_symbol){(uint32_t)offset, size, id};
        offset += size;
    }
}

static bool merge_word(const struct tokenizer *tokenizer, struct bpe_work *work, struct view text,
                       size_t offset, size_t length) {
    if (!bpe_reserve(work, length))
        return false;
    if (tokenizer->model == TOKENIZER_BYTE_BPE) {
        fill_bytes(tokenizer, work, text, offset, length);
        struct bpe_rules rules = {&tokenizer->pairs, pair_table_find};
        return bpe_run(work, &rules);
    }
    fill_characters(tokenizer, work, text, offset, length);
    struct piece_rules pieces = {&tokenizer->vocabulary, tokenizer->score_keys,
                                 tokenizer->neighbours, text.bytes};
    struct bpe_rules rules = {&pieces, find_piece};
    return bpe_run(work, &rules);
}

static void push(struct token_list *list, int32_t id, uint32_t offset) {
    list->ids[list->count] = id;
    list->offsets[list->count++] = offset;
}

/* A character that is no token: its bytes' tokens, or if one is missing the unknown token, once for
 * several in a row. */
static void push_unknown(const struct tokenizer *tokenizer, const struct bpe_symbol *symbol,
                         struct view text, bool follows_unknown, struct token_list *list) {
    const int32_t *byte_ids = tokenizer->vocabulary.byte_ids;
    bool spelled = true;
    for (uint32_t i = 0; i < symbol->length; i++)
        spelled = spelled && byte_ids[(unsigned char)text.bytes[symbol->start + i]] >= 0;
    if (!spelled) {
        if (tokenizer->unknown_id >= 0 && !follows_unknown)
            push(list, tokenizer->unknown_id, symbol->start);
        return;
    }
    for (uint32_t i = 0; i < symbol->length; i++)
        push(list, byte_ids[(unsigned char)text.bytes[symbol->start + i]], symbol->start + i);
}

static void push_symbols(const struct tokenizer *tokenizer, const struct bpe_work *work,
                         struct view text, struct token_list *list) {
    for (size_t i = 0; i < work->count; i++) {
        const struct bpe_symbol *symbol = &work->symbols[i];
        if (symbol->id >= 0) {
            push(list, symbol->id, symbol->start);
            continue;
        }
        bool follows_unknown =
            list->count > 0 && list->ids[list->count - 1] == tokenizer->unknown_id;
        push_unknown(tokenizer, symbol, text, follows_unknown, list);
    }
}

static uint32_t token_length(const struct tokenizer *tokenizer, int32_t id) {
    return tokenizer->vocabulary.offsets[id + 1] - tokenizer->vocabulary.offsets[id];
}

static void push_entry(const struct tokenizer *tokenizer, const struct word_entry *entry,
                       uint32_t offset, struct token_list *list) {
    for (int32_t i = 0; i < entry->count; i++) {
        push(list, entry->ids[i], offset);
        offset += token_length(tokenizer, entry->ids[i]);
    }
}

/* Cache a word's ids if their lengths alone give their offsets. */
static void remember(const struct tokenizer *tokenizer, struct word_cache *cache,
                     const struct word_key *key, const struct token_list *list, size_t first) {
    size_t count = list->count - first;
    size_t length = 0;
    for (size_t i = first; i < list->count; i++)
        length += token_length(tokenizer, list->ids[i]);
    if (count <= WORD_CACHE_IDS_MAX && length == key->bytes[WORD_CACHE_BYTES_MAX])
        word_cache_put(cache, key, list->ids + first, count);
}

bool word_encoder_append(const struct tokenizer *tokenizer, struct tokenizer_scratch *scratch,
                         struct view text, size_t offset, size_t length, struct token_list *list) {
    if (!token_list_reserve(list, length))
        return false;
    bool is_short = length <= WORD_CACHE_BYTES_MAX;
    struct word_key key;
    if (is_short) {
        word_cache_key(&key, (const uint8_t *)text.bytes + offset, length);
        const struct word_entry *entry = word_cache_find(&scratch->cache, &key);
        if (entry) {
            push_entry(tokenizer, entry, (uint32_t)offset, list);
            return true;
        }
    }
    if (tokenizer->splitter && tokenizer->splitter->whole_words) {
        int32_t id = vocabulary_find(&tokenizer->vocabulary, text.bytes + offset, length);
        if (id >= 0) {
            push(list, id, (uint32_t)offset);
            return true;
        }
    }
    size_t first = list->count;
    if (!merge_word(tokenizer, &scratch->work, text, offset, length))
        return false;
    push_symbols(tokenizer, &scratch->work, text, list);
    if (is_short)
        remember(tokenizer, &scratch->cache, &key, list, first);
    return true;
}
