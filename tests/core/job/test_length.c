/* Length policies: what is cut, what is counted, what is said. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/job/length.h"

static struct marked_text text;
static struct token_list list;
static struct length_outcome outcome;
static struct error error;
static int32_t ids[64];
static uint32_t offsets[64];

/* One token a byte, its id the byte; `text` is built by append. */
static void setup(void) {
    marked_text_init(&text, 1 << 20);
    list = (struct token_list){.ids = ids, .offsets = offsets, .capacity = 64};
    error.text[0] = '\0';
}

static void teardown(void) {
    marked_text_deinit(&text);
}

TestSuite(length, .init = setup, .fini = teardown);

static void append(const char *bytes, enum text_origin origin) {
    for (size_t i = 0; bytes[i]; i++) {
        ids[list.count] = (unsigned char)bytes[i];
        offsets[list.count++] = (uint32_t)(text.text.length + i);
    }
    cr_assert(marked_text_append(&text, bytes, strlen(bytes), origin));
}

static void build(void) {
    append("<u>", ORIGIN_TEMPLATE);
    append("P:", ORIGIN_PROMPT);
    append("0123456789", ORIGIN_DOCUMENT);
    append("</u>", ORIGIN_TEMPLATE);
}

/* The ids as text. */
static void expect_ids(const char *expected) {
    char got[65] = "";
    for (size_t i = 0; i < list.count; i++)
        got[i] = (char)list.ids[i];
    cr_expect_str_eq(got, expected);
    cr_expect_eq((size_t)outcome.prompt_tokens, strlen(expected));
}

static void expect_kept(enum too_long policy, long long context, long long max_tokens,
                        const char *expected, const char *kept) {
    cr_assert_eq(length_apply(&list, &text, policy, context, max_tokens, &outcome, &error),
                 STATUS_OK, "%s", error.text);
    expect_ids(expected);
    cr_expect_str_eq(outcome.kept, kept);
    cr_expect_eq(outcome.shortened, kept[0] != '\0');
}

Test(length, what_fits_is_left_alone) {
    build();
    expect_kept(TOO_LONG_ERROR, 24, 5, "<u>P:0123456789</u>", "");
    cr_expect_eq(outcome.document_tokens, 10);
    cr_expect_eq(outcome.used_tokens, 10);
}

Test(length, error_tells_the_numbers) {
    build();
    cr_expect_eq(length_apply(&list, &text, TOO_LONG_ERROR, 20, 5, &outcome, &error),
                 STATUS_OVER_LIMIT);
    cr_expect_str_eq(error.text, "document has 10 tokens, 20 context - 5 output - 9 prompt leaves "
                                 "6: try --too-long keep-head or a smaller --max-tokens");
    cr_expect_eq(outcome.document_tokens, 10);
    cr_expect_eq(list.count, 19);
}

Test(length, keep_head_cuts_the_end_of_the_document) {
    build();
    expect_kept(TOO_LONG_KEEP_HEAD, 20, 5, "<u>P:012345</u>", "tokens 0-5 of 10");
    cr_expect_eq(outcome.document_tokens, 10);
    cr_expect_eq(outcome.used_tokens, 6);
    cr_expect_eq(outcome.prompt_tokens + 5, 20);
}

Test(length, keep_tail_cuts_its_beginning) {
    build();
    expect_kept(TOO_LONG_KEEP_TAIL, 20, 5, "<u>P:456789</u>", "tokens 4-9 of 10");
}

Test(length, keep_ends_cuts_its_middle) {
    build();
    expect_kept(TOO_LONG_KEEP_ENDS, 20, 6, "<u>P:01289</u>", "tokens 0-2 and 8-9 of 10");
    cr_expect_eq(outcome.used_tokens, 5);
}

Test(length, one_token_is_enough_none_is_not) {
    build();
    expect_kept(TOO_LONG_KEEP_ENDS, 15, 5, "<u>P:0</u>", "tokens 0-0 of 10");
    list.count = 0;
    marked_text_clear(&text);
    build();
    cr_expect_eq(length_apply(&list, &text, TOO_LONG_KEEP_HEAD, 14, 5, &outcome, &error),
                 STATUS_OVER_LIMIT);
    cr_expect_str_eq(error.text, "14 context - 5 output - 9 prompt leaves no room for the "
                                 "document's 10 tokens: try a shorter prompt, a smaller "
                                 "--max-tokens or a larger --context");
}

Test(length, several_stretches_of_document_are_one) {
    append("aaa", ORIGIN_DOCUMENT);
    append("--", ORIGIN_TEMPLATE);
    append("bbb", ORIGIN_DOCUMENT);
    expect_kept(TOO_LONG_KEEP_HEAD, 7, 1, "aaa--b", "tokens 0-3 of 6");
}

Test(length, a_token_belongs_to_its_first_byte) {
    append("P", ORIGIN_PROMPT);
    append("abc", ORIGIN_DOCUMENT);
    append("<", ORIGIN_TEMPLATE);
    list.count = 0; /* "Pa", "b", "c<" */
    for (uint32_t i = 0; i < 3; i++) {
        offsets[i] = i == 0 ? 0 : i + 1;
        ids[list.count++] = "Pbc"[i];
    }
    expect_kept(TOO_LONG_KEEP_HEAD, 3, 1, "Pb", "tokens 0-0 of 2");
    cr_expect_eq(outcome.document_tokens, 2);
}

Test(length, an_added_bos_is_not_the_document) {
    append("abcd", ORIGIN_DOCUMENT);
    memmove(ids + 1, ids, 4 * sizeof *ids);
    memmove(offsets + 1, offsets, 4 * sizeof *offsets);
    ids[0] = '^';
    list.count = 5;
    expect_kept(TOO_LONG_KEEP_TAIL, 4, 1, "^cd", "tokens 2-3 of 4");
    cr_expect_eq(outcome.document_tokens, 4);
}

Test(length, names_are_not_the_document) {
    append("name", ORIGIN_NAME);
    append("abcd", ORIGIN_DOCUMENT);
    expect_kept(TOO_LONG_KEEP_TAIL, 7, 1, "namecd", "tokens 2-3 of 4");
}

Test(length, characters_are_not_cut_in_two) {
    append("P", ORIGIN_PROMPT);
    append("a\xe6\x97\xa5z\xe6\x9c\xac", ORIGIN_DOCUMENT); /* a 日 z 本, a token a byte */
    expect_kept(TOO_LONG_KEEP_HEAD, 5, 1, "Pa", "tokens 0-0 of 8");
    list.count = 0;
    marked_text_clear(&text);
    append("P", ORIGIN_PROMPT);
    append("a\xe6\x97\xa5z\xe6\x9c\xac", ORIGIN_DOCUMENT);
    expect_kept(TOO_LONG_KEEP_TAIL, 7, 1, "Pz\xe6\x9c\xac", "tokens 4-7 of 8");
}

Test(length, less_than_a_character_is_better_than_nothing) {
    append("P", ORIGIN_PROMPT);
    append("a\xe6\x97\xa5", ORIGIN_DOCUMENT);
    expect_kept(TOO_LONG_KEEP_TAIL, 4, 1, "P\x97\xa5", "tokens 2-3 of 4");
}

Test(length, nothing_at_all_fits_anywhere) {
    expect_kept(TOO_LONG_ERROR, 1, 1, "", "");
}
