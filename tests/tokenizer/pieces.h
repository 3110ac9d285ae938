/* Encoding written as text: the bytes of the tokens with '|' between them, for tests that read as a
 * specification. */
#ifndef TESTS_TOKENIZER_PIECES_H
#define TESTS_TOKENIZER_PIECES_H

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/small_vocabulary.h"
#include "tokenizer/tokenizer.h"

static inline struct tokenizer *pieces_tokenizer(const struct small_vocabulary *vocabulary) {
    struct tokenizer *tokenizer;
    struct error error = {0};
    cr_assert_eq(tokenizer_create(&vocabulary->source, &tokenizer, &error), STATUS_OK, "%s",
                 error.text);
    return tokenizer;
}

static inline void pieces_encode(const struct tokenizer *tokenizer, const struct marked_text *text,
                                 struct tokenizer_options options, struct token_list *list) {
    struct tokenizer_scratch *scratch = tokenizer_scratch_create();
    struct error error = {0};
    for (int i = 0; i < 2; i++) /* the second time out of the word cache */
        cr_assert_eq(tokenizer_encode(tokenizer, text, &options, scratch, list, &error), STATUS_OK,
                     "%s", error.text);
    for (size_t i = 0; i < list->count; i++) {
        cr_assert_leq(list->offsets[i], text->text.length);
        cr_assert(i == 0 || list->offsets[i] >= list->offsets[i - 1]);
    }
    tokenizer_scratch_destroy(scratch);
}

static inline void pieces_print(const struct tokenizer *tokenizer, const struct token_list *list,
                                struct text *out) {
    text_init(out, 1 << 20);
    cr_assert(text_append(out, "", 0));
    for (size_t i = 0; i < list->count; i++) {
        struct view bytes = tokenizer_token_bytes(tokenizer, list->ids[i]);
        cr_assert(i == 0 || text_append_char(out, '|'));
        cr_assert(text_append(out, bytes.bytes, bytes.length));
    }
}

/* The pieces of a marked text. */
static inline void pieces_expect_marked(const struct tokenizer *tokenizer,
                                        const struct marked_text *text,
                                        struct tokenizer_options options, const char *expected) {
    struct token_list list = {0};
    struct text found;
    pieces_encode(tokenizer, text, options, &list);
    pieces_print(tokenizer, &list, &found);
    cr_expect_str_eq(found.bytes, expected, "'%s': got '%s', expected '%s'",
                     text->text.bytes ? text->text.bytes : "", found.bytes, expected);
    text_deinit(&found);
    token_list_deinit(&list);
}

/* The pieces of a document. */
static inline void pieces_expect(const struct tokenizer *tokenizer, const char *document,
                                 const char *expected) {
    struct marked_text text;
    marked_text_init(&text, 1 << 20);
    cr_assert(marked_text_append(&text, document, strlen(document), ORIGIN_DOCUMENT));
    pieces_expect_marked(tokenizer, &text, (struct tokenizer_options){0}, expected);
    marked_text_deinit(&text);
}

#endif
