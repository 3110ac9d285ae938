/* Ids of real vocabularies against other tokenizers. SHEAF_MODEL_DIR holds the models that
 * scripts/fetch_model fetches, by their names: compared with goldens of Hugging Face's tokenizers
 * (scripts/make_tokenizer_golden.py). SHEAF_VOCAB_DIR holds vocabulary files NAME.gguf with texts
 * in NAME.inp and ids in NAME.out, as llama.cpp's tests have them. What is not there is skipped. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/model/model_tokenizer.h"
#include "tests/tokenizer/pieces.h"
#include "tokenizer/unicode_classes.h"

enum { PATH_BYTES = 1024 };

/* The tokenizer of `folder`/`name`.gguf; skips the test when it is not there. */
static struct tokenizer *open_tokenizer(const char *variable, const char *name) {
    char path[PATH_BYTES];
    const char *folder = getenv(variable);
    if (!folder) {
        fprintf(stderr, "SKIPPED: %s is not set: no ids of '%s' are compared\n", variable, name);
        cr_skip_test("%s is not set", variable);
    }
    snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
    if (access(path, R_OK) != 0) {
        fprintf(stderr, "SKIPPED: there is no '%s'\n", path);
        cr_skip_test("no '%s'", path);
    }
    struct gguf *gguf;
    struct tokenizer *tokenizer;
    struct error error = {0};
    cr_assert_eq(gguf_open(path, &gguf, &error), STATUS_OK, "%s", error.text);
    cr_assert_eq(model_tokenizer_create(gguf, &tokenizer, &error), STATUS_OK, "%s", error.text);
    gguf_close(gguf);
    return tokenizer;
}

static void encode(const struct tokenizer *tokenizer, struct view document,
                   struct token_list *list) {
    struct marked_text text;
    marked_text_init(&text, 1 << 24);
    cr_assert(marked_text_append(&text, document.bytes, document.length, ORIGIN_DOCUMENT));
    pieces_encode(tokenizer, &text, (struct tokenizer_options){0}, list);
    marked_text_deinit(&text);
}

static bool is_valid(struct view chunk) {
    const uint8_t *at = (const uint8_t *)chunk.bytes, *end = at + chunk.length;
    int complete = 1;
    while (complete && at < end)
        at += unicode_classes_well_formed(at, end, &complete);
    return complete;
}

/* Streaming the ids gives whole characters in every chunk. Returns the text. */
static void decode(const struct tokenizer *tokenizer, const struct token_list *list,
                   struct text *out) {
    struct decode_stream stream;
    decode_stream_init(&stream);
    text_init(out, 1 << 24);
    for (size_t i = 0; i < list->count; i++) {
        size_t before = out->length;
        cr_assert(decode_stream_push(tokenizer, &stream, list->ids[i], out));
        cr_expect(out->length == before ||
                  is_valid((struct view){out->bytes + before, out->length - before}));
    }
    cr_assert(decode_stream_finish(&stream, out));
}

/* Whether decoding must give the text back: no byte is dropped, nothing was normalised. */
static bool is_spelled(const struct tokenizer *tokenizer, const struct token_list *list,
                       struct view text) {
    size_t at = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct view token = tokenizer_token_bytes(tokenizer, list->ids[i]);
        if (at + token.length > text.length ||
            memcmp(token.bytes, text.bytes + at, token.length) != 0)
            return false;
        at += token.length;
    }
    return at == text.length;
}

static bool check_golden(const struct tokenizer *tokenizer, struct view text, const json_t *ids) {
    struct token_list list = {0};
    struct text decoded;
    encode(tokenizer, text, &list);
    bool equal = list.count == json_array_size(ids);
    for (size_t i = 0; equal && i < list.count; i++)
        equal = list.ids[i] == json_integer_value(json_array_get(ids, i));
    cr_expect(equal, "other ids for '%.*s'", (int)text.length, text.bytes);
    decode(tokenizer, &list, &decoded);
    bool spelled = is_spelled(tokenizer, &list, text);
    if (spelled)
        cr_expect(view_equal(text_view(&decoded), text), "'%.*s'", (int)text.length, text.bytes);
    text_deinit(&decoded);
    token_list_deinit(&list);
    return spelled;
}

static void check_goldens(const char *name) {
    struct tokenizer *tokenizer = open_tokenizer("SHEAF_MODEL_DIR", name);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/tests/golden/tokenizer/%s.json", SHEAF_SOURCE_DIR, name);
    json_error_t error;
    json_t *goldens = json_load_file(path, JSON_ALLOW_NUL, &error);
    cr_assert_not_null(goldens, "'%s': %s", path, error.text);
    size_t count = json_array_size(goldens), spelled = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *golden = json_array_get(goldens, i);
        const json_t *text = json_array_get(golden, 0);
        spelled += check_golden(tokenizer,
                                (struct view){json_string_value(text), json_string_length(text)},
                                json_array_get(golden, 1));
    }
    cr_expect_gt(count, 80);
    cr_expect_gt(spelled, count / 2);
    json_decref(goldens);
    tokenizer_destroy(tokenizer);
}

Test(tokenizer_golden, smollm2) {
    check_goldens("smollm2-135m-instruct");
}

Test(tokenizer_golden, qwen2) {
    check_goldens("qwen2.5-coder-0.5b");
}

Test(tokenizer_golden, gemma3) {
    check_goldens("gemma-3-270m");
}

static char *read_file(const char *name, const char *suffix) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s%s", getenv("SHEAF_VOCAB_DIR"), name, suffix);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "'%s'", path);
    char *bytes = calloc(1, 1 << 20);
    cr_assert_gt(fread(bytes, 1, (1 << 20) - 1, file), 0);
    fclose(file);
    return bytes;
}

/* The ids of one line of an .out file. */
static void check_line(const struct tokenizer *tokenizer, struct view text, const char *line,
                       const char *line_end) {
    struct token_list list = {0};
    encode(tokenizer, text, &list);
    size_t count = 0;
    bool equal = true;
    for (char *after; line < line_end; line = after) {
        long id = strtol(line, &after, 10);
        if (after == line || after > line_end)
            break;
        equal = equal && count < list.count && list.ids[count] == id;
        count++;
    }
    cr_expect(equal && count == list.count, "other ids for '%.*s'", (int)text.length, text.bytes);
    token_list_deinit(&list);
}

static void check_vocabulary(const char *name) {
    static const char border[] = "\n__ggml_vocab_test__\n";
    struct tokenizer *tokenizer = open_tokenizer("SHEAF_VOCAB_DIR", name);
    char *texts = read_file(name, ".inp");
    char *lines = read_file(name, ".out");
    char *line = lines;
    size_t count = 0;
    for (char *text = texts, *next; text; text = next, count++) {
        char *text_end = strstr(text, border);
        next = text_end ? text_end + strlen(border) : NULL;
        size_t length = text_end ? (size_t)(text_end - text) : strlen(text);
        char *line_end = strchrnul(line, '\n');
        check_line(tokenizer, (struct view){text, length}, line, line_end);
        line = *line_end ? line_end + 1 : line_end;
    }
    cr_expect_gt(count, 40);
    free(texts);
    free(lines);
    tokenizer_destroy(tokenizer);
}

Test(tokenizer_golden, gpt_2_vocabulary) {
    check_vocabulary("gpt-2");
}

Test(tokenizer_golden, starcoder_vocabulary) {
    check_vocabulary("starcoder");
}

Test(tokenizer_golden, refact_vocabulary) {
    check_vocabulary("refact");
}

Test(tokenizer_golden, falcon_vocabulary) {
    check_vocabulary("falcon");
}

Test(tokenizer_golden, phi_3_vocabulary) {
    check_vocabulary("phi-3");
}
