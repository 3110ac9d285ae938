/* Encoding: the added tokens are found first, leftmost and longest; each gap between them is
 * normalised and cut into words by itself, as the reference does; trust only decides which added
 * tokens count. */
#include "tokenizer/tokenizer_state.h"

#include <stdlib.h>
#include <string.h>

/* One call's arguments. */
struct encoding {
    const struct tokenizer *tokenizer;
    struct tokenizer_scratch *scratch;
    struct token_list *list;
};

static bool cut_with_splitter(const struct encoding *encoding, struct view text) {
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    struct splitter_cursor cursor = splitter_begin(bytes, text.length);
    while (cursor.at < cursor.end) {
        size_t first = (size_t)(cursor.at - bytes);
        encoding->tokenizer->splitter->next(&cursor);
        if (!word_encoder_append(encoding->tokenizer, encoding->scratch, text, first,
                                 (size_t)(cursor.at - bytes) - first, encoding->list))
            return false;
    }
    return true;
}

/* The next place behind `first` that no merge crosses, at the border of a character. */
static size_t find_cut(const struct tokenizer *tokenizer, struct view text, size_t first) {
    size_t at = first + 1;
    while (at < text.length &&
           (((unsigned char)text.bytes[at] & 0xC0) == 0x80 ||
            tokenizer_are_neighbours(tokenizer->neighbours, text.bytes[at - 1], text.bytes[at])))
        at++;
    return at;
}

static bool cut_between_tokens(const struct encoding *encoding, struct view text) {
    for (size_t first = 0; first < text.length;) {
        size_t end = find_cut(encoding->tokenizer, text, first);
        if (!word_encoder_append(encoding->tokenizer, encoding->scratch, text, first, end - first,
                                 encoding->list))
            return false;
        first = end;
    }
    return true;
}

/* The text between two added tokens; `base` is its offset in the whole. */
static bool encode_gap(const struct encoding *encoding, struct view gap, size_t base) {
    if (gap.length == 0)
        return true;
    const struct tokenizer *tokenizer = encoding->tokenizer;
    struct normalizer *normalizer = &encoding->scratch->normalizer;
    struct view text = gap;
    normalizer->edit_count = 0;
    if (!tokenizer->splitter)
        text = normalizer_spaces(normalizer, gap, tokenizer->space_prefix);
    else if (tokenizer->splitter->composes)
        text = normalizer_compose(normalizer, gap);
    if (!text.bytes || text.length > UINT32_MAX)
        return false;
    size_t first = encoding->list->count;
    bool done = tokenizer->splitter ? cut_with_splitter(encoding, text)
                                    : cut_between_tokens(encoding, text);
    if (done)
        normalizer_map_offsets(normalizer, encoding->list->offsets + first,
                               encoding->list->count - first, (uint32_t)base);
    return done;
}

/* Walks a marked text's spans along with a position that only grows. */
struct trust {
    const struct marked_text *text;
    bool prompt_trusted;
    size_t span;  /* the next span not yet looked at */
    size_t first; /* the current stretch of trusted bytes, [first, end) */
    size_t end;
    size_t begin; /* where spans[span] begins */
};

/* The end of the trusted bytes that `at` lies in, or `at` when it lies in none. */
static size_t trusted_end(struct trust *trust, size_t at) {
    while (at >= trust->end && trust->span < trust->text->span_count) {
        trust->first = trust->begin;
        trust->end = trust->begin;
        bool trusted = true;
        while (trusted && trust->span < trust->text->span_count) {
            const struct text_span *span = &trust->text->spans[trust->span];
            trusted = span->origin == ORIGIN_TEMPLATE ||
                      (span->origin == ORIGIN_PROMPT && trust->prompt_trusted);
            trust->begin += span->length;
            trust->span++;
            if (trusted)
                trust->end = trust->begin;
        }
    }
    return at >= trust->first && at < trust->end ? trust->end : at;
}

static bool encode_all(const struct encoding *encoding, struct trust *trust) {
    const struct tokenizer *tokenizer = encoding->tokenizer;
    struct view text = text_view(&trust->text->text);
    const char *end = text.bytes + text.length;
    size_t gap = 0;
    for (size_t at = 0; at < text.length;) {
        unsigned byte = (unsigned char)text.bytes[at];
        if (tokenizer->added.first[byte] == tokenizer->added.first[byte + 1]) {
            at++;
            continue;
        }
        const struct added_token *token = added_tokens_match(
            &tokenizer->added, text.bytes + at, end, text.bytes + trusted_end(trust, at));
        if (!token) {
            at++;
            continue;
        }
        if (!encode_gap(encoding, (struct view){text.bytes + gap, at - gap}, gap) ||
            !token_list_reserve(encoding->list, 1))
            return false;
        encoding->list->ids[encoding->list->count] = token->id;
        encoding->list->offsets[encoding->list->count++] = (uint32_t)at;
        at += token->text.length;
        gap = at;
    }
    return encode_gap(encoding, (struct view){text.bytes + gap, text.length - gap}, gap);
}

/* The BOS was put in front; take it out again when the text brought its own. */
static void drop_second_bos(struct token_list *list) {
    if (list->count < 2 || list->ids[1] != list->ids[0])
        return;
    list->count--;
    memmove(list->ids, list->ids + 1, list->count * sizeof *list->ids);
    memmove(list->offsets, list->offsets + 1, list->count * sizeof *list->offsets);
}

enum status tokenizer_encode(const struct tokenizer *tokenizer, const struct marked_text *text,
                             const struct tokenizer_options *options,
                             struct tokenizer_scratch *scratch, struct token_list *list,
                             struct error *error) {
    list->count = 0;
    if (text->text.length >= UINT32_MAX)
        return error_set(error, STATUS_OVER_LIMIT, "a text of %zu bytes is too long to tokenize",
                         text->text.length);
    bool add_bos = options->add_bos && tokenizer->wants_bos;
    if (!word_cache_prepare(&scratch->cache, tokenizer->identity) ||
        !token_list_reserve(list, text->text.length / 4 + 1))
        return error_no_memory(error, "tokenizing");
    if (add_bos) {
        list->ids[0] = tokenizer->bos_id;
        list->offsets[0] = 0;
        list->count = 1;
    }
    struct encoding encoding = {tokenizer, scratch, list};
    struct trust trust = {.text = text, .prompt_trusted = options->prompt_trusted};
    if (!encode_all(&encoding, &trust)) {
        list->count = 0;
        return error_no_memory(error, "tokenizing");
    }
    if (add_bos)
        drop_second_bos(list);
    return STATUS_OK;
}
