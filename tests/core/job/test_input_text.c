/* Text checks and paths: what is UTF-8, what is repaired, what is refused, what looks binary. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/job/codes.h"
#include "core/job/input_path.h"
#include "core/job/input_text.h"

struct outcome {
    const char *code; /* NULL: fine */
    long long replaced;
    struct text text;
    struct error error;
};

static struct outcome decode(const char *bytes, size_t length, bool replace) {
    struct outcome outcome = {0};
    const char *code = NULL;
    text_init(&outcome.text, 1 << 20);
    cr_assert(text_append(&outcome.text, bytes, length));
    if (input_text_decode(&outcome.text, replace, &outcome.replaced, &code, &outcome.error))
        outcome.code = code;
    cr_assert(!outcome.code || codes_error_find(outcome.code), "an unknown code");
    return outcome;
}

static void assert_decodes(const char *bytes, size_t length, const char *expected) {
    struct outcome outcome = decode(bytes, length, true);
    cr_assert_null(outcome.code, "%s", outcome.error.text);
    cr_assert_eq(outcome.text.length, strlen(expected));
    cr_assert_str_eq(outcome.text.bytes, expected);
    text_deinit(&outcome.text);
}

static void assert_refused(const char *bytes, size_t length, bool replace, const char *code,
                           const char *reason) {
    struct outcome outcome = decode(bytes, length, replace);
    cr_assert(outcome.code && strcmp(outcome.code, code) == 0, "%s, not %s: %s",
              outcome.code ? outcome.code : "fine", code, outcome.error.text);
    cr_assert(strstr(outcome.error.text, reason), "'%s'", outcome.error.text);
    text_deinit(&outcome.text);
}

Test(input_text, text_stays_and_the_mark_goes) {
    assert_decodes("plain", 5, "plain");
    assert_decodes("\xEF\xBB\xBFmarked", 9, "marked");
    static const char wide[] = "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80";
    assert_decodes(wide, sizeof wide - 1, wide);
}

Test(input_text, what_is_not_text_is_refused_with_a_remedy) {
    assert_refused("", 0, true, "empty", "the document is empty");
    assert_refused(" \r\n\t", 4, true, "empty", "the document is empty");
    assert_refused("\xEF\xBB\xBF", 3, true, "empty", "the document is empty");
    assert_refused("ab\0c", 4, true, "not_text", "byte 2 is NUL");
    assert_refused("\xFF\xFE"
                   "a\0",
                   4, true, "not_text", "it is UTF-16");
    assert_refused("\xFE\xFF\0a", 4, true, "not_text", "iconv -f UTF-16 -t UTF-8");
    assert_refused("\xFF\xFE\0\0a\0\0\0", 8, true, "not_text", "it is UTF-32");
}

/* `count` letters with the bytes `bad` in the middle. */
static char *letters_around(size_t count, const char *bad, size_t *length) {
    size_t bad_length = strlen(bad);
    char *bytes = malloc(count + bad_length);
    memset(bytes, 'x', count + bad_length);
    memcpy(bytes + count / 2, bad, bad_length);
    *length = count + bad_length;
    return bytes;
}

Test(input_text, bad_bytes_are_replaced_and_counted) {
    static const struct {
        const char *bad, *good;
        long long count;
    } cases[] = {
        {"\xFF", "\xEF\xBF\xBD", 1},
        {"\xC3", "\xEF\xBF\xBD", 1},                                 /* a lead without the rest */
        {"\xE2\x82", "\xEF\xBF\xBD", 2},                             /* a cut character is one */
        {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD", 2},                 /* overlong */
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 3}, /* a surrogate */
        {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 4},
        {"\x80", "\xEF\xBF\xBD", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t length;
        size_t expected_length;
        char *bytes = letters_around(1000, cases[i].bad, &length);
        char *expected = letters_around(1000, cases[i].good, &expected_length);
        struct outcome outcome = decode(bytes, length, true);
        cr_assert_null(outcome.code, "case %zu: %s", i, outcome.error.text);
        cr_assert_eq(outcome.replaced, cases[i].count, "case %zu", i);
        cr_assert_eq(outcome.text.length, expected_length, "case %zu", i);
        cr_assert(memcmp(outcome.text.bytes, expected, expected_length) == 0, "case %zu", i);
        text_deinit(&outcome.text);
        assert_refused(bytes, length, false, "invalid_utf8", "byte 500 (0x");
        free(bytes);
        free(expected);
    }
}

Test(input_text, more_than_one_percent_replaced_is_no_text) {
    char bytes[1000];
    memset(bytes, 'a', sizeof bytes);
    for (int i = 0; i < 10; i++)
        bytes[i * 90 + 7] = '\xE9';
    struct outcome outcome = decode(bytes, sizeof bytes, true);
    cr_assert(!outcome.code && outcome.replaced == 10);
    text_deinit(&outcome.text);
    bytes[999] = '\xE9';
    assert_refused(bytes, sizeof bytes, true, "not_text", "11 of 1000 bytes are not UTF-8");
}

Test(input_text, every_position_of_a_bad_byte_is_found) {
    for (size_t at = 0; at < 40; at++) {
        uint8_t bytes[40];
        memset(bytes, 'a', sizeof bytes);
        bytes[at] = 0xC3;
        cr_assert_eq(input_text_valid_length(bytes, sizeof bytes), at);
    }
}

Test(input_text, binary_files_look_so) {
    static const struct {
        const char *bytes;
        size_t length;
        bool binary;
    } cases[] = {
        {"", 0, false},
        {"text\n", 5, false},
        {"%PDF-1.7\n1 0 obj", 16, true},
        {"\x7f"
         "ELF\2\1\1\0",
         8, true},
        {"\xFF\xFEh\0i\0", 6, false},    /* UTF-16: an error that says so */
        {"caf\xE9 cr\xE8me", 10, false}, /* Latin-1: an error that says so */
        {"\x89PNG\r\n\x1a\n\1\2\3\4\5", 13, true},
        {"\033[1mbold\033[0m", 12, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert_eq(input_text_looks_binary((const uint8_t *)cases[i].bytes, cases[i].length),
                     cases[i].binary, "case %zu", i);
}

Test(input_path, shown_paths_are_utf8_and_distinct) {
    static const struct {
        const char *path, *shown;
    } cases[] = {
        {"a/b.txt", "a/b.txt"},
        {"gr\xC3\xBC\xC3\x9F/100%.txt", "gr\xC3\xBC\xC3\x9F/100%.txt"},
        {"caf\xE9.txt", "caf%E9.txt"},
        {"caf\xE9%E9.txt", "caf%E9%25E9.txt"},
        {"new\nline", "new%0Aline"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *shown = input_path_shown(cases[i].path);
        cr_assert_str_eq(shown, cases[i].shown);
        free(shown);
    }
}

Test(input_path, normal_form_joining_and_kinds) {
    struct text out;
    text_init(&out, INPUT_PATH_MAX);
    static const char *const normal[][2] = {
        {"docs/", "docs"}, {"./docs//", "docs"}, {".", "."},    {"./", "."},        {"/", "/"},
        {"//", "/"},       {"../x", "../x"},     {".//a", "a"}, {"a/./b", "a/./b"},
    };
    for (size_t i = 0; i < sizeof normal / sizeof normal[0]; i++) {
        cr_assert(input_path_normal(&out, normal[i][0]));
        cr_assert_str_eq(out.bytes, normal[i][1]);
    }
    cr_assert(input_path_join(&out, ".", "a") && strcmp(out.bytes, "a") == 0);
    cr_assert(input_path_join(&out, "/", "a") && strcmp(out.bytes, "/a") == 0);
    cr_assert(input_path_join(&out, "d/e", "a") && strcmp(out.bytes, "d/e/a") == 0);
    text_deinit(&out);
    cr_assert(input_path_kind("x.jsonl").lines && !input_path_kind("x.jsonl").gzip);
    cr_assert(input_path_kind("x.JSONL.GZ").lines && input_path_kind("x.JSONL.GZ").gzip);
    cr_assert(!input_path_kind("x.txt.gz").lines && input_path_kind("x.txt.gz").gzip);
    cr_assert_str_eq(input_path_name("a/b/c.txt"), "c.txt");
    char extension[8];
    input_path_extension("d.x/Photo.JPG", extension, sizeof extension);
    cr_assert_str_eq(extension, ".jpg");
    input_path_extension("d.x/README", extension, sizeof extension);
    cr_assert_str_eq(extension, "");
}
