/* Parsing is jansson's, with the nesting limited beforehand: documents come from strangers and the
 * parser recurses. Writing of strings is ours, because results must be valid JSON whatever bytes
 * they hold. */
#include "core/base/json.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"

enum { JSON_DEPTH_MAX = 100 };

/* The deepest nesting of brackets outside strings; jansson finds what else may be wrong. */
static int nesting_depth(const char *bytes, size_t length) {
    int depth = 0;
    int deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < length; i++) {
        char byte = bytes[i];
        if (in_string && byte == '\\')
            i++;
        else if (byte == '"')
            in_string = !in_string;
        else if (!in_string && (byte == '[' || byte == '{'))
            depth++;
        else if (!in_string && (byte == ']' || byte == '}'))
            depth--;
        if (depth > deepest)
            deepest = depth;
    }
    return deepest;
}

/* jansson quotes the input after "near": that text may be cut inside a character. When its very
 * first allocation fails it says nothing at all. */
static enum status refuse(json_error_t *failure, struct error *error) {
    if (failure->text[0] == '\0' || json_error_code(failure) == json_error_out_of_memory)
        return error_no_memory(error, "a JSON value");
    char *quoted = strstr(failure->text, " near ");
    if (quoted)
        *quoted = '\0';
    return error_set(error, STATUS_BAD_INPUT, "invalid JSON at line %d, column %d: %s",
                     failure->line, failure->column, failure->text);
}

enum status json_parse(const char *bytes, size_t length, json_t **value, struct error *error) {
    *value = NULL;
    if (nesting_depth(bytes, length) > JSON_DEPTH_MAX)
        return error_set(error, STATUS_BAD_INPUT, "invalid JSON: nested deeper than %d levels",
                         JSON_DEPTH_MAX);
    json_error_t failure;
    *value = json_loadb(bytes, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL,
                        &failure);
    return *value ? STATUS_OK : refuse(&failure, error);
}

static int append_piece(const char *bytes, size_t length, void *context) {
    return text_append(context, bytes, length) ? 0 : -1;
}

/* Forgets what a failed append had added. */
static bool keep_or_cut(struct text *text, size_t length, bool kept) {
    if (!kept && text->bytes) {
        text->length = length;
        text->bytes[length] = '\0';
    }
    return kept;
}

bool json_append(struct text *text, const json_t *value) {
    size_t length = text->length;
    int result = json_dump_callback(value, append_piece, text, JSON_COMPACT | JSON_ENCODE_ANY);
    return keep_or_cut(text, length, result == 0);
}

static bool append_escape(struct text *text, uint8_t byte) {
    static const char *const shorthand[256] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
        ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t",
    };
    if (shorthand[byte])
        return text_append_string(text, shorthand[byte]);
    return text_append_format(text, "\\u%04X", byte);
}

static bool append_content(struct text *text, const uint8_t *bytes, size_t length) {
    size_t plain = 0; /* start of what needs no change and is not yet written */
    for (size_t i = 0; i < length;) {
        bool escaped = bytes[i] < 0x20 || bytes[i] == '"' || bytes[i] == '\\';
        size_t bad;
        size_t size = utf8_character(bytes + i, length - i, &bad);
        if (size > 0 && !escaped) {
            i += size;
            continue;
        }
        if (!text_append(text, (const char *)bytes + plain, i - plain))
            return false;
        if (!(escaped ? append_escape(text, bytes[i]) : text_append_string(text, UTF8_REPLACEMENT)))
            return false;
        i += escaped ? 1 : bad;
        plain = i;
    }
    return text_append(text, (const char *)bytes + plain, length - plain);
}

bool json_append_string(struct text *text, const char *bytes, size_t length) {
    size_t before = text->length;
    bool kept = text_append_char(text, '"') &&
                append_content(text, (const uint8_t *)bytes, length) && text_append_char(text, '"');
    return keep_or_cut(text, before, kept);
}

bool json_append_number(struct text *text, double value, int decimals) {
    if (!isfinite(value))
        return text_append_string(text, "null");
    return text_append_format(text, "%.*f", decimals, value);
}
