/* str, repr and JSON are one walk over a value each, with their depth counted. */
#include "tokenizer/chat_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* Digits and exponent of the shortest form: d.ddd × 10^exponent. */
static void shortest_digits(double magnitude, char digits[24], int *exponent) {
    char text[40];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, magnitude);
        if (strtod(text, NULL) == magnitude)
            break;
    }
    size_t count = 0;
    const char *at = text;
    for (; *at && *at != 'e'; at++) {
        if (*at != '.')
            digits[count++] = *at;
    }
    while (count > 1 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    *exponent = (int)strtol(at + 1, NULL, 10);
}

void chat_format_float(double number, char buffer[CHAT_FORMAT_FLOAT_BYTES]) {
    if (isnan(number) || isinf(number)) {
        snprintf(buffer, CHAT_FORMAT_FLOAT_BYTES, "%s",
                 isnan(number) ? "nan"
                 : number < 0  ? "-inf"
                               : "inf");
        return;
    }
    char digits[24];
    int exponent;
    shortest_digits(fabs(number), digits, &exponent);
    int count = (int)strlen(digits);
    const char *sign = signbit(number) ? "-" : "";
    if (exponent < -4 || exponent >= 16)
        snprintf(buffer, CHAT_FORMAT_FLOAT_BYTES, "%s%c%s%se%c%02d", sign, digits[0],
                 count > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+', abs(exponent));
    else if (exponent < 0)
        snprintf(buffer, CHAT_FORMAT_FLOAT_BYTES, "%s0.%.*s%s", sign, -exponent - 1, "0000",
                 digits);
    else if (count <= exponent + 1)
        snprintf(buffer, CHAT_FORMAT_FLOAT_BYTES, "%s%s%.*s.0", sign, digits, exponent + 1 - count,
                 "0000000000000000");
    else
        snprintf(buffer, CHAT_FORMAT_FLOAT_BYTES, "%s%.*s.%s", sign, exponent + 1, digits,
                 digits + exponent + 1);
}

static void append_integer(struct chat_string_builder *out, int64_t integer) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, integer);
    chat_string_builder_append_text(out, text);
}

/* Categories from Zs on are separators, controls, formats, surrogates and private use. */
static bool is_printable(int32_t character) {
    if (character < 0)
        return true; /* a byte of no character stays as it is */
    if (character < 0x7F)
        return character >= 0x20;
    utf8proc_category_t category = utf8proc_category(character);
    return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

/* How repr writes one character inside quotes; NULL: as it is. */
static const char *repr_escape(int32_t character, char quote, char buffer[16]) {
    if (character == '\n' || character == '\r' || character == '\t')
        snprintf(buffer, 16, "\\%c", character == '\n' ? 'n' : character == '\r' ? 'r' : 't');
    else if (character == '\\' || character == quote)
        snprintf(buffer, 16, "\\%c", (char)character);
    else if (is_printable(character))
        return NULL;
    else if (character < 0x100)
        snprintf(buffer, 16, "\\x%02x", (unsigned)character);
    else
        snprintf(buffer, 16, character < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)character);
    return buffer;
}

static const char *json_escape(int32_t character, bool ascii, char buffer[16]) {
    static const char shorts[] = "\"\"\\\\\nn\rr\tt\ff\bb";
    for (size_t i = 0; i + 1 < sizeof shorts; i += 2) {
        if (character == shorts[i]) {
            snprintf(buffer, 16, "\\%c", shorts[i + 1]);
            return buffer;
        }
    }
    if (character < 0 || (character >= 0x20 && (character < 0x7F || !ascii)))
        return NULL;
    if (character < 0x10000)
        snprintf(buffer, 16, "\\u%04x", (unsigned)character);
    else
        snprintf(buffer, 16, "\\u%04x\\u%04x", 0xD7C0 + ((unsigned)character >> 10),
                 0xDC00 + ((unsigned)character & 0x3FF));
    return buffer;
}

/* The string's characters, escaped by repr's rules (quote set) or JSON's (quote 0). */
static void append_escaped(struct chat_string_builder *out, const struct chat_string *string,
                           char quote, bool ascii) {
    size_t plain = 0; /* start of what needs no escape */
    size_t i = 0;
    while (i < string->length) {
        int32_t character;
        size_t length = chat_string_character(string->bytes + i, string->length - i, &character);
        char buffer[16];
        const char *escape =
            quote ? repr_escape(character, quote, buffer) : json_escape(character, ascii, buffer);
        if (escape) {
            size_t end;
            chat_string_builder_append_slice(out, string, plain, i - plain);
            chat_string_builder_append(out, view_of(escape), chat_string_origin(string, i, &end));
            plain = i + length;
        }
        i += length;
    }
    chat_string_builder_append_slice(out, string, plain, string->length - plain);
}

static enum status append_repr(struct chat_evaluator *evaluator, struct chat_value value,
                               struct chat_string_builder *out, int depth);

static enum status append_repr_list(struct chat_evaluator *evaluator, struct chat_value value,
                                    struct chat_string_builder *out, int depth) {
    bool tuple = value.kind == CHAT_TUPLE;
    chat_string_builder_append_text(out, tuple ? "(" : "[");
    for (size_t i = 0; i < value.as.list->count; i++) {
        if (i > 0)
            chat_string_builder_append_text(out, ", ");
        TRY(append_repr(evaluator, value.as.list->items[i], out, depth + 1));
    }
    if (tuple && value.as.list->count == 1)
        chat_string_builder_append_text(out, ",");
    chat_string_builder_append_text(out, tuple ? ")" : "]");
    return STATUS_OK;
}

static enum status append_repr_dict(struct chat_evaluator *evaluator, struct chat_value value,
                                    struct chat_string_builder *out, int depth) {
    chat_string_builder_append_text(out, "{");
    for (size_t i = 0; i < value.as.dict->count; i++) {
        if (i > 0)
            chat_string_builder_append_text(out, ", ");
        TRY(append_repr(evaluator, value.as.dict->entries[i].key, out, depth + 1));
        chat_string_builder_append_text(out, ": ");
        TRY(append_repr(evaluator, value.as.dict->entries[i].value, out, depth + 1));
    }
    chat_string_builder_append_text(out, "}");
    return STATUS_OK;
}

static enum status append_repr(struct chat_evaluator *evaluator, struct chat_value value,
                               struct chat_string_builder *out, int depth) {
    char number[CHAT_FORMAT_FLOAT_BYTES];
    TRY(chat_eval_charge(evaluator, 16));
    if (depth > CHAT_VALUE_DEPTH_MAX)
        return chat_eval_fail(evaluator, "a value is nested too deeply to be written");
    switch (value.kind) {
    case CHAT_NONE:
        chat_string_builder_append_text(out, "None");
        return STATUS_OK;
    case CHAT_BOOL:
        chat_string_builder_append_text(out, value.as.boolean ? "True" : "False");
        return STATUS_OK;
    case CHAT_INTEGER:
        append_integer(out, value.as.integer);
        return STATUS_OK;
    case CHAT_FLOAT:
        chat_format_float(value.as.number, number);
        chat_string_builder_append_text(out, number);
        return STATUS_OK;
    case CHAT_STRING: {
        struct view bytes = chat_string_view(value.as.string);
        bool has_single = bytes.length > 0 && memchr(bytes.bytes, '\'', bytes.length);
        bool has_double = bytes.length > 0 && memchr(bytes.bytes, '"', bytes.length);
        const char *quote = has_single && !has_double ? "\"" : "'";
        TRY(chat_eval_charge(evaluator, bytes.length));
        chat_string_builder_append_text(out, quote);
        append_escaped(out, value.as.string, quote[0], false);
        chat_string_builder_append_text(out, quote);
        return STATUS_OK;
    }
    case CHAT_LIST:
    case CHAT_TUPLE:
        return append_repr_list(evaluator, value, out, depth);
    case CHAT_DICT:
        return append_repr_dict(evaluator, value, out, depth);
    case CHAT_UNDEFINED:
        chat_string_builder_append_text(out, "Undefined");
        return STATUS_OK;
    case CHAT_ABSENT:
    case CHAT_ITERATOR:
    case CHAT_NAMESPACE:
    case CHAT_FUNCTION:
    case CHAT_METHOD:
    case CHAT_MACRO:
    case CHAT_LOOP:
        break;
    }
    return chat_eval_fail(evaluator, "a %s cannot be written as text", chat_value_type_name(value));
}

enum status chat_format_text(struct chat_evaluator *evaluator, struct chat_value value,
                             struct chat_string_builder *out) {
    if (value.kind == CHAT_UNDEFINED)
        return STATUS_OK;
    if (value.kind != CHAT_STRING)
        return append_repr(evaluator, value, out, 0);
    TRY(chat_eval_flatten(evaluator, &value));
    chat_string_builder_append_slice(out, value.as.string, 0, value.as.string->length);
    return STATUS_OK;
}

struct json_writer {
    struct chat_evaluator *evaluator;
    const struct chat_format_json_options *options;
    struct chat_string_builder *out;
};

static void append_json_break(struct json_writer *writer, int depth) {
    if (!writer->options->indented)
        return;
    chat_string_builder_append_text(writer->out, "\n");
    for (int i = 0; i < writer->options->indent * depth; i++)
        chat_string_builder_append_text(writer->out, " ");
}

static void append_json_string(struct json_writer *writer, const struct chat_string *string) {
    chat_string_builder_append_text(writer->out, "\"");
    append_escaped(writer->out, string, 0, writer->options->ascii);
    chat_string_builder_append_text(writer->out, "\"");
}

static enum status append_json(struct json_writer *writer, struct chat_value value, int depth);

static enum status append_json_list(struct json_writer *writer, const struct chat_list *list,
                                    int depth) {
    chat_string_builder_append_text(writer->out, "[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            chat_string_builder_append(writer->out, writer->options->item_separator,
                                       ORIGIN_TEMPLATE);
        append_json_break(writer, depth + 1);
        TRY(append_json(writer, list->items[i], depth + 1));
    }
    if (list->count > 0)
        append_json_break(writer, depth);
    chat_string_builder_append_text(writer->out, "]");
    return STATUS_OK;
}

/* A key: strings as they are, numbers, booleans and none as their JSON in quotes. */
static enum status append_json_key(struct json_writer *writer, struct chat_value key) {
    if (key.kind == CHAT_STRING) {
        append_json_string(writer, key.as.string);
        return STATUS_OK;
    }
    if (key.kind != CHAT_NONE && !chat_value_is_number(key))
        return chat_eval_fail(writer->evaluator, "keys must be strings or numbers, not %s",
                              chat_value_type_name(key));
    chat_string_builder_append_text(writer->out, "\"");
    TRY(append_json(writer, key, 0));
    chat_string_builder_append_text(writer->out, "\"");
    return STATUS_OK;
}

/* The entry that comes after `last` in key order (NULL: the first). */
static const struct chat_entry *next_sorted(const struct chat_dict *dict,
                                            const struct chat_entry *last) {
    const struct chat_entry *best = NULL;
    int order;
    for (size_t i = 0; i < dict->count; i++) {
        const struct chat_entry *entry = &dict->entries[i];
        if (last && (!chat_value_compare(entry->key, last->key, &order) || order <= 0))
            continue;
        if (!best || (chat_value_compare(entry->key, best->key, &order) && order < 0))
            best = entry;
    }
    return best;
}

static enum status append_json_dict(struct json_writer *writer, const struct chat_dict *dict,
                                    int depth) {
    const struct chat_entry *entry = NULL;
    chat_string_builder_append_text(writer->out, "{");
    for (size_t i = 0; i < dict->count; i++) {
        TRY(chat_eval_charge(writer->evaluator, writer->options->sorted ? dict->count * 16 : 0));
        entry = writer->options->sorted ? next_sorted(dict, entry) : &dict->entries[i];
        if (!entry)
            return chat_eval_fail(writer->evaluator, "keys of different types cannot be sorted");
        if (i > 0)
            chat_string_builder_append(writer->out, writer->options->item_separator,
                                       ORIGIN_TEMPLATE);
        append_json_break(writer, depth + 1);
        TRY(append_json_key(writer, entry->key));
        chat_string_builder_append(writer->out, writer->options->key_separator, ORIGIN_TEMPLATE);
        TRY(append_json(writer, entry->value, depth + 1));
    }
    if (dict->count > 0)
        append_json_break(writer, depth);
    chat_string_builder_append_text(writer->out, "}");
    return STATUS_OK;
}

static void append_json_float(struct json_writer *writer, double number) {
    char text[CHAT_FORMAT_FLOAT_BYTES];
    chat_format_float(number, text);
    if (isnan(number))
        snprintf(text, sizeof text, "NaN");
    else if (isinf(number))
        snprintf(text, sizeof text, "%sInfinity", number < 0 ? "-" : "");
    chat_string_builder_append_text(writer->out, text);
}

static enum status append_json(struct json_writer *writer, struct chat_value value, int depth) {
    TRY(chat_eval_charge(writer->evaluator, 16));
    if (depth > CHAT_VALUE_DEPTH_MAX)
        return chat_eval_fail(writer->evaluator, "a value is nested too deeply to be written");
    if (value.kind == CHAT_NONE) {
        chat_string_builder_append_text(writer->out, "null");
    } else if (value.kind == CHAT_BOOL) {
        chat_string_builder_append_text(writer->out, value.as.boolean ? "true" : "false");
    } else if (value.kind == CHAT_INTEGER) {
        append_integer(writer->out, value.as.integer);
    } else if (value.kind == CHAT_FLOAT) {
        append_json_float(writer, value.as.number);
    } else if (value.kind == CHAT_STRING) {
        TRY(chat_eval_flatten(writer->evaluator, &value));
        TRY(chat_eval_charge(writer->evaluator, value.as.string->length));
        append_json_string(writer, value.as.string);
    } else if (chat_value_is_sequence(value)) {
        return append_json_list(writer, value.as.list, depth);
    } else if (value.kind == CHAT_DICT) {
        return append_json_dict(writer, value.as.dict, depth);
    } else {
        return chat_eval_fail(writer->evaluator, "a value of type %s is not JSON serializable",
                              chat_value_type_name(value));
    }
    return STATUS_OK;
}

enum status chat_format_json(struct chat_evaluator *evaluator, struct chat_value value,
                             const struct chat_format_json_options *options,
                             struct chat_string_builder *out) {
    struct json_writer writer = {evaluator, options, out};
    return append_json(&writer, value, 0);
}
