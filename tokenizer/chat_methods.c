/* Methods: one table a kind of value. Strings come back as slices of the receiver where they can.
 */
#include "tokenizer/chat_methods.h"

#include <string.h>

#include "tokenizer/chat_access.h"
#include "tokenizer/chat_case.h"
#include "tokenizer/chat_filters.h"
#include "tokenizer/chat_split.h"

struct chat_method {
    struct chat_signature signature;
    enum chat_value_kind kind;
    /* NULL: the method would change its receiver, and is refused. */
    enum status (*call)(struct chat_evaluator *evaluator, struct chat_value receiver,
                        const struct chat_value *bound, struct chat_value *result);
};

static bool in_set(struct view character, const struct view *set) {
    if (!set) {
        int32_t code;
        chat_string_character(character.bytes, character.length, &code);
        return chat_string_is_space(code);
    }
    for (size_t i = 0; i < set->length;) {
        int32_t code;
        size_t length = chat_string_character(set->bytes + i, set->length - i, &code);
        if (view_equal(character, (struct view){set->bytes + i, length}))
            return true;
        i += length;
    }
    return false;
}

/* The last character of [first, end): up to three bytes back to one that leads. */
static size_t last_character(struct view bytes, size_t first, size_t end) {
    for (size_t back = 1; back <= 4 && back <= end - first; back++) {
        int32_t code;
        size_t length = chat_string_character(bytes.bytes + end - back, back, &code);
        if (code >= 0 && length == back)
            return back;
    }
    return 1;
}

void chat_methods_strip(struct view bytes, const struct view *set, int sides, size_t *first,
                        size_t *end) {
    *first = 0;
    *end = bytes.length;
    while ((sides & CHAT_METHODS_LEFT) && *first < *end) {
        int32_t code;
        size_t length = chat_string_character(bytes.bytes + *first, *end - *first, &code);
        if (!in_set((struct view){bytes.bytes + *first, length}, set))
            break;
        *first += length;
    }
    while ((sides & CHAT_METHODS_RIGHT) && *end > *first) {
        size_t length = last_character(bytes, *first, *end);
        if (!in_set((struct view){bytes.bytes + *end - length, length}, set))
            break;
        *end -= length;
    }
}

/* A string argument; absent or none: NULL. */
static enum status string_argument(struct chat_evaluator *evaluator, struct chat_value argument,
                                   const struct chat_string **string) {
    *string = NULL;
    if (argument.kind == CHAT_ABSENT || argument.kind == CHAT_NONE)
        return STATUS_OK;
    if (argument.kind != CHAT_STRING)
        return chat_eval_fail(evaluator, "expected a str argument, got %s",
                              chat_value_type_name(argument));
    *string = argument.as.string;
    return STATUS_OK;
}

static enum status needed_string(struct chat_evaluator *evaluator, struct chat_value argument,
                                 const struct chat_string **string) {
    if (argument.kind == CHAT_NONE)
        return chat_eval_fail(evaluator, "expected a str argument, got NoneType");
    return string_argument(evaluator, argument, string);
}

static enum status strip(struct chat_evaluator *evaluator, struct chat_value receiver,
                         struct chat_value argument, int sides, struct chat_value *result) {
    const struct chat_string *set;
    TRY(string_argument(evaluator, argument, &set));
    struct view characters = set ? chat_string_view(set) : (struct view){0};
    size_t first;
    size_t end;
    chat_methods_strip(chat_string_view(receiver.as.string), set ? &characters : NULL, sides,
                       &first, &end);
    TRY(chat_eval_charge(evaluator, receiver.as.string->length - (end - first)));
    return chat_eval_slice(evaluator, receiver.as.string, first, end - first, result);
}

static enum status call_strip(struct chat_evaluator *evaluator, struct chat_value receiver,
                              const struct chat_value *bound, struct chat_value *result) {
    return strip(evaluator, receiver, bound[0], CHAT_METHODS_LEFT | CHAT_METHODS_RIGHT, result);
}

static enum status call_lstrip(struct chat_evaluator *evaluator, struct chat_value receiver,
                               const struct chat_value *bound, struct chat_value *result) {
    return strip(evaluator, receiver, bound[0], CHAT_METHODS_LEFT, result);
}

static enum status call_rstrip(struct chat_evaluator *evaluator, struct chat_value receiver,
                               const struct chat_value *bound, struct chat_value *result) {
    return strip(evaluator, receiver, bound[0], CHAT_METHODS_RIGHT, result);
}

static bool begins_or_ends(struct view bytes, struct view part, bool at_end) {
    if (part.length > bytes.length)
        return false;
    const char *from = at_end ? bytes.bytes + bytes.length - part.length : bytes.bytes;
    return view_equal((struct view){from, part.length}, part);
}

/* The argument is a string or a tuple of strings. */
static enum status match_end(struct chat_evaluator *evaluator, struct chat_value receiver,
                             struct chat_value argument, bool at_end, struct chat_value *result) {
    struct view bytes = chat_string_view(receiver.as.string);
    struct chat_list single = {1, &argument};
    const struct chat_list *parts = argument.kind == CHAT_TUPLE ? argument.as.list : &single;
    bool holds = false;
    for (size_t i = 0; i < parts->count && !holds; i++) {
        const struct chat_string *part;
        TRY(needed_string(evaluator, parts->items[i], &part));
        TRY(chat_eval_charge(evaluator, part->length));
        holds = begins_or_ends(bytes, chat_string_view(part), at_end);
    }
    *result = chat_value_bool(holds);
    return STATUS_OK;
}

static enum status call_startswith(struct chat_evaluator *evaluator, struct chat_value receiver,
                                   const struct chat_value *bound, struct chat_value *result) {
    return match_end(evaluator, receiver, bound[0], false, result);
}

static enum status call_endswith(struct chat_evaluator *evaluator, struct chat_value receiver,
                                 const struct chat_value *bound, struct chat_value *result) {
    return match_end(evaluator, receiver, bound[0], true, result);
}

static enum status remove_end(struct chat_evaluator *evaluator, struct chat_value receiver,
                              struct chat_value argument, bool at_end, struct chat_value *result) {
    const struct chat_string *part;
    TRY(needed_string(evaluator, argument, &part));
    size_t length = receiver.as.string->length;
    size_t cut = 0;
    if (begins_or_ends(chat_string_view(receiver.as.string), chat_string_view(part), at_end))
        cut = part->length;
    return chat_eval_slice(evaluator, receiver.as.string, at_end ? 0 : cut, length - cut, result);
}

static enum status call_removeprefix(struct chat_evaluator *evaluator, struct chat_value receiver,
                                     const struct chat_value *bound, struct chat_value *result) {
    return remove_end(evaluator, receiver, bound[0], false, result);
}

static enum status call_removesuffix(struct chat_evaluator *evaluator, struct chat_value receiver,
                                     const struct chat_value *bound, struct chat_value *result) {
    return remove_end(evaluator, receiver, bound[0], true, result);
}

/* Character index of the first or last occurrence, -1 if there is none. */
static enum status find(struct chat_evaluator *evaluator, struct chat_value receiver,
                        struct chat_value argument, bool last, struct chat_value *result) {
    const struct chat_string *part;
    TRY(needed_string(evaluator, argument, &part));
    struct view bytes = chat_string_view(receiver.as.string);
    TRY(chat_eval_charge(evaluator, bytes.length));
    size_t found = SIZE_MAX;
    if (last && part->length <= bytes.length) {
        size_t at = bytes.length - part->length;
        while (at > 0 &&
               (part->length > 0 && memcmp(bytes.bytes + at, part->bytes, part->length) != 0))
            at--;
        if (view_equal((struct view){bytes.bytes + at, part->length}, chat_string_view(part)))
            found = at;
    } else if (!last) {
        found = chat_string_find(bytes, chat_string_view(part), 0);
    }
    *result = chat_value_integer(
        found == SIZE_MAX ? -1 : (int64_t)chat_string_count((struct view){bytes.bytes, found}));
    return STATUS_OK;
}

static enum status call_find(struct chat_evaluator *evaluator, struct chat_value receiver,
                             const struct chat_value *bound, struct chat_value *result) {
    return find(evaluator, receiver, bound[0], false, result);
}

static enum status call_rfind(struct chat_evaluator *evaluator, struct chat_value receiver,
                              const struct chat_value *bound, struct chat_value *result) {
    return find(evaluator, receiver, bound[0], true, result);
}

static enum status call_count(struct chat_evaluator *evaluator, struct chat_value receiver,
                              const struct chat_value *bound, struct chat_value *result) {
    const struct chat_string *part;
    TRY(needed_string(evaluator, bound[0], &part));
    struct view bytes = chat_string_view(receiver.as.string);
    TRY(chat_eval_charge(evaluator, bytes.length));
    int64_t count = part->length == 0 ? (int64_t)chat_string_count(bytes) + 1 : 0;
    size_t at = part->length == 0 ? SIZE_MAX : chat_string_find(bytes, chat_string_view(part), 0);
    for (; at != SIZE_MAX; count++)
        at = chat_string_find(bytes, chat_string_view(part), at + part->length);
    *result = chat_value_integer(count);
    return STATUS_OK;
}

static enum status call_replace(struct chat_evaluator *evaluator, struct chat_value receiver,
                                const struct chat_value *bound, struct chat_value *result) {
    return chat_filters_replace(evaluator, receiver, bound, result);
}

static enum status call_upper(struct chat_evaluator *evaluator, struct chat_value receiver,
                              const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    return chat_case_map(evaluator, receiver.as.string, CHAT_CASE_UPPER, result);
}

static enum status call_lower(struct chat_evaluator *evaluator, struct chat_value receiver,
                              const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    return chat_case_map(evaluator, receiver.as.string, CHAT_CASE_LOWER, result);
}

static enum status call_title(struct chat_evaluator *evaluator, struct chat_value receiver,
                              const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    return chat_case_map(evaluator, receiver.as.string, CHAT_CASE_TITLE, result);
}

static enum status call_capitalize(struct chat_evaluator *evaluator, struct chat_value receiver,
                                   const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    return chat_case_map(evaluator, receiver.as.string, CHAT_CASE_CAPITALIZE, result);
}

static enum status call_isdigit(struct chat_evaluator *evaluator, struct chat_value receiver,
                                const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    struct view bytes = chat_string_view(receiver.as.string);
    TRY(chat_eval_charge(evaluator, bytes.length));
    bool holds = bytes.length > 0;
    for (size_t i = 0; i < bytes.length && holds;) {
        int32_t code;
        i += chat_string_character(bytes.bytes + i, bytes.length - i, &code);
        holds = chat_case_is_digit(code);
    }
    *result = chat_value_bool(holds);
    return STATUS_OK;
}

static enum status call_join(struct chat_evaluator *evaluator, struct chat_value receiver,
                             const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *items;
    TRY(chat_access_iterate(evaluator, bound[0], &items));
    struct chat_string_builder builder;
    chat_string_builder_init(&builder, &evaluator->arena);
    for (size_t i = 0; i < items->count; i++) {
        const struct chat_string *item;
        TRY(needed_string(evaluator, items->items[i], &item));
        TRY(chat_eval_charge(evaluator, item->length + receiver.as.string->length));
        if (i > 0)
            chat_string_builder_append_slice(&builder, receiver.as.string, 0,
                                             receiver.as.string->length);
        chat_string_builder_append_slice(&builder, item, 0, item->length);
    }
    return chat_eval_built(evaluator, &builder, result);
}

static enum status call_get(struct chat_evaluator *evaluator, struct chat_value receiver,
                            const struct chat_value *bound, struct chat_value *result) {
    TRY(chat_eval_charge(evaluator, receiver.as.dict->count * 16));
    const struct chat_value *found = chat_value_dict_get(receiver.as.dict, bound[0]);
    *result = found ? *found : bound[1].kind == CHAT_ABSENT ? chat_value_none() : bound[1];
    return STATUS_OK;
}

static enum status call_keys(struct chat_evaluator *evaluator, struct chat_value receiver,
                             const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    const struct chat_list *list;
    TRY(chat_access_iterate(evaluator, receiver, &list));
    *result = (struct chat_value){.kind = CHAT_LIST, .as.list = list};
    return STATUS_OK;
}

static enum status call_values(struct chat_evaluator *evaluator, struct chat_value receiver,
                               const struct chat_value *bound, struct chat_value *result) {
    (void)bound;
    const struct chat_dict *dict = receiver.as.dict;
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, dict->count, &list));
    for (size_t i = 0; i < dict->count; i++)
        list->items[i] = dict->entries[i].value;
    *result = (struct chat_value){.kind = CHAT_LIST, .as.list = list};
    return STATUS_OK;
}

static enum status call_items(struct chat_evaluator *evaluator, struct chat_value receiver,
                              const struct chat_value *bound, struct chat_value *result) {
    return chat_filters_items(evaluator, receiver, bound, result);
}

static enum status call_index(struct chat_evaluator *evaluator, struct chat_value receiver,
                              const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *list = receiver.as.list;
    TRY(chat_eval_charge(evaluator, list->count * 16));
    for (size_t i = 0; i < list->count; i++) {
        if (chat_value_equal(list->items[i], bound[0])) {
            *result = chat_value_integer((int64_t)i);
            return STATUS_OK;
        }
    }
    return chat_eval_fail(evaluator, "the value is not in the list");
}

static enum status call_list_count(struct chat_evaluator *evaluator, struct chat_value receiver,
                                   const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *list = receiver.as.list;
    int64_t count = 0;
    TRY(chat_eval_charge(evaluator, list->count * 16));
    for (size_t i = 0; i < list->count; i++)
        count += chat_value_equal(list->items[i], bound[0]);
    *result = chat_value_integer(count);
    return STATUS_OK;
}

/* loop.cycle('a', 'b') */
static enum status call_cycle(struct chat_evaluator *evaluator, struct chat_value receiver,
                              const struct chat_value *bound, struct chat_value *result) {
    size_t count = 0;
    while (count < CHAT_CALL_PARAMETERS_MAX && bound[count].kind != CHAT_ABSENT)
        count++;
    (void)evaluator;
    *result = bound[receiver.as.loop->index % count];
    return STATUS_OK;
}

static const struct chat_method methods[] = {
    {{"strip", 0, 1, {""}}, CHAT_STRING, call_strip},
    {{"lstrip", 0, 1, {""}}, CHAT_STRING, call_lstrip},
    {{"rstrip", 0, 1, {""}}, CHAT_STRING, call_rstrip},
    {{"split", 0, 2, {"sep", "maxsplit"}}, CHAT_STRING, chat_split_call},
    {{"rsplit", 0, 2, {"sep", "maxsplit"}}, CHAT_STRING, chat_split_right},
    {{"splitlines", 0, 1, {"keepends"}}, CHAT_STRING, chat_split_lines},
    {{"startswith", 1, 1, {""}}, CHAT_STRING, call_startswith},
    {{"endswith", 1, 1, {""}}, CHAT_STRING, call_endswith},
    {{"removeprefix", 1, 1, {""}}, CHAT_STRING, call_removeprefix},
    {{"removesuffix", 1, 1, {""}}, CHAT_STRING, call_removesuffix},
    {{"find", 1, 1, {""}}, CHAT_STRING, call_find},
    {{"rfind", 1, 1, {""}}, CHAT_STRING, call_rfind},
    {{"count", 1, 1, {""}}, CHAT_STRING, call_count},
    {{"replace", 2, 3, {"", "", "count"}}, CHAT_STRING, call_replace},
    {{"upper", 0, 0, {0}}, CHAT_STRING, call_upper},
    {{"lower", 0, 0, {0}}, CHAT_STRING, call_lower},
    {{"title", 0, 0, {0}}, CHAT_STRING, call_title},
    {{"capitalize", 0, 0, {0}}, CHAT_STRING, call_capitalize},
    {{"isdigit", 0, 0, {0}}, CHAT_STRING, call_isdigit},
    {{"join", 1, 1, {""}}, CHAT_STRING, call_join},
    {{"get", 1, 2, {"", ""}}, CHAT_DICT, call_get},
    {{"keys", 0, 0, {0}}, CHAT_DICT, call_keys},
    {{"values", 0, 0, {0}}, CHAT_DICT, call_values},
    {{"items", 0, 0, {0}}, CHAT_DICT, call_items},
    {{"clear", 0, 0, {0}}, CHAT_DICT, NULL},
    {{"pop", 0, 2, {"", ""}}, CHAT_DICT, NULL},
    {{"popitem", 0, 0, {0}}, CHAT_DICT, NULL},
    {{"setdefault", 1, 2, {"", ""}}, CHAT_DICT, NULL},
    {{"update", 0, 1, {""}}, CHAT_DICT, NULL},
    {{"index", 1, 1, {""}}, CHAT_LIST, call_index},
    {{"count", 1, 1, {""}}, CHAT_LIST, call_list_count},
    {{"append", 1, 1, {""}}, CHAT_LIST, NULL},
    {{"clear", 0, 0, {0}}, CHAT_LIST, NULL},
    {{"extend", 1, 1, {""}}, CHAT_LIST, NULL},
    {{"insert", 2, 2, {"", ""}}, CHAT_LIST, NULL},
    {{"pop", 0, 1, {""}}, CHAT_LIST, NULL},
    {{"remove", 1, 1, {""}}, CHAT_LIST, NULL},
    {{"reverse", 0, 0, {0}}, CHAT_LIST, NULL},
    {{"sort", 0, 2, {"key", "reverse"}}, CHAT_LIST, NULL},
    {{"cycle", 1, 6, {"", "", "", "", "", ""}}, CHAT_LOOP, call_cycle},
};

const struct chat_method *chat_methods_find(enum chat_value_kind kind, struct view name) {
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (methods[i].kind == kind && view_is(name, methods[i].signature.name))
            return &methods[i];
    }
    return NULL;
}

enum status chat_methods_call(struct chat_evaluator *evaluator, const struct chat_bound *bound,
                              const struct chat_arguments *arguments, struct chat_value *result) {
    const struct chat_method *method = bound->method;
    if (!method->call)
        return chat_eval_fail(evaluator, "access to attribute '%s' of '%s' object is unsafe",
                              method->signature.name, chat_value_type_name(bound->receiver));
    struct chat_value receiver = bound->receiver;
    struct chat_value values[CHAT_CALL_PARAMETERS_MAX];
    TRY(chat_call_bind(evaluator, &method->signature, arguments, values));
    TRY(chat_eval_flatten(evaluator, &receiver));
    return method->call(evaluator, receiver, values, result);
}
