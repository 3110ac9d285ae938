/* JSONL lines and OpenAI batch requests: what a line may say, and what its error row says. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/job/codes.h"
#include "core/job/input.h"
#include "tests/support/folder.h"

TestSuite(input_record, .init = folder_enter, .fini = folder_leave);

/* What one line becomes; the caller frees it. */
static struct document read_line(const char *line, size_t length, bool replace) {
    const char *paths[] = {"l.jsonl"};
    struct input_options options = {.paths = paths, .path_count = 1, .replace_invalid = replace};
    struct input *input;
    struct document document;
    bool end;
    folder_write("l.jsonl", line, length);
    document_init(&document);
    cr_assert_eq(input_open(&options, &input, NULL), STATUS_OK);
    cr_assert_eq(input_next(input, &document, &end, NULL), STATUS_OK);
    cr_assert_not(end, "no document for %s", line);
    input_close(input);
    return document;
}

static char *dump(const json_t *value) {
    return value ? json_dumps(value, JSON_COMPACT) : strdup("-");
}

/* "id | text | messages | prompt | options | input" of a good line. */
static void assert_reads(const char *line, const char *expected) {
    struct document document = read_line(line, strlen(line), true);
    cr_assert_null(document.error_code, "%s: %s", line, document.error_message);
    char *messages = dump(document.messages);
    char *options = dump(document.options);
    char *input = dump(document.input);
    struct text found;
    text_init(&found, 1 << 20);
    cr_assert(text_append_format(&found, "%s | %s | %s | %s | %s | %s", document.id_json,
                                 document.text.length ? document.text.bytes : "-", messages,
                                 document.prompt ? document.prompt : "-", options, input));
    cr_assert_str_eq(found.bytes, expected);
    cr_assert_str_eq(document.path, "l.jsonl");
    cr_assert_eq(document.line, 1);
    text_deinit(&found);
    free(messages);
    free(options);
    free(input);
    document_deinit(&document);
}

/* `id` NULL: the default one. */
static void assert_refused(const char *line, const char *code, const char *id,
                           const char *message) {
    struct document document = read_line(line, strlen(line), true);
    cr_expect(document.error_code && strcmp(document.error_code, code) == 0, "%s: %s, not %s", line,
              document.error_code ? document.error_code : "fine", code);
    cr_expect(codes_error_find(code) != NULL, "%s is no published code", code);
    if (document.error_code) {
        char expected[512];
        snprintf(expected, sizeof expected, "'l.jsonl': line 1: %s", message);
        cr_expect_str_eq(document.error_message, expected);
    }
    cr_expect_str_eq(document.id_json, id ? id : "\"l.jsonl:1\"");
    cr_expect_eq(document.text.length, 0);
    document_deinit(&document);
}

Test(input_record, the_fields_of_a_line) {
    assert_reads("{\"text\":\"hello\"}", "\"l.jsonl:1\" | hello | - | - | - | -");
    assert_reads("{\"id\":\"a\\u00e9\",\"text\":\"t\",\"prompt\":\"Q?\"}",
                 "\"a\xC3\xA9\" | t | - | Q? | - | -");
    assert_reads("{\"id\":17,\"text\":\"t\"}", "17 | t | - | - | - | -");
    assert_reads("{\"id\":1.5,\"text\":\"t\"}", "1.5 | t | - | - | - | -");
    assert_reads("{\"id\":null,\"text\":\"t\"}", "\"l.jsonl:1\" | t | - | - | - | -");
    assert_reads("{\"text\":\"t\",\"options\":{\"max-tokens\":5,\"stop\":[\"x\"]}}",
                 "\"l.jsonl:1\" | t | - | - | {\"max-tokens\":5,\"stop\":[\"x\"]} | -");
    assert_reads("{\"lang\":\"de\",\"text\":\"t\",\"n\":{\"k\":[1,null]}}",
                 "\"l.jsonl:1\" | t | - | - | - | {\"lang\":\"de\",\"n\":{\"k\":[1,null]}}");
    assert_reads("\xEF\xBB\xBF{\"text\":\"marked\"}\r\n", "\"l.jsonl:1\" | marked | - | - | - | -");
}

Test(input_record, messages_and_prompts) {
    assert_reads("{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\","
                 "\"content\":\"u\",\"name\":\"x\"}]}",
                 "\"l.jsonl:1\" | - | [{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\","
                 "\"content\":\"u\"}] | - | - | -");
    assert_reads(
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
        "{\"type\":\"text\",\"text\":\"b\"}]}]}",
        "\"l.jsonl:1\" | - | [{\"role\":\"user\",\"content\":\"ab\"}] | - | - | -");
    assert_reads("{\"prompt\":\"Say hello.\"}",
                 "\"l.jsonl:1\" | Say hello. | - | {document} | - | -");
}

Test(input_record, openai_batch_requests) {
    assert_reads("{\"custom_id\":\"r-1\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\","
                 "\"body\":{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
                 "\"max_tokens\":7,\"temperature\":0.5,\"top_p\":0.75,\"stop\":[\"a\",\"b\"],"
                 "\"seed\":3,\"n\":1,\"stream\":false,\"user\":null,\"frequency_penalty\":0.0}}",
                 "\"r-1\" | - | [{\"role\":\"user\",\"content\":\"hi\"}] | - | {\"max-tokens\":7,"
                 "\"temperature\":0.5,\"top-p\":0.75,\"stop\":[\"a\",\"b\"],\"seed\":3} | -");
    assert_reads("{\"custom_id\":\"r\",\"url\":\"/v1/completions\",\"tag\":5,\"body\":{\"prompt\":"
                 "\"Once\",\"max_completion_tokens\":2,\"repetition_penalty\":1.5,\"min_p\":0.25,"
                 "\"top_k\":4,\"ignore_eos\":true}}",
                 "\"r\" | Once | - | {document} | {\"max-tokens\":2,"
                 "\"repeat-penalty\":1.5,\"min-p\":0.25,\"top-k\":4,"
                 "\"ignore-eos\":true} | {\"tag\":5}");
}

Test(input_record, bad_json_is_named_by_line_and_column) {
    assert_refused("{\"text\": \"x\"", "bad_json", NULL, "invalid JSON at column 12: '}' expected");
    assert_refused("not json", "bad_json", NULL, "invalid JSON at column 3: invalid token");
    assert_refused("{\"text\":\"x\"} extra", "bad_json", NULL,
                   "invalid JSON at column 18: end of file expected");
    assert_refused("{\"id\":1,\"id\":2,\"text\":\"x\"}", "bad_json", NULL,
                   "invalid JSON at column 12: duplicate object key");
    assert_refused("{\"text\":\"\\ud800 alone\"}", "bad_json", NULL,
                   "invalid JSON at column 22: invalid Unicode '\\uD800'");
}

Test(input_record, fields_of_the_wrong_kind_are_bad_lines_with_their_own_id) {
    static const struct {
        const char *line, *code, *id, *message;
    } cases[] = {
        {"[1]", "bad_line", NULL, "\"line\" must be an object, got an array"},
        {"{\"id\":\"i\",\"text\":5}", "bad_line", "\"i\"",
         "\"text\" must be a string, got a number"},
        {"{\"text\":null,\"id\":3}", "bad_line", "3", "\"text\" must be a string, got null"},
        {"{\"id\":true,\"text\":\"x\"}", "bad_line", NULL,
         "\"id\" must be a string or a number, got a boolean"},
        {"{\"id\":\"i\"}", "bad_line", "\"i\"",
         "it has neither \"text\" nor \"messages\" nor \"prompt\""},
        {"{\"text\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}", "bad_line", NULL,
         "it has both \"text\" and \"messages\""},
        {"{\"prompt\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}", "bad_line",
         NULL, "it has both \"messages\" and \"prompt\""},
        {"{\"text\":\"a\",\"prompt\":[1]}", "bad_line", NULL,
         "\"prompt\" must be a string without NUL, got an array"},
        {"{\"text\":\"a\",\"prompt\":\"x\\u0000y\"}", "bad_line", NULL,
         "\"prompt\" must be a string without NUL, got a string"},
        {"{\"text\":\"a\",\"options\":\"fast\"}", "bad_line", NULL,
         "\"options\" must be an object, got a string"},
        {"{\"text\":\" \\n\",\"id\":4}", "empty", "4", "\"text\" is empty"},
        {"{\"messages\":[]}", "bad_line", NULL,
         "\"messages\" must be an array that is not empty, got an array"},
        {"{\"messages\":{}}", "bad_line", NULL,
         "\"messages\" must be an array that is not empty, got an object"},
        {"{\"messages\":[\"hi\"]}", "bad_line", NULL,
         "message 1: \"messages\" must be an array of objects, got a string"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"content\":\"x\"}]}", "bad_line",
         NULL, "message 2: \"role\" must be a string that is not empty, got nothing"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":3}]}", "bad_line", NULL,
         "message 1: \"content\" must be a string, got a number"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}", "bad_line",
         NULL, "message 1: \"content\" has a part that is not text"},
        {"{\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[1]}]}",
         "bad_line", NULL, "message 1: \"tool_calls\" are not supported"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\" \"}]}", "empty", NULL,
         "no message has text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(cases[i].line, cases[i].code, cases[i].id, cases[i].message);
}

Test(input_record, openai_requests_that_ask_for_more_are_refused_by_name) {
    static const struct {
        const char *rest, *code, *message;
    } cases[] = {
        {"\"url\":\"/v1/embeddings\",\"body\":{\"input\":\"x\"}", "bad_line",
         "\"url\" '/v1/embeddings' is not supported, only /v1/chat/completions and "
         "/v1/completions are"},
        {"\"url\":5,\"body\":{}", "bad_line", "\"url\" must be a string, got a number"},
        {"\"url\":\"/v1/completions\"", "bad_line", "\"body\" must be an object, got nothing"},
        {"\"body\":{\"max_tokens\":1}", "bad_line",
         "\"body\" must have either \"messages\" or \"prompt\""},
        {"\"body\":{\"prompt\":[1,2]}", "bad_line", "\"prompt\" must be a string, got an array"},
        {"\"body\":{\"prompt\":\"\"}", "empty", "\"prompt\" is empty"},
        {"\"body\":{\"prompt\":\"x\",\"n\":2}", "unknown_option",
         "\"n\" in \"body\" is not supported"},
        {"\"body\":{\"prompt\":\"x\",\"tools\":[]}", "unknown_option",
         "\"tools\" in \"body\" is not supported"},
        {"\"body\":{\"prompt\":\"x\",\"stream\":true}", "unknown_option",
         "\"stream\" in \"body\" is not supported"},
        {"\"body\":{\"prompt\":\"x\",\"presence_penalty\":0.5}", "unknown_option",
         "\"presence_penalty\" in \"body\" is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[512];
        snprintf(line, sizeof line, "{\"custom_id\":\"c\",%s}", cases[i].rest);
        assert_refused(line, cases[i].code, "\"c\"", cases[i].message);
    }
}

Test(input_record, lines_are_counted_and_errors_do_not_stop_the_file) {
    folder_write_text("m.jsonl", "{\"text\":\"one\"}\n\n   \r\n{bad\n{\"id\":9,\"text\":\"five\"}\n"
                                 "{\"text\":\"last\"}");
    const char *paths[] = {"m.jsonl"};
    struct input_options options = {.paths = paths, .path_count = 1};
    struct input *input;
    struct document document;
    bool end = false;
    static const struct {
        const char *id;
        long long line;
        const char *code;
    } expected[] = {{"\"m.jsonl:1\"", 1, NULL},
                    {"\"m.jsonl:4\"", 4, "bad_json"},
                    {"9", 5, NULL},
                    {"\"m.jsonl:6\"", 6, NULL}};
    document_init(&document);
    cr_assert_eq(input_open(&options, &input, NULL), STATUS_OK);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(input_next(input, &document, &end, NULL), STATUS_OK);
        cr_assert(!end && document.index == i && document.line == expected[i].line);
        cr_assert_str_eq(document.id_json, expected[i].id);
        cr_assert(!document.error_code == !expected[i].code);
        cr_assert_str_eq(document.name, "m.jsonl");
    }
    cr_assert_eq(input_next(input, &document, &end, NULL), STATUS_OK);
    cr_assert(end);
    document_deinit(&document);
    input_close(input);
}

Test(input_record, bytes_of_lines_follow_the_policy_too) {
    char line[600] = "{\"text\":\"";
    size_t head = strlen(line);
    memset(line + head, 'a', 500);
    line[head + 250] = '\xE9';
    memcpy(line + head + 500, "\"}", 2);
    struct document document = read_line(line, head + 502, true);
    cr_assert_null(document.error_code, "%s", document.error_message);
    cr_assert_eq(document.replaced_bytes, 1);
    cr_assert_eq(document.text.length, 502);
    document_deinit(&document);
    document = read_line(line, head + 502, false);
    cr_assert_str_eq(document.error_code, "invalid_utf8");
    document_deinit(&document);
}

Test(input_record, a_binary_file_by_that_name_is_one_error) {
    struct document document = read_line("\0\1\2\n\3\n\n\n", 8, true);
    cr_assert_str_eq(document.error_code, "not_text");
    cr_assert_str_eq(document.id_json, "\"l.jsonl\"");
    document_deinit(&document);
    document = read_line("\xFF\xFE{\0}\0\n\0", 8, true);
    cr_assert(strstr(document.error_message, "it is UTF-16: convert it with iconv"));
    document_deinit(&document);
}

/* A value may be longer than the read buffer, and holds a NUL when JSON says so. */
Test(input_record, long_lines_and_escaped_nul) {
    enum { LENGTH = 3000000 };
    char *line = malloc(LENGTH + 64);
    static const char start[] = "{\"id\":1,\"text\":\"\\u0000";
    size_t head = sizeof start - 1;
    memcpy(line, start, head);
    memset(line + head, 'y', LENGTH);
    memcpy(line + head + LENGTH, "\"}", 2);
    struct document document = read_line(line, head + LENGTH + 2, true);
    cr_assert_null(document.error_code, "%s", document.error_message);
    cr_assert(document.text.length == LENGTH + 1 && document.text.bytes[0] == '\0' &&
              document.text.bytes[LENGTH] == 'y');
    document_deinit(&document);
    free(line);
}
