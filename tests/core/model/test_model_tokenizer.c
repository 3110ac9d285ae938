/* tokenizer.ggml.* of handmade files: what is read, and what is refused under the key's name. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/model/model_tokenizer.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/gguf_builder.h"

enum { COUNT = 4 };
static const char *const tokens[COUNT] = {"a", "b", "ab", "<end>"};
static const char *const merges[] = {"a b"};

/* What a test changes about an otherwise good file. */
struct change {
    const char *key; /* left out when value is NULL */
    void (*write)(struct gguf_builder *builder, const char *key);
};

static bool keeps(const struct change *change, const char *key) {
    return !change || strcmp(change->key, key) != 0;
}

static struct gguf *open_file(const struct change *change) {
    struct gguf_builder builder;
    gguf_builder_init(&builder);
    if (keeps(change, "tokenizer.ggml.model"))
        gguf_builder_string(&builder, "tokenizer.ggml.model", "gpt2");
    if (keeps(change, "tokenizer.ggml.pre"))
        gguf_builder_string(&builder, "tokenizer.ggml.pre", "gpt-2");
    if (keeps(change, "tokenizer.ggml.tokens"))
        gguf_builder_strings(&builder, "tokenizer.ggml.tokens", tokens, COUNT);
    if (keeps(change, "tokenizer.ggml.merges"))
        gguf_builder_strings(&builder, "tokenizer.ggml.merges", merges, 1);
    static const int32_t classes[COUNT] = {1, 1, 1, 3};
    if (keeps(change, "tokenizer.ggml.token_type"))
        gguf_builder_array(&builder, "tokenizer.ggml.token_type", GGUF_I32, COUNT, classes,
                           sizeof classes);
    if (keeps(change, "tokenizer.ggml.eos_token_id"))
        gguf_builder_u32(&builder, "tokenizer.ggml.eos_token_id", 3);
    if (keeps(change, "tokenizer.chat_template"))
        gguf_builder_string(&builder, "tokenizer.chat_template", "{{ x }}");
    if (change && change->write)
        change->write(&builder, change->key);
    char path[] = "/tmp/sheaf-tokenizer-XXXXXX";
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
    gguf_builder_write(&builder, path);
    gguf_builder_deinit(&builder);
    struct gguf *gguf;
    struct error error = {0};
    cr_assert_eq(gguf_open(path, &gguf, &error), STATUS_OK, "%s", error.text);
    unlink(path);
    return gguf;
}

Test(model_tokenizer, a_good_file) {
    struct gguf *gguf = open_file(NULL);
    struct tokenizer *tokenizer;
    struct error error = {0};
    cr_assert_eq(model_tokenizer_create(gguf, &tokenizer, &error), STATUS_OK, "%s", error.text);
    cr_expect(view_is(model_tokenizer_template(gguf), "{{ x }}"));
    gguf_close(gguf); /* the tokenizer keeps its own */
    cr_expect_eq(tokenizer_token_count(tokenizer), COUNT);
    cr_expect_eq(tokenizer_eos(tokenizer), 3);
    cr_expect_eq(tokenizer_bos(tokenizer), -1);
    cr_expect(tokenizer_is_special(tokenizer, 3));
    cr_expect_eq(tokenizer_find(tokenizer, view_of("ab")), 2);
    tokenizer_destroy(tokenizer);
}

static void write_number(struct gguf_builder *builder, const char *key) {
    gguf_builder_u32(builder, key, 4);
}

static void write_text(struct gguf_builder *builder, const char *key) {
    gguf_builder_string(builder, key, "bert");
}

static void write_short_array(struct gguf_builder *builder, const char *key) {
    static const int32_t numbers[3] = {1, 1, 1};
    gguf_builder_array(builder, key, GGUF_I32, 3, numbers, sizeof numbers);
}

static void write_none(struct gguf_builder *builder, const char *key) {
    gguf_builder_u32(builder, key, UINT32_MAX);
}

Test(model_tokenizer, bad_files) {
    static const struct {
        struct change change;
        enum status status;
        const char *message;
    } cases[] = {
        {{"tokenizer.ggml.model", NULL}, STATUS_NOT_FOUND, "no tokenizer"},
        {{"tokenizer.ggml.model", write_text}, STATUS_UNSUPPORTED, "'bert' is not supported"},
        {{"tokenizer.ggml.model", write_number}, STATUS_CORRUPT, "'tokenizer.ggml.model' is not"},
        {{"tokenizer.ggml.pre", NULL}, STATUS_UNSUPPORTED, "names no splitter"},
        {{"tokenizer.ggml.pre", write_text}, STATUS_UNSUPPORTED, "splitter 'bert'"},
        {{"tokenizer.ggml.tokens", NULL}, STATUS_CORRUPT, "missing or empty"},
        {{"tokenizer.ggml.tokens", write_text}, STATUS_CORRUPT, "array of strings"},
        {{"tokenizer.ggml.tokens", write_short_array}, STATUS_CORRUPT, "array of strings"},
        {{"tokenizer.ggml.merges", NULL}, STATUS_CORRUPT, "no merges"},
        {{"tokenizer.ggml.merges", write_number}, STATUS_CORRUPT, "array of strings"},
        {{"tokenizer.ggml.token_type", write_short_array}, STATUS_CORRUPT, "3 entries for 4"},
        {{"tokenizer.ggml.scores", write_short_array}, STATUS_CORRUPT, "3 entries for 4"},
        {{"tokenizer.ggml.eos_token_id", write_number}, STATUS_CORRUPT, "is 4, but there are 4"},
        {{"tokenizer.ggml.eos_token_id", write_text}, STATUS_CORRUPT, "is not an integer"},
        {{"tokenizer.ggml.add_bos_token", write_text}, STATUS_CORRUPT, "is not true or false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf *gguf = open_file(&cases[i].change);
        struct tokenizer *tokenizer;
        struct error error = {0};
        cr_expect_eq(model_tokenizer_create(gguf, &tokenizer, &error), cases[i].status, "%zu: %s",
                     i, error.text);
        cr_expect(strstr(error.text, cases[i].message), "%zu: %s", i, error.text);
        cr_expect_null(tokenizer);
        gguf_close(gguf);
    }
}

Test(model_tokenizer, no_template_and_no_end) {
    static const struct change no_template = {"tokenizer.chat_template", NULL};
    static const struct change wrong_template = {"tokenizer.chat_template", write_number};
    static const struct change no_end = {"tokenizer.ggml.eos_token_id", write_none};
    struct gguf *gguf = open_file(&no_template);
    cr_expect_eq(model_tokenizer_template(gguf).length, 0);
    gguf_close(gguf);
    gguf = open_file(&wrong_template);
    cr_expect_eq(model_tokenizer_template(gguf).length, 0);
    gguf_close(gguf);
    gguf = open_file(&no_end);
    struct tokenizer *tokenizer;
    cr_assert_eq(model_tokenizer_create(gguf, &tokenizer, NULL), STATUS_OK);
    cr_expect_eq(tokenizer_eos(tokenizer), -1);
    tokenizer_destroy(tokenizer);
    gguf_close(gguf);
}

Test(model_tokenizer, no_memory) {
    struct gguf *gguf = open_file(NULL);
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct tokenizer *tokenizer;
        struct error error;
        failing_malloc_arm(n);
        enum status status = model_tokenizer_create(gguf, &tokenizer, &error);
        failed = failing_malloc_disarm();
        cr_assert_eq(status, failed ? STATUS_NO_MEMORY : STATUS_OK);
        tokenizer_destroy(tokenizer);
    }
    gguf_close(gguf);
}
