/* Vocabularies that contradict themselves are refused, and the message says where. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/support/failing_malloc.h"
#include "tests/tokenizer/pieces.h"

static struct small_vocabulary vocabulary;

static void expect_refused(enum status expected, const char *message) {
    struct tokenizer *tokenizer;
    struct error error = {0};
    enum status status = tokenizer_create(&vocabulary.source, &tokenizer, &error);
    cr_expect_eq(status, expected, "%s: status %d", message, status);
    cr_expect(strstr(error.text, message), "'%s' is not in '%s'", message, error.text);
    cr_expect_null(tokenizer);
}

static void begin_bytes(void) {
    small_vocabulary_bytes(&vocabulary, "gpt-2");
    small_vocabulary_merge(&vocabulary, "a b");
}

static void begin_pieces(void) {
    small_vocabulary_pieces(&vocabulary);
    small_vocabulary_piece(&vocabulary, "a", -1);
}

Test(tokenizer_create, splitters) {
    begin_bytes();
    vocabulary.source.splitter = view_of("unheard-of");
    expect_refused(STATUS_UNSUPPORTED, "splitter 'unheard-of' is not supported; supported: gpt-2");
    vocabulary.source.splitter = view_of("");
    expect_refused(STATUS_UNSUPPORTED, "names no splitter");
}

Test(tokenizer_create, tokens) {
    begin_bytes();
    vocabulary.source.token_count = 0;
    expect_refused(STATUS_CORRUPT, "0 tokens");
    begin_bytes();
    small_vocabulary_add(&vocabulary, "a", TOKEN_NORMAL);
    expect_refused(STATUS_CORRUPT, "tokens 97 and 257 are both 'a'");
    begin_bytes();
    small_vocabulary_add(&vocabulary, "<x>", TOKEN_CONTROL);
    small_vocabulary_add(&vocabulary, "<x>", TOKEN_USER_DEFINED);
    expect_refused(STATUS_CORRUPT, "both '<x>'");
    begin_bytes();
    vocabulary.classes[3] = 9;
    expect_refused(STATUS_CORRUPT, "token 3 has class 9");
}

Test(tokenizer_create, merges) {
    static const struct {
        const char *line, *message;
    } lines[] = {
        {"ab", "merge 1, 'ab', is not two tokens"},
        {" ab", "is not two tokens"},
        {"ab ", "is not two tokens"},
        {"", "is not two tokens"},
        {"ab zz", "names a token"},
        {"ab a", "makes a token"},
        {"a \xE4\xB8\xAD", "alphabet"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        begin_bytes();
        vocabulary.merges[vocabulary.source.merge_count++] = view_of(lines[i].line);
        expect_refused(STATUS_CORRUPT, lines[i].message);
    }
    begin_bytes();
    vocabulary.source.merge_count = 0;
    expect_refused(STATUS_CORRUPT, "no merges");
}

Test(tokenizer_create, byte_level_without_bytes) {
    begin_bytes();
    memset(vocabulary.classes, TOKEN_UNUSED, 256);
    vocabulary.source.merge_count = 0;
    vocabulary.classes[256] = TOKEN_UNUSED;
    expect_refused(STATUS_CORRUPT, "single byte");
}

Test(tokenizer_create, special_ids) {
    begin_bytes();
    vocabulary.source.eos_id = 257;
    expect_refused(STATUS_CORRUPT, "the EOS token is 257, but there are 257 tokens");
    vocabulary.source.eos_id = -2;
    expect_refused(STATUS_CORRUPT, "the EOS token is -2");
}

Test(tokenizer_create, pieces) {
    static const char *const names[] = {"<0x-1>", "<0x1>", "<0xGG>", "0x41", "<0x041>"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        begin_pieces();
        small_vocabulary_add(&vocabulary, names[i], TOKEN_BYTE);
        expect_refused(STATUS_CORRUPT, "byte token 258");
    }
    begin_pieces();
    small_vocabulary_add(&vocabulary, "<0x41>", TOKEN_BYTE);
    expect_refused(STATUS_CORRUPT, "tokens 66 and 258 are both '<0x41>'");
    begin_pieces();
    vocabulary.source.scores = NULL;
    expect_refused(STATUS_CORRUPT, "no scores");
    begin_pieces();
    vocabulary.scores[257] = NAN;
    expect_refused(STATUS_CORRUPT, "score of token 257");
}

Test(tokenizer_create, questions) {
    small_vocabulary_bytes(&vocabulary, "llama-bpe");
    int32_t bos = small_vocabulary_add(&vocabulary, "<|begin|>", TOKEN_CONTROL);
    int32_t eos = small_vocabulary_add(&vocabulary, "<|stop|>", TOKEN_CONTROL);
    int32_t end = small_vocabulary_add(&vocabulary, "<|im_end|>", TOKEN_CONTROL);
    int32_t tool = small_vocabulary_add(&vocabulary, "<tool>", TOKEN_USER_DEFINED);
    vocabulary.source.bos_id = bos;
    vocabulary.source.eos_id = eos;
    struct tokenizer *tokenizer = pieces_tokenizer(&vocabulary);
    cr_expect_eq(tokenizer_token_count(tokenizer), 260);
    cr_expect_eq(tokenizer_bos(tokenizer), bos);
    cr_expect_eq(tokenizer_eos(tokenizer), eos);
    cr_expect(tokenizer_wants_bos(tokenizer)); /* the splitter's default */
    cr_expect(tokenizer_is_end(tokenizer, eos));
    cr_expect(tokenizer_is_end(tokenizer, end)); /* by its name */
    cr_expect_not(tokenizer_is_end(tokenizer, tool));
    cr_expect(tokenizer_is_special(tokenizer, bos));
    cr_expect_not(tokenizer_is_special(tokenizer, tool));
    cr_expect_not(tokenizer_is_special(tokenizer, -1));
    cr_expect_not(tokenizer_is_special(tokenizer, 9999));
    cr_expect_eq(tokenizer_find(tokenizer, view_of("<tool>")), tool);
    cr_expect_eq(tokenizer_find(tokenizer, view_of(" ")), ' ');
    cr_expect_eq(tokenizer_find(tokenizer, view_of("nowhere")), -1);
    cr_expect_eq(tokenizer_token_bytes(tokenizer, 260).length, 0);
    cr_expect_str_eq(tokenizer_splitter_name(tokenizer), "llama-bpe");
    tokenizer_destroy(tokenizer);
    vocabulary.source.add_bos = 0;
    tokenizer = pieces_tokenizer(&vocabulary);
    cr_expect_not(tokenizer_wants_bos(tokenizer));
    tokenizer_destroy(tokenizer);
}

static void fail_every_allocation(void) {
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct tokenizer *tokenizer;
        struct error error;
        failing_malloc_arm(n);
        enum status status = tokenizer_create(&vocabulary.source, &tokenizer, &error);
        failed = failing_malloc_disarm();
        cr_assert_eq(status, failed ? STATUS_NO_MEMORY : STATUS_OK);
        tokenizer_destroy(tokenizer);
    }
}

Test(tokenizer_create, no_memory) {
    begin_bytes();
    small_vocabulary_add(&vocabulary, "<x>", TOKEN_CONTROL);
    fail_every_allocation();
    begin_pieces();
    fail_every_allocation();
}
