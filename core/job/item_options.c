/* JSON values go through the option table as text, so that ranges, choices and messages are the
 * command line's. */
#include "core/job/item_options.h"

#include <stdio.h>
#include <string.h>

/* A JSON number or switch as the text the option table parses. */
static bool scalar_text(const json_t *value, char *buffer, size_t buffer_bytes) {
    int length = -1;
    if (json_is_integer(value))
        length = snprintf(buffer, buffer_bytes, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        length = snprintf(buffer, buffer_bytes, "%.17g", json_real_value(value));
    else if (json_is_boolean(value))
        length = snprintf(buffer, buffer_bytes, "%s", json_is_true(value) ? "on" : "off");
    return length > 0 && (size_t)length < buffer_bytes;
}

static enum status assign_value(struct item *item, const struct option *option, const json_t *value,
                                struct error *error) {
    char number[64];
    bool wants_text = option->kind == OPTION_TEXT || option->kind == OPTION_TEXT_LIST;
    if (json_is_string(value) && (wants_text || option->kind == OPTION_CHOICE)) {
        if (strlen(json_string_value(value)) != json_string_length(value))
            return error_set(error, STATUS_BAD_INPUT, "option '%s' holds a NUL character",
                             option->name);
        return settings_assign(&item->settings, option, json_string_value(value), &item->arena,
                               error);
    }
    if (!wants_text && scalar_text(value, number, sizeof number))
        return settings_assign(&item->settings, option, number, &item->arena, error);
    return error_set(error, STATUS_BAD_INPUT, "option '%s' has a value of the wrong kind",
                     option->name);
}

static enum status assign_option(struct item *item, const struct option *option,
                                 const json_t *value, struct error *error) {
    if (option->kind != OPTION_TEXT_LIST || !json_is_array(value))
        return assign_value(item, option, value, error);
    for (size_t i = 0; i < json_array_size(value); i++)
        TRY(assign_value(item, option, json_array_get(value, i), error));
    return STATUS_OK;
}

static enum status hash_options(struct item *item, const json_t *options, struct error *error) {
    struct text dumped;
    text_init(&dumped, 1 << 26);
    bool fine = json_append(&dumped, options);
    if (fine)
        item->document_hash = document_hash_bytes(dumped.bytes, dumped.length);
    text_deinit(&dumped);
    return fine ? STATUS_OK : error_no_memory(error, "the document's options");
}

enum status item_options_apply(struct item *item, const json_t *options, const char **code,
                               struct error *error) {
    item->document_hash = 0;
    if (!options)
        return STATUS_OK;
    if (json_object_get(options, "stop"))
        item->settings.stop.count = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)options, key, value) {
        const struct option *option = settings_option_find(key, strlen(key), NULL);
        if (!option || !option->per_document) {
            *code = "unknown_option";
            return error_set(error, STATUS_BAD_INPUT,
                             option ? "option '%s' is for the whole run, not for one document"
                                    : "unknown option '%s'",
                             key);
        }
        *code = "bad_option";
        TRY(assign_option(item, option, value, error));
        if (strcmp(key, "prompt") == 0)
            item->own_prompt = item->settings.prompt;
    }
    return hash_options(item, options, error);
}
