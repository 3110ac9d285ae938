/* Splitters: pieces written with '|' between them. The examples are the known hard places of the
 * expressions: contractions, blanks before a word, newlines, digits, marks. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/guard_pages.h"
#include "tokenizer/splitter.h"

struct example {
    const char *splitter, *pieces;
};

static const struct splitter *find(const char *name) {
    const struct splitter *splitter;
    cr_assert_eq(splitter_find(view_of(name), &splitter, NULL), STATUS_OK, "%s", name);
    return splitter;
}

/* Splits `pieces` without its bars and expects the bars back. */
static void expect(const char *name, const char *pieces) {
    char text[512], found[512];
    size_t length = 0, used = 0;
    for (const char *at = pieces; *at; at++)
        if (*at != '|')
            text[length++] = *at;
    struct splitter_cursor cursor = splitter_begin((const uint8_t *)text, length);
    const uint8_t *first = cursor.at;
    while (cursor.at < cursor.end) {
        find(name)->next(&cursor);
        cr_assert_gt(cursor.at, first);
        if (used > 0)
            found[used++] = '|';
        memcpy(found + used, first, (size_t)(cursor.at - first));
        used += (size_t)(cursor.at - first);
        first = cursor.at;
    }
    found[used] = '\0';
    cr_expect_str_eq(found, pieces, "%s: got '%s', expected '%s'", name, found, pieces);
}

static void expect_all(const struct example *examples, size_t count) {
    for (size_t i = 0; i < count; i++)
        expect(examples[i].splitter, examples[i].pieces);
}

#define EXPECT_ALL(examples) expect_all(examples, sizeof(examples) / sizeof *(examples))

Test(splitter, gpt2) {
    static const struct example examples[] = {
        {"gpt-2", "Hello| world|!"}, {"gpt-2", "don|'t|s"},     {"gpt-2", "'''|s"},
        {"gpt-2", "a| '|s"},         {"gpt-2", "I|'|LL"},       {"gpt-2", "a|  | b"},
        {"gpt-2", "a|   "},          {"gpt-2", "\n | y"},       {"gpt-2", "a|\n|\n|b"},
        {"gpt-2", "x| 12345½|y"},    {"gpt-2", "e|\xCC\x81|e"}, {"gpt-2", "中文|，|字"},
        {"gpt-2", "\xE2\x80\x8B|a"}, {"phi-2", "don|'t"},
    };
    EXPECT_ALL(examples);
}

Test(splitter, digits_before_all_else) {
    static const struct example examples[] = {
        {"smollm", "a| |1|2|3| b"}, {"smollm", "a|  |1"},  {"smollm", "½|①"},
        {"starcoder", "x|4|8"},     {"refact", "v|1|.|2"}, {"command-r", "a| |7"},
        {"smollm", "don|'t"},       {"smollm", "  | a"},
    };
    EXPECT_ALL(examples);
}

Test(splitter, llama3) {
    static const struct example examples[] = {
        {"llama-bpe", "I|'LL| go"},       {"llama-bpe", "x|'\xC5\xBF|y"},
        {"llama-bpe", "123|456|7"},       {"llama-bpe", "a|\n\n|b"},
        {"llama-bpe", "a| \n  \n|  | b"}, {"llama-bpe", "x|!!\n\n|y"},
        {"llama-bpe", "\"quoted|\"(|x"},  {"llama-bpe", "a|\t|\tb"},
        {"llama-bpe", "a| | |1"},         {"llama-bpe", "\r\n|x"},
        {"llama-bpe", "\n| | y"},         {"llama3", "क|़"},
    };
    EXPECT_ALL(examples);
}

Test(splitter, qwen2_takes_single_numbers) {
    static const struct example examples[] = {
        {"qwen2", "a|1|2| |3"},
        {"qwen2", "it|'S"},
        {"deepseek-r1-qwen", " \n|x"},
        {"qwen2", "中文|，字"},
    };
    EXPECT_ALL(examples);
}

Test(splitter, falcon) {
    static const struct example examples[] = {
        {"falcon", "a| |(|b|)"}, {"falcon", "don|'|t"}, {"falcon", "x| |123|45"},
        {"falcon", "++|a"},      {"falcon", "v|1|.|2"},
    };
    EXPECT_ALL(examples);
}

Test(splitter, unknown_names_are_refused_with_what_there_is) {
    const struct splitter *splitter;
    struct error error;
    cr_assert_eq(splitter_find(view_of("tekken"), &splitter, &error), STATUS_UNSUPPORTED);
    cr_expect(strstr(error.text, "'tekken'") && strstr(error.text, "gpt-2") &&
              strstr(error.text, "falcon"));
    cr_assert_eq(splitter_find(view_of(""), &splitter, &error), STATUS_UNSUPPORTED);
    cr_expect(strstr(error.text, "tokenizer.ggml.pre"));
}

static const char *const names[] = {"gpt-2", "smollm", "qwen2", "llama-bpe", "falcon"};

/* Pieces cover the text and nothing behind it is read, whatever the bytes. */
Test(splitter, any_bytes_up_to_a_guard_page) {
    struct guard_pages pages = guard_pages_create(64);
    uint32_t state = 1;
    static const uint8_t frequent[] = {' ',  '\'', 's',  '1',  '\n', 0xE2,
                                       0x80, 0xF0, 0x9F, 0xCC, 0xC5};
    for (int round = 0; round < 4000; round++) {
        uint8_t *bytes = pages.bytes;
        for (int i = 0; i < 64; i++) {
            state = state * 1664525u + 1013904223u;
            unsigned random = state >> 16;
            bytes[i] = random & 1 ? frequent[random / 2 % sizeof frequent] : (uint8_t)(random >> 3);
        }
        size_t length = 1 + state % 64;
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            struct splitter_cursor cursor = splitter_begin(bytes + 64 - length, length);
            while (cursor.at < cursor.end) {
                const uint8_t *before = cursor.at;
                find(names[n])->next(&cursor);
                cr_assert(cursor.at > before && cursor.at <= cursor.end);
            }
        }
    }
    guard_pages_destroy(&pages);
}

/* A million bytes of anything: a quadratic scanner would not come back. */
Test(splitter, long_runs, .timeout = 60) {
    static const char *const units[] = {"a",  " ", "\n", " \n",      "\n ",         "0",
                                        "^",  "'", "中", "\xCC\x81", "\xFF",        " a",
                                        "\t", "½", "a1", "'s",       "\xE3\x80\x80"};
    enum { LENGTH = 1 << 20 };
    static uint8_t text[LENGTH];
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        size_t unit = strlen(units[u]);
        for (size_t i = 0; i < LENGTH; i++)
            text[i] = (uint8_t)units[u][i % unit];
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            struct splitter_cursor cursor = splitter_begin(text, LENGTH);
            while (cursor.at < cursor.end)
                find(names[n])->next(&cursor);
        }
    }
}
