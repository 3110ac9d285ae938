/* Encoding with small vocabularies: merges, added tokens by trust, BOS, offsets, normalisation,
 * byte fallback, and texts that end in the middle of anything. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/failing_malloc.h"
#include "tests/support/guard_pages.h"
#include "tests/tokenizer/pieces.h"

static struct small_vocabulary vocabulary;
static const struct tokenizer_options plain;

static void begin_words(const char *splitter) {
    small_vocabulary_bytes(&vocabulary, splitter);
    small_vocabulary_merge(&vocabulary, "h e");
    small_vocabulary_merge(&vocabulary, "l l");
    small_vocabulary_merge(&vocabulary, "he ll");
    small_vocabulary_merge(&vocabulary, "\xC4\xA0 w"); /* Ġw */
    small_vocabulary_merge(&vocabulary, "o r");
    small_vocabulary_merge(&vocabulary, "\xC3\x83 \xC2\xA9"); /* é */
}

Test(tokenizer_encode, merges_in_order) {
    begin_words("gpt-2");
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    pieces_expect(tokenizer, "hello world", "hell|o| w|or|l|d");
    pieces_expect(tokenizer, "lll", "ll|l"); /* ties: leftmost */
    pieces_expect(tokenizer, "", "");
    pieces_expect(tokenizer, "hehehehehehehehehehehehehehehehehehehe!",
                  "he|he|he|he|he|he|he|he|he|he|he|he|he|he|he|he|he|he|he|!");
    tokenizer_destroy(tokenizer);
}

Test(tokenizer_encode, whole_words_only_where_the_splitter_says) {
    small_vocabulary_bytes(&vocabulary, "llama-bpe");
    small_vocabulary_add(&vocabulary, "xyz", TOKEN_NORMAL);
    small_vocabulary_merge(&vocabulary, "x y");
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    pieces_expect(tokenizer, "xyz", "xyz");
    pieces_expect(tokenizer, "xyzz", "xy|z|z");
    tokenizer_destroy(tokenizer);
    vocabulary.source.splitter = view_of("gpt-2");
    tokenizer = pieces_tokenizer(&vocabulary);
    pieces_expect(tokenizer, "xyz", "xy|z");
    tokenizer_destroy(tokenizer);
}

Test(tokenizer_encode, one_scratch_serves_several_tokenizers) {
    struct tokenizer_scratch *scratch = tokenizer_scratch_create();
    struct token_list list = {0};
    struct marked_text text;
    marked_text_init(&text, 100);
    marked_text_append(&text, "hell", 4, ORIGIN_DOCUMENT);
    begin_words("gpt-2");
    struct tokenizer *first = pieces_tokenizer(&vocabulary);
    small_vocabulary_bytes(&vocabulary, "gpt-2");
    struct tokenizer *second = pieces_tokenizer(&vocabulary);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(tokenizer_encode(i % 2 ? second : first, &text, &plain, scratch, &list, NULL),
                     STATUS_OK);
        cr_expect_eq(list.count, i % 2 ? 4 : 1);
    }
    tokenizer_destroy(first);
    tokenizer_destroy(second);
    token_list_deinit(&list);
    tokenizer_scratch_destroy(scratch);
    marked_text_deinit(&text);
}

static void begin_specials(void) {
    begin_words("gpt-2");
    small_vocabulary_add(&vocabulary, "<end>", TOKEN_CONTROL);
    small_vocabulary_add(&vocabulary, "<end>>", TOKEN_CONTROL);
    small_vocabulary_add(&vocabulary, "<en", TOKEN_USER_DEFINED);
    vocabulary.source.eos_id = small_vocabulary_add(&vocabulary, "</s>", TOKEN_USER_DEFINED);
    small_vocabulary_add(&vocabulary, "[PAD266]", TOKEN_USER_DEFINED);
}

/* Appends "T:…", "P:…" or "D:…" pieces separated by '~' and expects the tokens. */
static void expect_origins(const struct tokenizer *tokenizer, const char *parts, bool trust_prompt,
                           const char *expected) {
    struct marked_text text;
    marked_text_init(&text, 1000);
    while (*parts) {
        size_t length = strcspn(parts + 2, "~");
        enum text_origin origin = *parts == 'T'   ? ORIGIN_TEMPLATE
                                  : *parts == 'P' ? ORIGIN_PROMPT
                                                  : ORIGIN_DOCUMENT;
        cr_assert(marked_text_append(&text, parts + 2, length, origin));
        parts += 2 + length + (parts[2 + length] == '~');
    }
    pieces_expect_marked(tokenizer, &text,
                         (struct tokenizer_options){.prompt_trusted = trust_prompt}, expected);
    marked_text_deinit(&text);
}

Test(tokenizer_encode, special_tokens_only_in_trusted_bytes) {
    begin_specials();
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    expect_origins(tokenizer, "T:a<end>b", false, "a|<end>|b");
    expect_origins(tokenizer, "T:<end>>", false, "<end>>"); /* the longest */
    expect_origins(tokenizer, "D:<end>", false, "<en|d|>");
    expect_origins(tokenizer, "P:<end>", false, "<en|d|>");
    expect_origins(tokenizer, "P:<end>", true, "<end>");
    expect_origins(tokenizer, "T:<end~D:>", false, "<en|d|>"); /* not across a border */
    expect_origins(tokenizer, "T:<end~P:>", false, "<en|d|>");
    expect_origins(tokenizer, "T:<end~P:>", true, "<end>");
    expect_origins(tokenizer, "T:<end>~D:>", false,
                   "<end>|>"); /* the longer one is not all trusted */
    expect_origins(tokenizer, "D:<end>~T:<end>~D:<end>", false, "<en|d|>|<end>|<en|d|>");
    expect_origins(tokenizer, "D:hel~T:l", false, "hell"); /* ordinary text is one string */
    expect_origins(tokenizer, "D:</s>", false, "<|/|s|>"); /* an end token by its role */
    expect_origins(tokenizer, "T:</s>", false, "</s>");
    expect_origins(tokenizer, "T:[PAD266]", false, "[|P|A|D|2|6|6|]"); /* filler rows are no text */
    tokenizer_destroy(tokenizer);
}

Test(tokenizer_encode, one_bos) {
    begin_specials();
    vocabulary.source.bos_id = small_vocabulary_add(&vocabulary, "<s>", TOKEN_CONTROL);
    vocabulary.source.add_bos = 1;
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    struct marked_text text;
    marked_text_init(&text, 100);
    struct tokenizer_options options = {.add_bos = true};
    pieces_expect_marked(tokenizer, &text, options, "<s>");
    marked_text_append(&text, "<s>a", 4, ORIGIN_TEMPLATE);
    pieces_expect_marked(tokenizer, &text, options, "<s>|a");
    pieces_expect_marked(tokenizer, &text, plain, "<s>|a");
    marked_text_clear(&text);
    marked_text_append(&text, "<s>", 3, ORIGIN_DOCUMENT);
    pieces_expect_marked(tokenizer, &text, options, "<s>|<|s|>");
    marked_text_deinit(&text);
    tokenizer_destroy(tokenizer);
    vocabulary.source.add_bos = 0;
    tokenizer = pieces_tokenizer(&vocabulary);
    marked_text_init(&text, 100);
    pieces_expect_marked(tokenizer, &text, options, "");
    tokenizer_destroy(tokenizer);
}

Test(tokenizer_encode, offsets_are_in_the_original_text) {
    begin_words("qwen2");
    small_vocabulary_add(&vocabulary, "<end>", TOKEN_CONTROL);
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    struct marked_text text;
    marked_text_init(&text, 100);
    marked_text_append(&text, "he<end>e\xCC\x81x e\xCC\x81", 15, ORIGIN_TEMPLATE);
    struct token_list list = {0};
    pieces_encode(tokenizer, &text, plain, &list);
    static const uint32_t expected[] = {0, 2, 7, 10, 11, 12};
    cr_assert_eq(list.count, 6); /* he <end> é x _ é */
    for (size_t i = 0; i < list.count; i++)
        cr_expect_eq(list.offsets[i], expected[i], "%zu: %u", i, list.offsets[i]);
    token_list_deinit(&list);
    marked_text_deinit(&text);
    tokenizer_destroy(tokenizer);
}

static void begin_sentencepiece(void) {
    small_vocabulary_pieces(&vocabulary);
    static const char *const pieces[] = {
        "he", "ll", "hell", "\xE2\x96\x81hell", "\xE2\x96\x81w", "o", "h",
        "e",  "l",  "w",    "\xE2\x96\x81",     "> <",           ">", "<",
        "é",
    };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        small_vocabulary_piece(&vocabulary, pieces[i], -(float)i);
    small_vocabulary_piece(&vocabulary, "\xE2\x96\x81<", -0.5f);
    small_vocabulary_add(&vocabulary, "  ", TOKEN_USER_DEFINED);
    small_vocabulary_add(&vocabulary, "   ", TOKEN_USER_DEFINED);
    small_vocabulary_add(&vocabulary, "\t", TOKEN_USER_DEFINED);
    small_vocabulary_add(&vocabulary, "<s>", TOKEN_CONTROL);
    vocabulary.source.add_space_prefix = 0;
}

Test(tokenizer_encode, pieces_merge_by_score) {
    begin_sentencepiece();
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    pieces_expect(tokenizer, "hello hell", "hell|o| hell");
    pieces_expect(tokenizer, "o   hell", "o|   |hell"); /* runs of spaces before all else */
    pieces_expect(tokenizer, "\t\to", "\t|\t|o");
    pieces_expect(tokenizer, "o\xE2\x96\x81w", "o| w"); /* U+2581 is a space */
    pieces_expect(tokenizer, "> <", "> <");             /* a token with a space inside */
    pieces_expect(tokenizer, "<s>", "<|s|>");
    pieces_expect(tokenizer, "éx\xF0\x9F\x98\x80\xFF", "é|x|\xF0|\x9F|\x98|\x80|\xFF");
    tokenizer_destroy(tokenizer);
}

Test(tokenizer_encode, a_space_before_the_text_and_after_special_tokens) {
    begin_sentencepiece();
    vocabulary.source.add_space_prefix = 1;
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    pieces_expect(tokenizer, "hell", " hell");
    pieces_expect(tokenizer, "", "");
    expect_origins(tokenizer, "T:hell<s>hell<s>", false, " hell|<s>| hell|<s>");
    expect_origins(tokenizer, "T:<s>~D: w", false, "<s>|  |w");
    tokenizer_destroy(tokenizer);
}

Test(tokenizer_encode, without_byte_tokens_characters_are_unknown) {
    begin_sentencepiece();
    memset(vocabulary.classes + 1, TOKEN_UNUSED, 256);
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    pieces_expect(tokenizer, "oxyzo", "o|<unk>|o"); /* once for several */
    tokenizer_destroy(tokenizer);
    vocabulary.source.unknown_id = -1;
    tokenizer = pieces_tokenizer(&vocabulary);
    pieces_expect(tokenizer, "oxyzo", "o|o");
    tokenizer_destroy(tokenizer);
}

Test(tokenizer_encode, bytes_without_a_token_are_left_out) {
    begin_words("gpt-2");
    vocabulary.classes['x'] = TOKEN_UNUSED;
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    pieces_expect(tokenizer, "hxe", "he"); /* as the reference: neighbours then meet */
    tokenizer_destroy(tokenizer);
}

/* The tokens of any bytes at the edge of memory spell these bytes. */
static void expect_round_trips(const struct tokenizer *tokenizer) {
    struct guard_pages pages = guard_pages_create(96);
    struct tokenizer_scratch *scratch = tokenizer_scratch_create();
    struct token_list list = {0};
    uint32_t state = 5;
    for (int round = 0; round < 3000; round++) {
        uint8_t *bytes = pages.bytes;
        for (int i = 0; i < 96; i++) {
            state = state * 1664525u + 1013904223u;
            bytes[i] = state >> 31 ? "hello w\n"[state >> 28 & 7] : (uint8_t)(state >> 16);
        }
        size_t length = state % 97;
        struct text_span span = {length, ORIGIN_DOCUMENT};
        struct marked_text text = {
            .text = {.bytes = (char *)bytes + 96 - length, .length = length},
            .spans = &span,
            .span_count = length > 0,
        };
        cr_assert_eq(tokenizer_encode(tokenizer, &text, &plain, scratch, &list, NULL), STATUS_OK);
        size_t at = 0;
        for (size_t i = 0; i < list.count; i++) {
            struct view token = tokenizer_token_bytes(tokenizer, list.ids[i]);
            cr_assert_eq(list.offsets[i], at);
            cr_assert_leq(at + token.length, length);
            cr_assert(memcmp(token.bytes, text.text.bytes + at, token.length) == 0);
            at += token.length;
        }
        cr_assert_eq(at, length);
    }
    token_list_deinit(&list);
    tokenizer_scratch_destroy(scratch);
    guard_pages_destroy(&pages);
}

Test(tokenizer_encode, any_bytes_round_trip) {
    static const char *const splitters[] = {"gpt-2", "smollm", "llama-bpe", "falcon"};
    for (size_t i = 0; i < sizeof splitters / sizeof *splitters; i++) {
        begin_words(splitters[i]);
        struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
        expect_round_trips(tokenizer);
        tokenizer_destroy(tokenizer);
    }
    begin_sentencepiece();
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    expect_round_trips(tokenizer);
    tokenizer_destroy(tokenizer);
}

/* A megabyte of one word: merging by scanning would take days. */
Test(tokenizer_encode, long_words, .timeout = 120) {
    enum { LENGTH = 1 << 20 };
    static char bytes[LENGTH];
    struct text_span span = {LENGTH, ORIGIN_DOCUMENT};
    struct marked_text text = {
        .text = {.bytes = bytes, .length = LENGTH}, .spans = &span, .span_count = 1};
    struct token_list list = {0};
    for (int model = 0; model < 2; model++) {
        if (model == 0)
            begin_words("gpt-2");
        else
            begin_sentencepiece();
        struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
        static const char *const words[] = {"l", "hell", "\xCC\x81", " "};
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            for (size_t i = 0; i < LENGTH; i++)
                bytes[i] = words[w][i % strlen(words[w])];
            pieces_encode(tokenizer, &text, plain, &list);
            cr_expect_gt(list.count, 0);
        }
        tokenizer_destroy(tokenizer);
    }
    token_list_deinit(&list);
}

Test(tokenizer_encode, no_memory) {
    begin_words("qwen2");
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    struct marked_text text;
    marked_text_init(&text, 1000);
    marked_text_append(&text, "hello e\xCC\x81 ", 10, ORIGIN_DOCUMENT);
    for (int i = 0; i < 20; i++)
        marked_text_append(&text, "hellhell", 8, ORIGIN_DOCUMENT);
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct token_list list = {0};
        struct error error;
        failing_malloc_arm(n);
        struct tokenizer_scratch *scratch = tokenizer_scratch_create();
        enum status status =
            scratch ? tokenizer_encode(tokenizer, &text, &plain, scratch, &list, &error)
                    : STATUS_NO_MEMORY;
        failed = failing_malloc_disarm();
        cr_assert_eq(status, failed ? STATUS_NO_MEMORY : STATUS_OK, "%d", n);
        token_list_deinit(&list);
        tokenizer_scratch_destroy(scratch);
    }
    marked_text_deinit(&text);
    tokenizer_destroy(tokenizer);
}
