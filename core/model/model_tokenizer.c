/* From tokenizer.ggml.* to a tokenizer. Only the shape of the metadata is checked here (element
 * types, equal lengths, numbers in range); what tokens and merges say is the tokenizer's to judge.
 */
#include "core/model/model_tokenizer.h"

#include <stdlib.h>
#include <string.h>

enum { MODEL_TOKENS_MAX = 1 << 24, MODEL_MERGES_MAX = 1 << 26 };

/* The arrays that a tokenizer_source borrows. */
struct source_arrays {
    struct view *tokens;
    float *scores;
    uint8_t *classes;
    struct view *merges;
};

static void free_arrays(struct source_arrays *arrays) {
    free(arrays->tokens);
    free(arrays->scores);
    free(arrays->classes);
    free(arrays->merges);
}

static enum status wrong_type(struct error *error, const char *key, const char *wanted) {
    return error_set(error, STATUS_CORRUPT, "'%s' is not %s", key, wanted);
}

/* All strings of the array `key`; absent: none. */
static enum status read_strings(const struct gguf *gguf, const char *key, uint64_t count_max,
                                struct view **strings, size_t *count, struct error *error) {
    *strings = NULL;
    *count = 0;
    const struct gguf_value *value = gguf_find(gguf, key);
    if (!value)
        return STATUS_OK;
    if (value->type != GGUF_ARRAY || value->element_type != GGUF_STRING)
        return wrong_type(error, key, "an array of strings");
    if (value->count > count_max)
        return error_set(error, STATUS_CORRUPT, "'%s' has %llu entries", key,
                         (unsigned long long)value->count);
    *strings = malloc(((size_t)value->count + 1) * sizeof **strings);
    if (!*strings)
        return error_no_memory(error, "the vocabulary");
    if (!gguf_read_array_strings(value, *strings))
        return wrong_type(error, key, "an array of strings");
    *count = (size_t)value->count;
    return STATUS_OK;
}

/* The array `key`, which if present has one entry a token. */
static enum status find_per_token(const struct gguf *gguf, const char *key, size_t count,
                                  const struct gguf_value **value, struct error *error) {
    *value = gguf_find(gguf, key);
    if (!*value)
        return STATUS_OK;
    if ((*value)->type != GGUF_ARRAY)
        return wrong_type(error, key, "an array");
    if ((*value)->count != count)
        return error_set(error, STATUS_CORRUPT, "'%s' has %llu entries for %zu tokens", key,
                         (unsigned long long)(*value)->count, count);
    return STATUS_OK;
}

static enum status read_scores(const struct gguf *gguf, size_t count, float **scores,
                               struct error *error) {
    static const char key[] = "tokenizer.ggml.scores";
    const struct gguf_value *value;
    TRY(find_per_token(gguf, key, count, &value, error));
    if (!value)
        return STATUS_OK;
    *scores = malloc(count * sizeof **scores);
    if (!*scores)
        return error_no_memory(error, "the vocabulary");
    for (size_t i = 0; i < count; i++) {
        double score;
        if (!gguf_read_array_f64(value, i, &score))
            return wrong_type(error, key, "an array of numbers");
        (*scores)[i] = (float)score;
    }
    return STATUS_OK;
}

static enum status read_classes(const struct gguf *gguf, size_t count, uint8_t **classes,
                                struct error *error) {
    static const char key[] = "tokenizer.ggml.token_type";
    const struct gguf_value *value;
    TRY(find_per_token(gguf, key, count, &value, error));
    if (!value)
        return STATUS_OK;
    *classes = malloc(count);
    if (!*classes)
        return error_no_memory(error, "the vocabulary");
    for (size_t i = 0; i < count; i++) {
        int64_t class;
        if (!gguf_read_array_i64(value, i, &class))
            return wrong_type(error, key, "an array of integers");
        (*classes)[i] = class >= 0 && class <= UINT8_MAX ? (uint8_t) class : 0;
    }
    return STATUS_OK;
}

/* A token's id; absent: -1. */
static enum status read_id(const struct gguf *gguf, const char *key, size_t count, int32_t *id,
                           struct error *error) {
    *id = -1;
    const struct gguf_value *value = gguf_find(gguf, key);
    if (!value)
        return STATUS_OK;
    int64_t number;
    if (!gguf_read_i64(value, &number))
        return wrong_type(error, key, "an integer");
    if (number == -1 || number == UINT32_MAX) /* written by converters for "none" */
        return STATUS_OK;
    if (number < 0 || (uint64_t)number >= count)
        return error_set(error, STATUS_CORRUPT, "'%s' is %lld, but there are %zu tokens", key,
                         (long long)number, count);
    *id = (int32_t)number;
    return STATUS_OK;
}

static enum status read_ids(const struct gguf *gguf, struct tokenizer_source *source,
                            struct error *error) {
    size_t count = (size_t)source->token_count;
    TRY(read_id(gguf, "tokenizer.ggml.bos_token_id", count, &source->bos_id, error));
    TRY(read_id(gguf, "tokenizer.ggml.eos_token_id", count, &source->eos_id, error));
    TRY(read_id(gguf, "tokenizer.ggml.eot_token_id", count, &source->eot_id, error));
    TRY(read_id(gguf, "tokenizer.ggml.eom_token_id", count, &source->eom_id, error));
    return read_id(gguf, "tokenizer.ggml.unknown_token_id", count, &source->unknown_id, error);
}

/* 1, 0, or -1 when absent. */
static enum status read_flag(const struct gguf *gguf, const char *key, int *flag,
                             struct error *error) {
    *flag = -1;
    const struct gguf_value *value = gguf_find(gguf, key);
    if (!value)
        return STATUS_OK;
    bool set;
    if (!gguf_read_bool(value, &set))
        return wrong_type(error, key, "true or false");
    *flag = set;
    return STATUS_OK;
}

static enum status read_name(const struct gguf *gguf, const char *key, struct view *name,
                             struct error *error) {
    *name = (struct view){"", 0};
    const struct gguf_value *value = gguf_find(gguf, key);
    if (value && !gguf_read_string(value, name))
        return wrong_type(error, key, "a string");
    return STATUS_OK;
}

static enum status read_model(const struct gguf *gguf, enum tokenizer_model *model,
                              struct error *error) {
    static const char key[] = "tokenizer.ggml.model";
    struct view name;
    TRY(read_name(gguf, key, &name, error));
    if (name.length == 0)
        return error_set(error, STATUS_NOT_FOUND, "the model file has no tokenizer ('%s')", key);
    return tokenizer_find_model(name, model, error);
}

static enum status read_source(const struct gguf *gguf, struct tokenizer_source *source,
                               struct source_arrays *arrays, struct error *error) {
    size_t count;
    TRY(read_model(gguf, &source->model, error));
    TRY(read_name(gguf, "tokenizer.ggml.pre", &source->splitter, error));
    TRY(read_strings(gguf, "tokenizer.ggml.tokens", MODEL_TOKENS_MAX, &arrays->tokens, &count,
                     error));
    if (count == 0)
        return error_set(error, STATUS_CORRUPT, "'tokenizer.ggml.tokens' is missing or empty");
    source->token_count = (int32_t)count;
    TRY(read_scores(gguf, count, &arrays->scores, error));
    TRY(read_classes(gguf, count, &arrays->classes, error));
    TRY(read_strings(gguf, "tokenizer.ggml.merges", MODEL_MERGES_MAX, &arrays->merges,
                     &source->merge_count, error));
    source->tokens = arrays->tokens;
    source->scores = arrays->scores;
    source->classes = arrays->classes;
    source->merges = arrays->merges;
    TRY(read_ids(gguf, source, error));
    TRY(read_flag(gguf, "tokenizer.ggml.add_bos_token", &source->add_bos, error));
    return read_flag(gguf, "tokenizer.ggml.add_space_prefix", &source->add_space_prefix, error);
}

enum status model_tokenizer_create(const struct gguf *gguf, struct tokenizer **tokenizer,
                                   struct error *error) {
    struct tokenizer_source source = {0};
    struct source_arrays arrays = {0};
    *tokenizer = NULL;
    enum status status = read_source(gguf, &source, &arrays, error);
    if (status == STATUS_OK)
        status = tokenizer_create(&source, tokenizer, error);
    free_arrays(&arrays);
    return status;
}

struct view model_tokenizer_template(const struct gguf *gguf) {
    struct view source = {"", 0};
    const struct gguf_value *value = gguf_find(gguf, "tokenizer.chat_template");
    if (value && !gguf_read_string(value, &source))
        source = (struct view){"", 0};
    return source;
}
