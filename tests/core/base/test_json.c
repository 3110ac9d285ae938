/* JSON: what is refused, with its position, and that whatever is written can be read again. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"

static enum status parse(const char *text, json_t **value, struct error *error) {
    return json_parse(text, strlen(text), value, error);
}

static void assert_refused(const char *text, const char *reason) {
    json_t *value = NULL;
    struct error error = {0};
    cr_assert_eq(parse(text, &value, &error), STATUS_BAD_INPUT, "accepted: %s", text);
    cr_assert_null(value);
    cr_assert_not_null(strstr(error.text, reason), "'%s' in: %s", reason, error.text);
}

Test(json, any_value_may_stand_at_the_top) {
    static const char *const values[] = {"1", "\"x\"", "null", " [1] ", "{\"a\":{}}", "-0.5e-3"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        json_t *value;
        struct error error;
        cr_assert_eq(parse(values[i], &value, &error), STATUS_OK, "%s", values[i]);
        json_decref(value);
    }
}

Test(json, nul_is_kept) {
    json_t *value;
    struct error error;
    cr_assert_eq(parse("\"a\\u0000b\"", &value, &error), STATUS_OK);
    cr_assert_eq(json_string_length(value), 3);
    cr_assert_eq(memcmp(json_string_value(value), "a\0b", 3), 0);
    struct text text;
    text_init(&text, 100);
    cr_assert(json_append(&text, value));
    cr_assert_str_eq(text.bytes, "\"a\\u0000b\"");
    text_deinit(&text);
    json_decref(value);
}

Test(json, refusals_tell_the_position) {
    assert_refused("", "line 1");
    assert_refused("{\"a\":1,\n\"a\":2}", "line 2");
    assert_refused("[1,]", "column 4");
    assert_refused("{} x", "end of file expected");
    assert_refused("{\"a\":1}\n{\"b\":2}", "line 2");
    assert_refused("'x'", "line 1, column 1");
    assert_refused("[NaN]", "invalid");
    assert_refused("\"tab\there\"", "control character");
}

Test(json, lone_surrogates_are_refused) {
    assert_refused("\"\\ud800\"", "Unicode");
    assert_refused("\"\\udc00\"", "Unicode");
    assert_refused("\"\\ud800\\u0041\"", "Unicode");
    assert_refused("\"\\ud800x\"", "Unicode");
    json_t *value;
    struct error error;
    cr_assert_eq(parse("\"\\ud83d\\ude00\"", &value, &error), STATUS_OK);
    cr_assert_str_eq(json_string_value(value), "\xF0\x9F\x98\x80");
    json_decref(value);
}

Test(json, invalid_utf8_is_refused_and_the_message_stays_valid) {
    assert_refused("\"\xFF\"", "decode byte");
    assert_refused("\"\xED\xA0\x80\"", "decode byte");
    assert_refused("\"\xC0\x80\"", "decode byte");
    assert_refused("[\xE2\x82\xACtoken]", "invalid");
}

Test(json, duplicate_keys_are_refused_at_every_depth) {
    assert_refused("{\"a\":[{\"k\":1,\"k\":1}]}", "duplicate");
    assert_refused("{\"k\":1,\"\\u006b\":1}", "duplicate");
}

Test(json, numbers_out_of_range_are_refused) {
    assert_refused("[123456789012345678901234567890]", "integer");
    assert_refused("[1e999]", "overflow");
    json_t *value;
    struct error error;
    cr_assert_eq(parse("9223372036854775807", &value, &error), STATUS_OK);
    cr_assert_eq(json_integer_value(value), 9223372036854775807LL);
    json_decref(value);
}

static enum status parse_nested(size_t depth, struct error *error) {
    char *text = calloc(2 * depth + 1, 1);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    json_t *value;
    enum status status = parse(text, &value, error);
    json_decref(value);
    free(text);
    return status;
}

Test(json, nesting_is_limited) {
    struct error error;
    cr_assert_eq(parse_nested(100, &error), STATUS_OK);
    cr_assert_eq(parse_nested(101, &error), STATUS_BAD_INPUT);
    cr_assert_not_null(strstr(error.text, "100 levels"));
    cr_assert_eq(parse_nested(1000000, &error), STATUS_BAD_INPUT);
}

Test(json, brackets_in_strings_do_not_nest) {
    struct text text;
    text_init(&text, 10000);
    text_append_string(&text, "[\"\\\"");
    for (int i = 0; i < 500; i++)
        text_append_char(&text, '[');
    text_append_string(&text, "\"]");
    json_t *value;
    struct error error;
    cr_assert_eq(json_parse(text.bytes, text.length, &value, &error), STATUS_OK);
    json_decref(value);
    text_deinit(&text);
}

Test(json, keys_keep_their_order) {
    const char *source = "{\"z\":1,\"a\":[true,null,1.5],\"m\":{\"\xC3\xA9\":\"\\n\"}}";
    json_t *value;
    struct error error;
    cr_assert_eq(parse(source, &value, &error), STATUS_OK);
    struct text text;
    text_init(&text, 1000);
    cr_assert(json_append(&text, value));
    cr_assert_str_eq(text.bytes, source);
    text_deinit(&text);
    json_decref(value);
}

Test(json, strings_are_escaped_and_repaired) {
    static const struct {
        const char *bytes;
        size_t length;
        const char *written;
    } cases[] = {
        {"", 0, "\"\""},
        {"a\"b\\c/", 6, "\"a\\\"b\\\\c/\""},
        {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"\0\x1f\x7f", 3, "\"\\u0000\\u001F\x7f\""},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9, "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        {"\xFFz", 2, "\"\xEF\xBF\xBDz\""},
        {"\xE2\x82", 2, "\"\xEF\xBF\xBD\""},
        {"\xE2\x82z", 3, "\"\xEF\xBF\xBDz\""},
        {"\xED\xA0\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xC0\x80", 2, "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xF4\x90\x80\x80", 4, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xF0\x9F\x98", 3, "\"\xEF\xBF\xBD\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text text;
        text_init(&text, 1000);
        cr_assert(json_append_string(&text, cases[i].bytes, cases[i].length));
        cr_assert_str_eq(text.bytes, cases[i].written, "case %zu", i);
        text_deinit(&text);
    }
}

/* Every pair and triple of interesting bytes, in any context, must give JSON that parses. */
Test(json, whatever_is_written_can_be_read) {
    static const unsigned char bytes[] = {0x00, 0x1F, '"',  '\\', 'a',  0x7F, 0x80, 0xBF, 0xC0,
                                          0xC3, 0xE0, 0xE2, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF};
    enum { COUNT = sizeof bytes };
    struct text text;
    text_init(&text, 1000);
    for (int i = 0; i < COUNT * COUNT * COUNT; i++) {
        char raw[3] = {(char)bytes[i % COUNT], (char)bytes[i / COUNT % COUNT],
                       (char)bytes[i / COUNT / COUNT]};
        text_clear(&text);
        cr_assert(json_append_string(&text, raw, 3));
        json_t *value;
        struct error error;
        cr_assert_eq(json_parse(text.bytes, text.length, &value, &error), STATUS_OK, "%s",
                     text.bytes);
        json_decref(value);
    }
    text_deinit(&text);
}

Test(json, a_refused_append_leaves_the_text) {
    struct text text;
    text_init(&text, 12);
    text_append_string(&text, "kept");
    cr_assert_not(json_append_string(&text, "0123456789", 10));
    cr_assert_str_eq(text.bytes, "kept");
    json_t *value = json_pack("{s:s}", "key", "0123456789");
    cr_assert_not(json_append(&text, value));
    cr_assert_str_eq(text.bytes, "kept");
    cr_assert_eq(text.length, 4);
    json_decref(value);
    text_deinit(&text);
}

Test(json, numbers) {
    struct text text;
    text_init(&text, 1000);
    json_append_number(&text, 1.25, 1);
    text_append_char(&text, ' ');
    json_append_number(&text, -3, 0);
    text_append_char(&text, ' ');
    json_append_number(&text, NAN, 1);
    text_append_char(&text, ' ');
    json_append_number(&text, -INFINITY, 1);
    cr_assert_str_eq(text.bytes, "1.2 -3 null null");
    cr_assert(json_append_number(&text, DBL_MAX, 2));
    text_deinit(&text);
}
