/* sheaf's own line: {"id", "text" or "messages", "prompt", "options": {…}, anything else}. A table
 * names the fields; unknown ones are the user's and travel into the row's "input". */
#include "core/job/input_record.h"

#include <stdlib.h>
#include <string.h>

#include "core/job/input_messages.h"
#include "core/job/input_openai.h"
#include "core/job/input_text.h"

enum { ID_BYTES_MAX = 64 * 1024, JSON_ESCAPE_BYTES = 6, JSON_MEMORY_FACTOR = 4 };

static enum status refuse_kind(const char **code, struct error *error, const char *field,
                               const char *expected, const json_t *found) {
    *code = "bad_line";
    return error_set(error, STATUS_BAD_INPUT, "\"%s\" must be %s, got %s", field, expected,
                     input_messages_kind(found));
}

enum status input_record_set_id(struct document *document, const json_t *id, const char *field,
                                const char **code, struct error *error) {
    if (!id || json_is_null(id))
        return STATUS_OK;
    if (!json_is_string(id) && !json_is_number(id))
        return refuse_kind(code, error, field, "a string or a number", id);
    if (json_string_length(id) > ID_BYTES_MAX) {
        *code = "bad_line";
        return error_set(error, STATUS_OVER_LIMIT, "\"%s\" is longer than %d bytes", field,
                         ID_BYTES_MAX);
    }
    struct text text;
    text_init(&text, JSON_ESCAPE_BYTES * (ID_BYTES_MAX + 1));
    if (!json_append(&text, id)) {
        text_deinit(&text);
        return error_no_memory(error, "an id");
    }
    free(document->id_json);
    document->id_json = text.bytes;
    return STATUS_OK;
}

enum status input_record_carry(struct document *document, const char *key, json_t *value,
                               struct error *error) {
    if (!document->input)
        document->input = json_object();
    if (!document->input || json_object_set(document->input, key, value) != 0)
        return error_no_memory(error, "a line's fields");
    return STATUS_OK;
}

/* `value` as the document's text. */
static enum status set_named_text(struct document *document, const char *field, const json_t *value,
                                  const char **code, struct error *error) {
    if (!json_is_string(value))
        return refuse_kind(code, error, field, "a string", value);
    const char *bytes = json_string_value(value);
    size_t length = json_string_length(value);
    *code = "empty";
    if (input_text_is_blank(bytes, length))
        return error_set(error, STATUS_BAD_INPUT, "\"%s\" is empty", field);
    return text_append(&document->text, bytes, length) ? STATUS_OK
                                                       : error_no_memory(error, "a document");
}

static enum status set_text(struct document *document, json_t *value, const char **code,
                            struct error *error) {
    return set_named_text(document, "text", value, code, error);
}

enum status input_record_set_whole(struct document *document, const json_t *prompt,
                                   const char **code, struct error *error) {
    TRY(set_named_text(document, "prompt", prompt, code, error));
    free(document->prompt);
    document->prompt = strdup("{document}");
    return document->prompt ? STATUS_OK : error_no_memory(error, "a prompt");
}

static enum status set_messages(struct document *document, json_t *value, const char **code,
                                struct error *error) {
    return input_messages_parse(value, &document->messages, code, error);
}

static enum status set_prompt(struct document *document, json_t *value, const char **code,
                              struct error *error) {
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return refuse_kind(code, error, "prompt", "a string without NUL", value);
    document->prompt = strdup(json_string_value(value));
    return document->prompt ? STATUS_OK : error_no_memory(error, "a prompt");
}

static enum status set_options(struct document *document, json_t *value, const char **code,
                               struct error *error) {
    if (!json_is_object(value))
        return refuse_kind(code, error, "options", "an object", value);
    document->options = json_incref(value);
    return STATUS_OK;
}

static enum status set_nothing(struct document *document, json_t *value, const char **code,
                               struct error *error) {
    (void)document, (void)value, (void)code, (void)error;
    return STATUS_OK;
}

static const struct field {
    const char *name;
    enum status (*set)(struct document *document, json_t *value, const char **code,
                       struct error *error);
} fields[] = {
    {"id", set_nothing}, /* read first, for the rows of bad lines */
    {"text", set_text},     {"messages", set_messages},
    {"prompt", set_prompt}, {"options", set_options},
};

static const struct field *find_field(const char *name) {
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

/* What the fields must be together. A prompt alone is the whole question. */
static enum status check_content(struct document *document, json_t *line, const char **code,
                                 struct error *error) {
    *code = "bad_line";
    bool has_text = json_object_get(line, "text") != NULL;
    if (document->messages && has_text)
        return error_set(error, STATUS_BAD_INPUT, "it has both \"text\" and \"messages\"");
    if (document->messages && document->prompt)
        return error_set(error, STATUS_BAD_INPUT, "it has both \"messages\" and \"prompt\"");
    if (has_text || document->messages)
        return STATUS_OK;
    if (!document->prompt)
        return error_set(error, STATUS_BAD_INPUT,
                         "it has neither \"text\" nor \"messages\" nor \"prompt\"");
    return input_record_set_whole(document, json_object_get(line, "prompt"), code, error);
}

static enum status parse_own_form(json_t *line, struct document *document, const char **code,
                                  struct error *error) {
    const char *key;
    json_t *value;
    TRY(input_record_set_id(document, json_object_get(line, "id"), "id", code, error));
    json_object_foreach(line, key, value) {
        if (!find_field(key))
            TRY(input_record_carry(document, key, value, error));
    }
    json_object_foreach(line, key, value) {
        const struct field *field = find_field(key);
        if (field)
            TRY(field->set(document, value, code, error));
    }
    return check_content(document, line, code, error);
}

/* A line has no lines: what jansson says of them is left out. */
static void drop_line_number(struct error *error) {
    static const char where[] = "at line 1, ";
    char *found = strstr(error->text, where);
    if (found)
        memmove(found + 3, found + sizeof where - 1, strlen(found + sizeof where - 1) + 1);
}

enum status input_record_parse(const struct text *line, struct document *document,
                               const char **code, struct error *error) {
    json_t *value = NULL;
    *code = "bad_json";
    enum status status = json_parse(line->bytes, line->length, &value, error);
    if (status != STATUS_OK) {
        drop_line_number(error);
        return status;
    }
    if (!json_is_object(value))
        status = refuse_kind(code, error, "line", "an object", value);
    else if (input_openai_is_envelope(value))
        status = input_openai_parse(value, document, code, error);
    else
        status = parse_own_form(value, document, code, error);
    if (document->input)
        document->input_bytes = JSON_MEMORY_FACTOR * line->length;
    json_decref(value);
    return status;
}
