/* Stop strings across token borders, end tokens, the length limit. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/job/generation.h"

/* A byte-level vocabulary of single letters and a few longer pieces. */
static struct tokenizer *tokenizer;
static struct item *item;

enum { PIECE_COUNT = 30, END_ID = 29 };

static void setup(void) {
    static char letters[26][2];
    struct view tokens[PIECE_COUNT];
    uint8_t classes[PIECE_COUNT];
    memset(classes, TOKEN_NORMAL, sizeof classes);
    for (int i = 0; i < 26; i++) {
        letters[i][0] = (char)('a' + i);
        tokens[i] = (struct view){letters[i], 1};
    }
    tokens[26] = view_of("st");
    tokens[27] = view_of("xst");
    tokens[28] = view_of("opyy");
    tokens[END_ID] = view_of("<end>");
    classes[END_ID] = TOKEN_CONTROL;
    const struct view merges[] = {view_of("s t")};
    struct tokenizer_source source = {.model = TOKENIZER_BYTE_BPE,
                                      .splitter = view_of("gpt-2"),
                                      .token_count = PIECE_COUNT,
                                      .tokens = tokens,
                                      .classes = classes,
                                      .merge_count = 1,
                                      .merges = merges,
                                      .bos_id = -1,
                                      .eos_id = END_ID,
                                      .eot_id = -1,
                                      .eom_id = -1,
                                      .unknown_id = -1,
                                      .add_bos = 0,
                                      .add_space_prefix = 0};
    struct error error;
    cr_assert_eq(tokenizer_create(&source, &tokenizer, &error), STATUS_OK, "%s", error.text);
    item = item_create();
    settings_init(&item->settings);
}

static void teardown(void) {
    item_destroy(item);
    tokenizer_destroy(tokenizer);
}

TestSuite(generation, .init = setup, .fini = teardown);

static bool take(int32_t token) {
    return generation_take_token(item, tokenizer, token, false);
}

static void stop_at(const char *text) {
    item->settings.stop.items[item->settings.stop.count++] = text;
}

Test(generation, a_stop_string_across_tokens_cuts_before_it) {
    stop_at("stop");
    cr_assert_not(take(0));
    cr_assert_not(take(27));
    cr_assert(take(28));
    cr_assert_str_eq(item->output.bytes, "ax");
    cr_assert_str_eq(item->finish_reason, "stop");
    cr_assert_str_eq(item->stop_string, "stop");
    cr_assert_eq(item->completion_tokens, 3);
}

Test(generation, the_earliest_match_wins) {
    stop_at("y");
    stop_at("op");
    cr_assert_not(take(27));
    cr_assert(take(28));
    cr_assert_str_eq(item->output.bytes, "xst");
    cr_assert_str_eq(item->stop_string, "op");
}

Test(generation, an_end_token_ends_and_is_counted) {
    cr_assert_not(take(7));
    cr_assert(take(END_ID));
    cr_assert_str_eq(item->output.bytes, "h");
    cr_assert_str_eq(item->finish_reason, "stop");
    cr_assert_null(item->stop_string);
    cr_assert_eq(item->completion_tokens, 2);
}

Test(generation, ignore_eos_goes_on) {
    item->settings.ignore_eos = true;
    cr_assert_not(take(END_ID));
    cr_assert(generation_take_token(item, tokenizer, 1, true));
    cr_assert_str_eq(item->output.bytes, "b");
    cr_assert_str_eq(item->finish_reason, "length");
}

Test(generation, no_output_is_an_empty_text) {
    cr_assert(take(END_ID));
    struct row row;
    item_fill_row(item, &row);
    cr_assert_eq(row.text.length, 0u);
    cr_assert_eq(row.warnings[WARNING_EMPTY_OUTPUT], 1);
}
