/* Streaming decode: whole characters as soon as they are there, bad bytes as U+FFFD, nothing lost.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/tokenizer/pieces.h"

#define BAD "\xEF\xBF\xBD"

static struct small_vocabulary vocabulary;

/* Decodes the bytes of `text`, a token each (ids = first + byte), and expects the chunks with '|'
 * between; the last chunk is what finishing gives. */
static void expect_chunks(const struct tokenizer *tokenizer, int32_t first, const char *text,
                          const char *expected) {
    struct decode_stream stream;
    struct text out, found;
    text_init(&out, 1000);
    text_init(&found, 1000);
    decode_stream_init(&stream);
    for (const char *at = text; *at; at++) {
        text_clear(&out);
        cr_assert(decode_stream_push(tokenizer, &stream, first + (unsigned char)*at, &out));
        cr_assert_leq(stream.held_count, 3);
        text_append(&found, out.bytes ? out.bytes : "", out.length);
        text_append_char(&found, '|');
    }
    cr_assert(decode_stream_finish(&stream, &found));
    cr_expect_str_eq(found.bytes, expected, "got '%s', expected '%s'", found.bytes, expected);
    text_deinit(&out);
    text_deinit(&found);
}

Test(decode_stream, byte_level) {
    small_vocabulary_bytes(&vocabulary, "gpt-2");
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    expect_chunks(tokenizer, 0, "aé", "a||é|");
    expect_chunks(tokenizer, 0, "😀", "|||😀|");
    expect_chunks(tokenizer, 0, "\xF0\x9F\x98", "|||" BAD); /* one for the maximal bad part */
    expect_chunks(tokenizer, 0,
                  "\xF0\x9F"
                  "a",
                  "||" BAD "a|");
    expect_chunks(tokenizer, 0, "\xE2\xE2\x82\xAC", "|" BAD "||€|");
    expect_chunks(tokenizer, 0, "\xFF\x80", BAD "|" BAD "|");
    expect_chunks(tokenizer, 0, "\xE0\x80", "|" BAD BAD "|");
    expect_chunks(tokenizer, 0, BAD, "||" BAD "|"); /* a real one is a character like others */
    tokenizer_destroy(tokenizer);
}

Test(decode_stream, byte_tokens) {
    small_vocabulary_pieces(&vocabulary);
    vocabulary.source.add_space_prefix = 0;
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    expect_chunks(tokenizer, 1, "é", "|é|");
    expect_chunks(tokenizer, 1, "\xF0\x9F\x98", "|||" BAD BAD BAD); /* one a byte */
    expect_chunks(tokenizer, 1,
                  "\xF0\x9F"
                  "a",
                  "||" BAD BAD "a|");
    tokenizer_destroy(tokenizer);
}

static void expect_text(const struct tokenizer *tokenizer, const int32_t *ids, size_t count,
                        const char *expected) {
    struct decode_stream stream;
    struct text out;
    text_init(&out, 1000);
    decode_stream_init(&stream);
    text_append(&out, "", 0);
    for (size_t i = 0; i < count; i++)
        cr_assert(decode_stream_push(tokenizer, &stream, ids[i], &out));
    cr_assert(decode_stream_finish(&stream, &out));
    cr_expect_str_eq(out.bytes, expected);
    text_deinit(&out);
}

Test(decode_stream, the_first_space_is_the_prefix) {
    small_vocabulary_pieces(&vocabulary);
    int32_t word = small_vocabulary_piece(&vocabulary, "\xE2\x96\x81hi", -1);
    int32_t control = small_vocabulary_add(&vocabulary, "<end>", TOKEN_CONTROL);
    int32_t tag = small_vocabulary_add(&vocabulary, "<b>", TOKEN_USER_DEFINED);
    const int32_t ids[] = {control, word, tag, word, control, 0, 99999, -1};
    vocabulary.source.add_space_prefix = 1;
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    expect_text(tokenizer, ids, 8, "hi<b> hi");
    tokenizer_destroy(tokenizer);
    vocabulary.source.add_space_prefix = 0;
    tokenizer = pieces_tokenizer(&vocabulary);
    expect_text(tokenizer, ids, 8, " hi<b> hi");
    tokenizer_destroy(tokenizer);
}

Test(decode_stream, a_full_text_is_said) {
    small_vocabulary_bytes(&vocabulary, "gpt-2");
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    struct decode_stream stream;
    struct text out;
    text_init(&out, 2);
    decode_stream_init(&stream);
    cr_assert(decode_stream_push(tokenizer, &stream, 'a', &out));
    cr_assert(decode_stream_push(tokenizer, &stream, 0xF0, &out));
    cr_assert_not(decode_stream_finish(&stream, &out));
    tokenizer_destroy(tokenizer);
    text_deinit(&out);
}
