/* Functions of the environment: a table. Dates are UTC and come from the caller, so that the same
 * documents give the same prompts. */
#include "tokenizer/chat_functions.h"

#include <string.h>
#include <time.h>

#include "tokenizer/chat_access.h"

struct chat_function {
    struct chat_signature signature;
    /* NULL: takes any named arguments, and is called by chat_functions_call itself. */
    enum status (*call)(struct chat_evaluator *evaluator, const struct chat_value *bound,
                        struct chat_value *result);
    enum chat_value_kind makes; /* without `call`: CHAT_DICT or CHAT_NAMESPACE */
};

static enum status call_raise_exception(struct chat_evaluator *evaluator,
                                        const struct chat_value *bound, struct chat_value *result) {
    const struct chat_string *text;
    *result = chat_value_none();
    TRY(chat_eval_text(evaluator, bound[0], &text));
    return error_set(evaluator->error, STATUS_BAD_INPUT, "%.*s",
                     (int)(text->length < ERROR_TEXT_MAX ? text->length : ERROR_TEXT_MAX),
                     text->bytes);
}

static enum status read_integer(struct chat_evaluator *evaluator, struct chat_value value,
                                int64_t *integer) {
    if (chat_value_to_integer(value, integer))
        return STATUS_OK;
    return chat_eval_fail(evaluator, "range needs integers, not %s", chat_value_type_name(value));
}

static enum status call_range(struct chat_evaluator *evaluator, const struct chat_value *bound,
                              struct chat_value *result) {
    int64_t start = 0;
    int64_t stop;
    int64_t step = 1;
    TRY(read_integer(evaluator, bound[0], &stop));
    if (bound[1].kind != CHAT_ABSENT) {
        start = stop;
        TRY(read_integer(evaluator, bound[1], &stop));
    }
    if (bound[2].kind != CHAT_ABSENT)
        TRY(read_integer(evaluator, bound[2], &step));
    if (step == 0)
        return chat_eval_fail(evaluator, "range step cannot be zero");
    uint64_t distance = 0;
    if (step > 0 ? stop > start : stop < start)
        distance = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t count = distance / stride + (distance % stride != 0);
    if (count > CHAT_EVAL_RANGE_MAX)
        return chat_eval_fail(evaluator, "range of more than %d items", CHAT_EVAL_RANGE_MAX);
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, (size_t)count, &list));
    for (size_t i = 0; i < list->count; i++)
        list->items[i] = chat_value_integer((int64_t)((uint64_t)start + i * (uint64_t)step));
    *result = (struct chat_value){.kind = CHAT_LIST, .as.list = list};
    return STATUS_OK;
}

static enum status call_strftime_now(struct chat_evaluator *evaluator,
                                     const struct chat_value *bound, struct chat_value *result) {
    const struct chat_string *text;
    TRY(chat_eval_text(evaluator, bound[0], &text));
    char *format = arena_copy_text(&evaluator->arena, text->bytes, text->length);
    size_t room = text->length < 4096 ? 64 + text->length * 16 : 0;
    char *buffer = room > 0 ? arena_alloc(&evaluator->arena, room) : NULL;
    if (!format || !buffer)
        return chat_eval_full(evaluator);
    time_t seconds = (time_t)evaluator->date;
    struct tm parts;
    if (!gmtime_r(&seconds, &parts))
        return chat_eval_fail(evaluator, "the date is out of range");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    size_t length = strftime(buffer, room, format, &parts);
#pragma GCC diagnostic pop
    return chat_eval_new_text(evaluator, (struct view){buffer, length}, result);
}

static const struct chat_function functions[] = {
    {{"raise_exception", 1, 1, {"message"}}, call_raise_exception, CHAT_NONE},
    {{"range", 1, 3, {"", "", ""}}, call_range, CHAT_NONE},
    {{"strftime_now", 1, 1, {"format"}}, call_strftime_now, CHAT_NONE},
    {{"dict", 0, 1, {""}}, NULL, CHAT_DICT},
    {{"namespace", 0, 1, {""}}, NULL, CHAT_NAMESPACE},
};

const struct chat_function *chat_functions_find(struct view name) {
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (view_is(name, functions[i].signature.name))
            return &functions[i];
    }
    return NULL;
}

static enum status add_entry(struct chat_evaluator *evaluator, struct chat_dict *dict,
                             struct chat_value key, struct chat_value value) {
    if (!chat_value_hashable(key))
        return chat_eval_fail(evaluator, "a %s cannot be a key", chat_value_type_name(key));
    if (!chat_value_dict_set(&evaluator->arena, dict, key, value))
        return chat_eval_full(evaluator);
    return STATUS_OK;
}

/* Entries of a dict, or pairs of a list of pairs. */
static enum status copy_entries(struct chat_evaluator *evaluator, struct chat_value from,
                                struct chat_dict *dict) {
    if (from.kind == CHAT_DICT) {
        for (size_t i = 0; i < from.as.dict->count; i++)
            TRY(add_entry(evaluator, dict, from.as.dict->entries[i].key,
                          from.as.dict->entries[i].value));
        return STATUS_OK;
    }
    const struct chat_list *items;
    TRY(chat_access_iterate(evaluator, from, &items));
    for (size_t i = 0; i < items->count; i++) {
        const struct chat_list *pair;
        TRY(chat_access_iterate(evaluator, items->items[i], &pair));
        if (pair->count != 2)
            return chat_eval_fail(evaluator, "dict needs pairs");
        TRY(add_entry(evaluator, dict, pair->items[0], pair->items[1]));
    }
    return STATUS_OK;
}

/* dict(…) and namespace(…): entries of the argument, then the named ones. */
static enum status make_dict(struct chat_evaluator *evaluator, const struct chat_function *function,
                             const struct chat_arguments *arguments, struct chat_value *result) {
    struct chat_dict *dict = chat_value_new_dict(&evaluator->arena, arguments->keyword_count);
    if (!dict)
        return chat_eval_full(evaluator);
    if (arguments->count > 1)
        return chat_eval_fail(evaluator, "%s takes at most 1 argument", function->signature.name);
    if (arguments->count == 1)
        TRY(copy_entries(evaluator, arguments->values[0], dict));
    for (size_t i = 0; i < arguments->keyword_count; i++) {
        struct chat_value key;
        TRY(chat_eval_new_text(evaluator, arguments->keywords[i].name, &key));
        TRY(add_entry(evaluator, dict, key, arguments->keywords[i].value));
    }
    *result = (struct chat_value){.kind = function->makes, .as.dict = dict};
    return STATUS_OK;
}

enum status chat_functions_call(struct chat_evaluator *evaluator,
                                const struct chat_function *function,
                                const struct chat_arguments *arguments, struct chat_value *result) {
    if (!function->call)
        return make_dict(evaluator, function, arguments, result);
    struct chat_value bound[CHAT_CALL_PARAMETERS_MAX];
    TRY(chat_call_bind(evaluator, &function->signature, arguments, bound));
    return function->call(evaluator, bound, result);
}
