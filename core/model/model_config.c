/* Reads a file's metadata through the config table of a description. Metadata is hostile until
 * checked: each of the known dimensions has a range, small enough that the product of any two fits
 * int64. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/model/model_build.h"

static const struct number_range known_ranges[KNOWN_COUNT] = {
    [KNOWN_LAYERS] = {"layers", 1, MODEL_LAYERS_MAX, 1},
    [KNOWN_WIDTH] = {"width", 2, 1 << 17, 2},
    [KNOWN_HEADS] = {"heads", 1, 1024, 1},
    [KNOWN_KV_HEADS] = {"kv_heads", 1, 1024, 1},
    [KNOWN_HEAD_DIM] = {"head_dim", 2, 512, 2},
    [KNOWN_FFN_WIDTH] = {"ffn_width", 2, 1 << 20, 2},
    [KNOWN_VOCAB] = {"vocab", 2, 1 << 22, 1},
    [KNOWN_CONTEXT] = {"context", 1, 1 << 24, 1},
};
static const struct number_range other_range = {"value", -1e15, 1e15, 0};

enum status model_config_check(const struct number_range *range, double value,
                               struct error *error) {
    if (!(value >= range->min && value <= range->max))
        return error_set(error, STATUS_CORRUPT, "'%s' must be from %.10g to %.10g, found %.10g",
                         range->name, range->min, range->max, value);
    if (range->multiple == 1 && value != floor(value))
        return error_set(error, STATUS_CORRUPT, "'%s' must be a whole number, found %.10g",
                         range->name, value);
    if (range->multiple > 0 && fmod(value, range->multiple) != 0)
        return error_set(error, STATUS_CORRUPT, "'%s' must be a multiple of %d, found %.10g",
                         range->name, range->multiple, value);
    return STATUS_OK;
}

enum status model_config_number(const struct model_build *build,
                                const struct expression *expression,
                                const struct number_range *range, int line, double *value,
                                struct error *error) {
    *value = expression_evaluate(expression, build->values);
    if (model_config_check(range, *value, error) != STATUS_OK)
        return error_context(error, "description '%s': line %d: '%s'", build->description->family,
                             line, expression->text);
    return STATUS_OK;
}

enum status model_config_expand(const char *pattern, const char *placeholder, const char *text,
                                char buffer[MODEL_NAME_BYTES], struct error *error) {
    const char *found = strstr(pattern, placeholder);
    int prefix = found == NULL ? (int)strlen(pattern) : (int)(found - pattern);
    const char *suffix = found == NULL ? "" : found + strlen(placeholder);
    int length = snprintf(buffer, MODEL_NAME_BYTES, "%.*s%s%s", prefix, pattern,
                          found == NULL ? "" : text, suffix);
    if (length < 0 || length >= MODEL_NAME_BYTES)
        return error_set(error, STATUS_OVER_LIMIT, "name '%s' is longer than %d bytes", pattern,
                         MODEL_NAME_BYTES - 1);
    return STATUS_OK;
}

/* A number, or an array whose entries are all the same (some writers store one a layer). */
static enum status read_value(const struct gguf_value *value, double *number, struct error *error) {
    if (value->type != GGUF_ARRAY) {
        if (gguf_read_f64(value, number))
            return STATUS_OK;
        return error_set(error, STATUS_CORRUPT, "metadata '%s' must be a number", value->key);
    }
    if (value->count == 0 || !gguf_read_array_f64(value, 0, number))
        return error_set(error, STATUS_CORRUPT, "metadata '%s' must hold numbers", value->key);
    for (uint64_t i = 1; i < value->count; i++) {
        double other;
        if (!gguf_read_array_f64(value, i, &other) || other != *number)
            return error_set(error, STATUS_UNSUPPORTED,
                             "metadata '%s' differs between layers (%.10g, then %.10g in layer "
                             "%llu), which is not supported",
                             value->key, *number, other, (unsigned long long)i);
    }
    return STATUS_OK;
}

static enum status find_value(const struct model_build *build,
                              const struct description_config *config,
                              const struct gguf_value **value, struct error *error) {
    char key[MODEL_NAME_BYTES];
    *value = NULL;
    for (size_t i = 0; i < config->key_count && *value == NULL; i++) {
        TRY(model_config_expand(config->keys[i], "{arch}", build->architecture, key, error));
        *value = gguf_find(build->model->gguf, key);
    }
    return STATUS_OK;
}

static enum status missing_value(const struct model_build *build,
                                 const struct description_config *config, struct error *error) {
    char key[MODEL_NAME_BYTES];
    if (config->key_count == 0)
        return error_set(error, STATUS_CORRUPT, "tensor '%s' is missing (it tells '%s')",
                         config->rows_of, config->name);
    TRY(model_config_expand(config->keys[0], "{arch}", build->architecture, key, error));
    return error_set(error, STATUS_CORRUPT, "metadata '%s' is missing (it tells '%s')", key,
                     config->name);
}

static enum status evaluate(const struct model_build *build,
                            const struct description_config *config, double *number,
                            struct error *error) {
    const struct gguf_value *value;
    const struct tensor *tensor = NULL;
    TRY(find_value(build, config, &value, error));
    if (value != NULL)
        return read_value(value, number, error);
    if (config->rows_of != NULL)
        tensor = gguf_find_tensor(build->model->gguf, config->rows_of);
    if (tensor != NULL)
        *number = (double)tensor->row_count;
    else if (config->when >= 0 && build->values[config->when] == config->when_value)
        *number = expression_evaluate(&config->then, build->values);
    else if (config->has_fallback)
        *number = expression_evaluate(&config->fallback, build->values);
    else
        return missing_value(build, config, error);
    return STATUS_OK;
}

/* The range of a config entry: a known dimension's own, or that of any number. */
static struct number_range range_of(const struct description *description, int index) {
    for (int known = 0; known < KNOWN_COUNT; known++)
        if (description->known[known] == index)
            return known_ranges[known];
    struct number_range range = other_range;
    range.name = description->configs[index].name;
    return range;
}

static int known_value(const struct model_build *build, enum description_known known) {
    return (int)build->values[build->description->known[known]];
}

static void set_dimensions(const struct model_build *build) {
    struct model *model = build->model;
    model->layer_count = known_value(build, KNOWN_LAYERS);
    model->width = known_value(build, KNOWN_WIDTH);
    model->head_count = known_value(build, KNOWN_HEADS);
    model->kv_head_count = known_value(build, KNOWN_KV_HEADS);
    model->head_dim = known_value(build, KNOWN_HEAD_DIM);
    model->ffn_width = known_value(build, KNOWN_FFN_WIDTH);
    model->vocab_count = known_value(build, KNOWN_VOCAB);
    model->context_max = known_value(build, KNOWN_CONTEXT);
}

static enum status check_refusals(const struct model_build *build, struct error *error) {
    char key[MODEL_NAME_BYTES];
    for (size_t i = 0; i < build->description->refusal_count; i++) {
        const struct description_refusal *refusal = &build->description->refusals[i];
        double number = 1;
        TRY(model_config_expand(refusal->key, "{arch}", build->architecture, key, error));
        const struct gguf_value *value = gguf_find(build->model->gguf, key);
        if (value == NULL || (gguf_read_f64(value, &number) && number == 0))
            continue;
        return error_set(error, STATUS_UNSUPPORTED, "%s are not supported (metadata '%s')",
                         refusal->reason, key);
    }
    return STATUS_OK;
}

enum status model_config_read(struct model_build *build, struct error *error) {
    const struct description *description = build->description;
    TRY(check_refusals(build, error));
    build->values =
        arena_calloc(build->scratch, (size_t)description->config_count + 1, sizeof(double));
    if (build->values == NULL)
        return error_no_memory(error, "the model's configuration");
    for (int i = 0; i < description->config_count; i++) {
        struct number_range range = range_of(description, i);
        TRY(evaluate(build, &description->configs[i], &build->values[i], error));
        TRY(model_config_check(&range, build->values[i], error));
    }
    set_dimensions(build);
    if (build->model->head_count % build->model->kv_head_count != 0)
        return error_set(error, STATUS_CORRUPT,
                         "'heads' must be a multiple of 'kv_heads', found %d and %d",
                         build->model->head_count, build->model->kv_head_count);
    return STATUS_OK;
}
