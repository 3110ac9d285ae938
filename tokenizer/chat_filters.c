/* The table of filters, and the filters of text, numbers and whole values. Strings come in flat. */
#include "tokenizer/chat_filters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/chat_access.h"
#include "tokenizer/chat_case.h"
#include "tokenizer/chat_format.h"
#include "tokenizer/chat_list_filters.h"
#include "tokenizer/chat_methods.h"
#include "tokenizer/chat_split.h"

struct chat_filter {
    struct chat_signature signature;
    enum status (*apply)(struct chat_evaluator *evaluator, struct chat_value value,
                         const struct chat_value *bound, struct chat_value *result);
};

static enum status apply_case(struct chat_evaluator *evaluator, struct chat_value value,
                              enum chat_case kind, struct chat_value *result) {
    const struct chat_string *text;
    TRY(chat_eval_text(evaluator, value, &text));
    return chat_case_map(evaluator, text, kind, result);
}

static enum status filter_upper(struct chat_evaluator *evaluator, struct chat_value value,
                                const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    return apply_case(evaluator, value, CHAT_CASE_UPPER, result);
}

static enum status filter_lower(struct chat_evaluator *evaluator, struct chat_value value,
                                const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    return apply_case(evaluator, value, CHAT_CASE_LOWER, result);
}

static enum status filter_title(struct chat_evaluator *evaluator, struct chat_value value,
                                const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    return apply_case(evaluator, value, CHAT_CASE_WORDS, result);
}

static enum status filter_capitalize(struct chat_evaluator *evaluator, struct chat_value value,
                                     const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    return apply_case(evaluator, value, CHAT_CASE_CAPITALIZE, result);
}

static enum status filter_trim(struct chat_evaluator *evaluator, struct chat_value value,
                               const struct chat_value *bound, struct chat_value *result) {
    const struct chat_string *text;
    TRY(chat_eval_text(evaluator, value, &text));
    if (bound[0].kind > CHAT_NONE && bound[0].kind != CHAT_STRING)
        return chat_eval_fail(evaluator, "trim needs a str, not %s",
                              chat_value_type_name(bound[0]));
    struct view set = {0};
    bool has_set = bound[0].kind == CHAT_STRING;
    if (has_set)
        set = chat_string_view(bound[0].as.string);
    size_t first;
    size_t end;
    chat_methods_strip(chat_string_view(text), has_set ? &set : NULL,
                       CHAT_METHODS_LEFT | CHAT_METHODS_RIGHT, &first, &end);
    TRY(chat_eval_charge(evaluator, text->length - (end - first)));
    return chat_eval_slice(evaluator, text, first, end - first, result);
}

static enum status filter_string(struct chat_evaluator *evaluator, struct chat_value value,
                                 const struct chat_value *bound, struct chat_value *result) {
    const struct chat_string *text;
    (void)bound;
    TRY(chat_eval_text(evaluator, value, &text));
    *result = chat_value_string(text);
    return STATUS_OK;
}

static enum status filter_length(struct chat_evaluator *evaluator, struct chat_value value,
                                 const struct chat_value *bound, struct chat_value *result) {
    size_t count = 0;
    (void)bound;
    if (value.kind == CHAT_STRING) {
        TRY(chat_eval_charge(evaluator, value.as.string->length));
        count = chat_string_count(chat_string_view(value.as.string));
    } else if (value.kind == CHAT_DICT) {
        count = value.as.dict->count;
    } else if (chat_value_is_sequence(value)) {
        count = value.as.list->count;
    } else if (value.kind != CHAT_UNDEFINED) {
        return chat_eval_fail(evaluator, "object of type '%s' has no len()",
                              chat_value_type_name(value));
    }
    *result = chat_value_integer((int64_t)count);
    return STATUS_OK;
}

static enum status filter_default(struct chat_evaluator *evaluator, struct chat_value value,
                                  const struct chat_value *bound, struct chat_value *result) {
    bool replace =
        value.kind == CHAT_UNDEFINED || (chat_value_truth(bound[1]) && !chat_value_truth(value));
    *result = value;
    if (!replace)
        return STATUS_OK;
    if (bound[0].kind == CHAT_ABSENT)
        return chat_eval_new_text(evaluator, view_of(""), result);
    *result = bound[0];
    return STATUS_OK;
}

/* The number a string spells, blanks around it allowed; false: it spells none. */
static bool read_number(const struct chat_string *string, double *number) {
    char text[64];
    size_t first;
    size_t end;
    chat_methods_strip(chat_string_view(string), NULL, CHAT_METHODS_LEFT | CHAT_METHODS_RIGHT,
                       &first, &end);
    if (end == first || end - first >= sizeof text)
        return false;
    memcpy(text, string->bytes + first, end - first);
    text[end - first] = '\0';
    char *stop;
    *number = strtod(text, &stop);
    return *stop == '\0' && (size_t)(stop - text) == end - first && !strpbrk(text, "xXpP");
}

static bool to_number(struct chat_value value, double *number) {
    if (value.kind == CHAT_STRING)
        return read_number(value.as.string, number);
    if (!chat_value_is_number(value))
        return false;
    *number = chat_value_to_double(value);
    return true;
}

static enum status filter_int(struct chat_evaluator *evaluator, struct chat_value value,
                              const struct chat_value *bound, struct chat_value *result) {
    int64_t integer;
    double number;
    if (chat_value_to_integer(value, &integer)) {
        *result = chat_value_integer(integer);
        return STATUS_OK;
    }
    *result = bound[0].kind == CHAT_ABSENT ? chat_value_integer(0) : bound[0];
    if (!to_number(value, &number) || isnan(number) || isinf(number))
        return STATUS_OK;
    if (fabs(number) >= 9007199254740992.0)
        return chat_eval_fail(evaluator, "integer is too large");
    *result = chat_value_integer((int64_t)number);
    return STATUS_OK;
}

static enum status filter_float(struct chat_evaluator *evaluator, struct chat_value value,
                                const struct chat_value *bound, struct chat_value *result) {
    double number;
    (void)evaluator;
    *result = bound[0].kind == CHAT_ABSENT ? chat_value_float(0.0) : bound[0];
    if (to_number(value, &number))
        *result = chat_value_float(number);
    return STATUS_OK;
}

static enum status filter_abs(struct chat_evaluator *evaluator, struct chat_value value,
                              const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    if (!chat_value_is_number(value))
        return chat_eval_fail(evaluator, "bad operand type for abs(): '%s'",
                              chat_value_type_name(value));
    int64_t integer;
    if (!chat_value_to_integer(value, &integer))
        *result = chat_value_float(fabs(value.as.number));
    else if (integer == INT64_MIN)
        return chat_eval_fail(evaluator, "integer is too large");
    else
        *result = chat_value_integer(integer < 0 ? -integer : integer);
    return STATUS_OK;
}

/* Half to even, as Python rounds; integers stay integers. */
static enum status filter_round(struct chat_evaluator *evaluator, struct chat_value value,
                                const struct chat_value *bound, struct chat_value *result) {
    int64_t precision = 0;
    if (!chat_value_is_number(value) ||
        (bound[0].kind != CHAT_ABSENT && !chat_value_to_integer(bound[0], &precision)) ||
        precision < 0 || precision > 15)
        return chat_eval_fail(evaluator, "round needs a number and a precision of 0 to 15");
    struct view method = view_of("common");
    if (bound[1].kind == CHAT_STRING)
        method = chat_string_view(bound[1].as.string);
    double scale = pow(10.0, (double)precision);
    double scaled = chat_value_to_double(value) * scale;
    if (view_is(method, "ceil"))
        *result = chat_value_float(ceil(scaled) / scale);
    else if (view_is(method, "floor"))
        *result = chat_value_float(floor(scaled) / scale);
    else if (!view_is(method, "common"))
        return chat_eval_fail(evaluator, "method must be common, ceil or floor");
    else if (value.kind == CHAT_FLOAT)
        *result = chat_value_float(nearbyint(scaled) / scale);
    else
        *result = value;
    return STATUS_OK;
}

enum status chat_filters_replace(struct chat_evaluator *evaluator, struct chat_value value,
                                 const struct chat_value *bound, struct chat_value *result) {
    const struct chat_string *text;
    const struct chat_string *old;
    const struct chat_string *new;
    int64_t most = -1;
    TRY(chat_eval_text(evaluator, value, &text));
    TRY(chat_eval_text(evaluator, bound[0], &old));
    TRY(chat_eval_text(evaluator, bound[1], &new));
    if (bound[2].kind > CHAT_NONE && !chat_value_to_integer(bound[2], &most))
        return chat_eval_fail(evaluator, "replace needs an integer count");
    TRY(chat_eval_charge(evaluator, text->length));
    struct chat_string_builder builder;
    chat_string_builder_init(&builder, &evaluator->arena);
    size_t copied = 0;
    int32_t code;
    for (size_t at = 0; most != 0; most--) {
        at = chat_string_find(chat_string_view(text), chat_string_view(old), at);
        if (at == SIZE_MAX)
            break;
        TRY(chat_eval_charge(evaluator, 16 + new->length));
        chat_string_builder_append_slice(&builder, text, copied, at - copied);
        chat_string_builder_append_slice(&builder, new, 0, new->length);
        copied = at + old->length;
        if (old->length == 0 && at == text->length)
            break; /* nothing is found between all characters, and at both ends */
        at = old->length > 0
                 ? copied
                 : at + chat_string_character(text->bytes + at, text->length - at, &code);
    }
    chat_string_builder_append_slice(&builder, text, copied, text->length - copied);
    return chat_eval_built(evaluator, &builder, result);
}

/* The text in front of each line: `width` spaces, or the string given for it. */
static enum status indentation(struct chat_evaluator *evaluator, struct chat_value width,
                               struct chat_value *text) {
    int64_t spaces = 4;
    if (width.kind == CHAT_STRING) {
        *text = width;
        return STATUS_OK;
    }
    if (width.kind != CHAT_ABSENT && !chat_value_to_integer(width, &spaces))
        return chat_eval_fail(evaluator, "indent needs a width");
    if (spaces > 1000)
        return chat_eval_fail(evaluator, "indent of more than 1000 spaces");
    struct chat_string_builder builder;
    chat_string_builder_init(&builder, &evaluator->arena);
    for (int64_t i = 0; i < spaces; i++)
        chat_string_builder_append_text(&builder, " ");
    return chat_eval_built(evaluator, &builder, text);
}

/* The text with a newline more: an empty text is one line, and one that ends a line begins another.
 */
static enum status with_newline(struct chat_evaluator *evaluator, const struct chat_string *text,
                                struct chat_value *whole) {
    struct chat_value newline;
    TRY(chat_eval_new_text(evaluator, view_of("\n"), &newline));
    TRY(chat_eval_concat(evaluator, text, newline.as.string, &whole->as.string));
    whole->kind = CHAT_STRING;
    return chat_eval_flatten(evaluator, whole);
}

static enum status filter_indent(struct chat_evaluator *evaluator, struct chat_value value,
                                 const struct chat_value *bound, struct chat_value *result) {
    const struct chat_string *text;
    struct chat_value indent;
    struct chat_value whole;
    struct chat_value lines;
    struct chat_value keep[1] = {chat_value_bool(false)};
    TRY(chat_eval_text(evaluator, value, &text));
    TRY(indentation(evaluator, bound[0], &indent));
    TRY(with_newline(evaluator, text, &whole));
    TRY(chat_split_lines(evaluator, whole, keep, &lines));
    const struct chat_string *spaces = indent.as.string;
    struct chat_string_builder builder;
    chat_string_builder_init(&builder, &evaluator->arena);
    for (size_t i = 0; i < lines.as.list->count; i++) {
        const struct chat_string *line = lines.as.list->items[i].as.string;
        bool indented =
            i == 0 ? chat_value_truth(bound[1]) : line->length > 0 || chat_value_truth(bound[2]);
        if (i > 0)
            chat_string_builder_append_text(&builder, "\n");
        if (indented)
            chat_string_builder_append_slice(&builder, spaces, 0, spaces->length);
        chat_string_builder_append_slice(&builder, line, 0, line->length);
    }
    return chat_eval_built(evaluator, &builder, result);
}

static enum status read_separators(struct chat_evaluator *evaluator, struct chat_value value,
                                   struct chat_format_json_options *options) {
    if (value.kind <= CHAT_NONE)
        return STATUS_OK;
    const struct chat_list *pair;
    TRY(chat_access_iterate(evaluator, value, &pair));
    if (pair->count != 2 || pair->items[0].kind != CHAT_STRING ||
        pair->items[1].kind != CHAT_STRING)
        return chat_eval_fail(evaluator, "separators must be two strings");
    options->item_separator = chat_string_view(pair->items[0].as.string);
    options->key_separator = chat_string_view(pair->items[1].as.string);
    return STATUS_OK;
}

/* tojson(ensure_ascii, indent, separators, sort_keys) */
static enum status filter_tojson(struct chat_evaluator *evaluator, struct chat_value value,
                                 const struct chat_value *bound, struct chat_value *result) {
    struct chat_format_json_options options = {.ascii = chat_value_truth(bound[0]),
                                               .indented = bound[1].kind > CHAT_NONE,
                                               .sorted = chat_value_truth(bound[3]),
                                               .key_separator = view_of(": ")};
    int64_t indent = 0;
    if (options.indented && !chat_value_to_integer(bound[1], &indent))
        return chat_eval_fail(evaluator, "tojson's indent must be an integer");
    if (indent > 100)
        return chat_eval_fail(evaluator, "tojson's indent is more than 100");
    options.indent = indent > 0 ? (int)indent : 0;
    options.item_separator = view_of(options.indented ? "," : ", ");
    TRY(read_separators(evaluator, bound[2], &options));
    struct chat_string_builder builder;
    chat_string_builder_init(&builder, &evaluator->arena);
    TRY(chat_format_json(evaluator, value, &options, &builder));
    return chat_eval_built(evaluator, &builder, result);
}

enum status chat_filters_items(struct chat_evaluator *evaluator, struct chat_value value,
                               const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    struct chat_dict nothing = {0};
    const struct chat_dict *dict = value.kind == CHAT_UNDEFINED ? &nothing : value.as.dict;
    if (value.kind != CHAT_DICT && value.kind != CHAT_UNDEFINED)
        return chat_eval_fail(evaluator, "can only get item pairs from a mapping");
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, dict->count, &list));
    for (size_t i = 0; i < dict->count; i++) {
        struct chat_list *pair;
        TRY(chat_eval_new_list(evaluator, 2, &pair));
        pair->items[0] = dict->entries[i].key;
        pair->items[1] = dict->entries[i].value;
        list->items[i] = (struct chat_value){.kind = CHAT_TUPLE, .as.list = pair};
    }
    *result = (struct chat_value){.kind = CHAT_LIST, .as.list = list};
    return STATUS_OK;
}

static const struct chat_filter filters[] = {
    {{"abs", 0, 0, {0}}, filter_abs},
    {{"capitalize", 0, 0, {0}}, filter_capitalize},
    {{"count", 0, 0, {0}}, filter_length},
    {{"d", 0, 2, {"default_value", "boolean"}}, filter_default},
    {{"default", 0, 2, {"default_value", "boolean"}}, filter_default},
    {{"dictsort", 0, 3, {"case_sensitive", "by", "reverse"}}, chat_list_filters_dictsort},
    {{"first", 0, 0, {0}}, chat_list_filters_first},
    {{"float", 0, 1, {"default"}}, filter_float},
    {{"indent", 0, 3, {"width", "first", "blank"}}, filter_indent},
    {{"int", 0, 1, {"default"}}, filter_int},
    {{"items", 0, 0, {0}}, chat_filters_items},
    {{"join", 0, 2, {"d", "attribute"}}, chat_list_filters_join},
    {{"last", 0, 0, {0}}, chat_list_filters_last},
    {{"length", 0, 0, {0}}, filter_length},
    {{"list", 0, 0, {0}}, chat_list_filters_list},
    {{"lower", 0, 0, {0}}, filter_lower},
    {{"map", 0, 6, {"", "", "", "", "attribute", "default"}}, chat_list_filters_map},
    {{"max", 0, 2, {"case_sensitive", "attribute"}}, chat_list_filters_max},
    {{"min", 0, 2, {"case_sensitive", "attribute"}}, chat_list_filters_min},
    {{"reject", 0, 3, {"", "", ""}}, chat_list_filters_reject},
    {{"rejectattr", 1, 4, {"", "", "", ""}}, chat_list_filters_rejectattr},
    {{"replace", 2, 3, {"old", "new", "count"}}, chat_filters_replace},
    {{"reverse", 0, 0, {0}}, chat_list_filters_reverse},
    {{"round", 0, 2, {"precision", "method"}}, filter_round},
    {{"safe", 0, 0, {0}}, filter_string},
    {{"select", 0, 3, {"", "", ""}}, chat_list_filters_select},
    {{"selectattr", 1, 4, {"", "", "", ""}}, chat_list_filters_selectattr},
    {{"sort", 0, 3, {"reverse", "case_sensitive", "attribute"}}, chat_list_filters_sort},
    {{"string", 0, 0, {0}}, filter_string},
    {{"sum", 0, 2, {"attribute", "start"}}, chat_list_filters_sum},
    {{"title", 0, 0, {0}}, filter_title},
    {{"tojson", 0, 4, {"ensure_ascii", "indent", "separators", "sort_keys"}}, filter_tojson},
    {{"trim", 0, 1, {"chars"}}, filter_trim},
    {{"unique", 0, 2, {"case_sensitive", "attribute"}}, chat_list_filters_unique},
    {{"upper", 0, 0, {0}}, filter_upper},
};

const struct chat_filter *chat_filters_find(struct view name) {
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        if (view_is(name, filters[i].signature.name))
            return &filters[i];
    }
    return NULL;
}

enum status chat_filters_apply(struct chat_evaluator *evaluator, const struct chat_filter *filter,
                               struct chat_value value, const struct chat_arguments *arguments,
                               struct chat_value *result) {
    struct chat_value bound[CHAT_CALL_PARAMETERS_MAX];
    TRY(chat_call_bind(evaluator, &filter->signature, arguments, bound));
    TRY(chat_eval_flatten(evaluator, &value));
    return filter->apply(evaluator, value, bound, result);
}
