/* Messages as chat completion requests write them: content is a string, or a list of text parts.
 * What cannot be given to a text model (images, tool calls) is refused rather than left out. */
#include "core/job/input_messages.h"

#include "core/job/input_text.h"

static const size_t CONTENT_BYTES_MAX = 0xfffffffe;

const char *input_messages_kind(const json_t *value) {
    if (!value)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

static enum status wrong_kind(struct error *error, const char *field, const char *expected,
                              const json_t *found) {
    return error_set(error, STATUS_BAD_INPUT, "\"%s\" must be %s, got %s", field, expected,
                     input_messages_kind(found));
}

static enum status append_part(struct text *joined, const json_t *part, struct error *error) {
    const json_t *kind = json_object_get(part, "type");
    const json_t *text = json_object_get(part, "text");
    if (!json_is_string(text) || (kind && !json_is_string(kind)) ||
        (kind &&
         !view_is((struct view){json_string_value(kind), json_string_length(kind)}, "text")))
        return error_set(error, STATUS_BAD_INPUT, "\"content\" has a part that is not text");
    if (!text_append(joined, json_string_value(text), json_string_length(text)))
        return error_no_memory(error, "a message");
    return STATUS_OK;
}

static enum status join_parts(const json_t *parts, json_t **content, struct error *error) {
    struct text joined;
    enum status status = STATUS_OK;
    text_init(&joined, CONTENT_BYTES_MAX);
    for (size_t i = 0; i < json_array_size(parts) && status == STATUS_OK; i++)
        status = append_part(&joined, json_array_get(parts, i), error);
    if (status == STATUS_OK) {
        *content = json_stringn(joined.bytes ? joined.bytes : "", joined.length);
        status = *content ? STATUS_OK : error_no_memory(error, "a message");
    }
    text_deinit(&joined);
    return status;
}

static enum status read_content(const json_t *message, json_t **content, struct error *error) {
    json_t *value = json_object_get(message, "content");
    if (json_is_array(value))
        return join_parts(value, content, error);
    if (!json_is_string(value))
        return wrong_kind(error, "content", "a string", value);
    *content = json_incref(value);
    return STATUS_OK;
}

static enum status add_message(json_t *messages, const json_t *message, bool *has_text,
                               struct error *error) {
    json_t *content = NULL;
    if (!json_is_object(message))
        return wrong_kind(error, "messages", "an array of objects", message);
    json_t *role = json_object_get(message, "role");
    if (!json_is_string(role) || json_string_length(role) == 0)
        return wrong_kind(error, "role", "a string that is not empty", role);
    const json_t *calls = json_object_get(message, "tool_calls");
    if (calls && !json_is_null(calls))
        return error_set(error, STATUS_BAD_INPUT, "\"tool_calls\" are not supported");
    TRY(read_content(message, &content, error));
    if (!input_text_is_blank(json_string_value(content), json_string_length(content)))
        *has_text = true;
    json_t *plain = json_object();
    bool fine = plain && json_object_set(plain, "role", role) == 0 &&
                json_object_set(plain, "content", content) == 0 &&
                json_array_append(messages, plain) == 0;
    json_decref(content);
    json_decref(plain);
    return fine ? STATUS_OK : error_no_memory(error, "a message");
}

enum status input_messages_parse(const json_t *value, json_t **messages, const char **code,
                                 struct error *error) {
    *code = "bad_line";
    if (!json_is_array(value) || json_array_size(value) == 0)
        return wrong_kind(error, "messages", "an array that is not empty", value);
    json_t *list = json_array();
    if (!list)
        return error_no_memory(error, "the messages");
    bool has_text = false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        enum status status = add_message(list, json_array_get(value, i), &has_text, error);
        if (status != STATUS_OK) {
            json_decref(list);
            return error_context(error, "message %zu", i + 1);
        }
    }
    if (!has_text) {
        json_decref(list);
        *code = "empty";
        return error_set(error, STATUS_BAD_INPUT, "no message has text");
    }
    *messages = list;
    return STATUS_OK;
}
