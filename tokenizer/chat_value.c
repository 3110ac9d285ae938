/* Values: containers, truth, equality and order. Walkers count their depth, because a template can
 * nest lists as deeply as its steps allow. */
#include "tokenizer/chat_value.h"

#include <math.h>
#include <string.h>

struct chat_list *chat_value_new_list(struct arena *arena, size_t count) {
    struct chat_list *list = arena_calloc(arena, 1, sizeof *list);
    if (!list || count == 0)
        return list;
    list->items = arena_calloc(arena, count, sizeof *list->items);
    list->count = count;
    return list->items ? list : NULL;
}

struct chat_dict *chat_value_new_dict(struct arena *arena, size_t capacity) {
    struct chat_dict *dict = arena_calloc(arena, 1, sizeof *dict);
    if (!dict || capacity == 0)
        return dict;
    dict->entries = arena_calloc(arena, capacity, sizeof *dict->entries);
    dict->capacity = capacity;
    return dict->entries ? dict : NULL;
}

static struct chat_entry *find_entry(const struct chat_dict *dict, struct chat_value key) {
    for (size_t i = 0; i < dict->count; i++) {
        if (chat_value_equal(dict->entries[i].key, key))
            return &dict->entries[i];
    }
    return NULL;
}

bool chat_value_dict_set(struct arena *arena, struct chat_dict *dict, struct chat_value key,
                         struct chat_value value) {
    struct chat_entry *entry = find_entry(dict, key);
    if (entry) {
        entry->value = value;
        return true;
    }
    if (dict->count == dict->capacity) {
        size_t capacity = dict->capacity ? dict->capacity * 2 : 4;
        struct chat_entry *grown = arena_calloc(arena, capacity, sizeof *grown);
        if (!grown)
            return false;
        if (dict->count > 0)
            memcpy(grown, dict->entries, dict->count * sizeof *grown);
        dict->entries = grown;
        dict->capacity = capacity;
    }
    dict->entries[dict->count++] = (struct chat_entry){key, value};
    return true;
}

const struct chat_value *chat_value_dict_get(const struct chat_dict *dict, struct chat_value key) {
    const struct chat_entry *entry = find_entry(dict, key);
    return entry ? &entry->value : NULL;
}

const struct chat_value *chat_value_dict_find(const struct chat_dict *dict, struct view key) {
    for (size_t i = 0; i < dict->count; i++) {
        const struct chat_entry *entry = &dict->entries[i];
        if (entry->key.kind == CHAT_STRING &&
            view_equal(chat_string_view(entry->key.as.string), key))
            return &entry->value;
    }
    return NULL;
}

bool chat_value_is_number(struct chat_value value) {
    return value.kind == CHAT_BOOL || value.kind == CHAT_INTEGER || value.kind == CHAT_FLOAT;
}

double chat_value_to_double(struct chat_value value) {
    if (value.kind == CHAT_FLOAT)
        return value.as.number;
    return value.kind == CHAT_BOOL ? (double)value.as.boolean : (double)value.as.integer;
}

bool chat_value_to_integer(struct chat_value value, int64_t *integer) {
    if (value.kind == CHAT_BOOL)
        *integer = value.as.boolean;
    else if (value.kind == CHAT_INTEGER)
        *integer = value.as.integer;
    else
        return false;
    return true;
}

bool chat_value_is_sequence(struct chat_value value) {
    return value.kind == CHAT_LIST || value.kind == CHAT_TUPLE;
}

static bool hashable_at(struct chat_value value, int depth) {
    if (depth > CHAT_VALUE_DEPTH_MAX || value.kind == CHAT_LIST || value.kind == CHAT_DICT)
        return false;
    for (size_t i = 0; value.kind == CHAT_TUPLE && i < value.as.list->count; i++) {
        if (!hashable_at(value.as.list->items[i], depth + 1))
            return false;
    }
    return true;
}

bool chat_value_hashable(struct chat_value value) {
    return hashable_at(value, 0);
}

bool chat_value_truth(struct chat_value value) {
    switch (value.kind) {
    case CHAT_ABSENT:
    case CHAT_UNDEFINED:
    case CHAT_NONE:
        return false;
    case CHAT_BOOL:
        return value.as.boolean;
    case CHAT_INTEGER:
        return value.as.integer != 0;
    case CHAT_FLOAT:
        return value.as.number != 0.0;
    case CHAT_STRING:
        return value.as.string->length > 0;
    case CHAT_LIST:
    case CHAT_TUPLE:
        return value.as.list->count > 0;
    case CHAT_DICT:
        return value.as.dict->count > 0;
    case CHAT_ITERATOR:
    case CHAT_NAMESPACE:
    case CHAT_FUNCTION:
    case CHAT_METHOD:
    case CHAT_MACRO:
    case CHAT_LOOP:
        return true;
    }
    return false;
}

const char *chat_value_type_name(struct chat_value value) {
    static const char *const names[] = {
        [CHAT_ABSENT] = "absent",     [CHAT_UNDEFINED] = "Undefined",
        [CHAT_NONE] = "NoneType",     [CHAT_BOOL] = "bool",
        [CHAT_INTEGER] = "int",       [CHAT_FLOAT] = "float",
        [CHAT_STRING] = "str",        [CHAT_LIST] = "list",
        [CHAT_TUPLE] = "tuple",       [CHAT_ITERATOR] = "generator",
        [CHAT_DICT] = "dict",         [CHAT_NAMESPACE] = "Namespace",
        [CHAT_FUNCTION] = "function", [CHAT_METHOD] = "method",
        [CHAT_MACRO] = "Macro",       [CHAT_LOOP] = "LoopContext",
    };
    return names[value.kind];
}

static int order_views(struct view a, struct view b) {
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter > 0 ? memcmp(a.bytes, b.bytes, shorter) : 0;
    if (order != 0)
        return order < 0 ? -1 : 1;
    return (a.length > b.length) - (a.length < b.length);
}

static int order_numbers(struct chat_value a, struct chat_value b) {
    int64_t left;
    int64_t right;
    if (chat_value_to_integer(a, &left) && chat_value_to_integer(b, &right))
        return (left > right) - (left < right);
    double x = chat_value_to_double(a);
    double y = chat_value_to_double(b);
    return (x > y) - (x < y);
}

static bool equal_at(struct chat_value a, struct chat_value b, int depth);

static bool equal_lists(const struct chat_list *a, const struct chat_list *b, int depth) {
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (!equal_at(a->items[i], b->items[i], depth + 1))
            return false;
    }
    return true;
}

static bool equal_dicts(const struct chat_dict *a, const struct chat_dict *b, int depth) {
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct chat_value *other = chat_value_dict_get(b, a->entries[i].key);
        if (!other || !equal_at(a->entries[i].value, *other, depth + 1))
            return false;
    }
    return true;
}

static bool equal_at(struct chat_value a, struct chat_value b, int depth) {
    if (depth > CHAT_VALUE_DEPTH_MAX)
        return false;
    if (chat_value_is_number(a) && chat_value_is_number(b)) {
        bool nan = (a.kind == CHAT_FLOAT && isnan(a.as.number)) ||
                   (b.kind == CHAT_FLOAT && isnan(b.as.number));
        return !nan && order_numbers(a, b) == 0;
    }
    if (a.kind != b.kind)
        return false;
    if (a.kind == CHAT_STRING)
        return view_equal(chat_string_view(a.as.string), chat_string_view(b.as.string));
    if (chat_value_is_sequence(a))
        return equal_lists(a.as.list, b.as.list, depth);
    if (a.kind == CHAT_DICT)
        return equal_dicts(a.as.dict, b.as.dict, depth);
    if (a.kind == CHAT_NONE || a.kind == CHAT_UNDEFINED)
        return true;
    return a.as.dict == b.as.dict; /* namespaces and functions are themselves only */
}

bool chat_value_equal(struct chat_value a, struct chat_value b) {
    return equal_at(a, b, 0);
}

static bool compare_at(struct chat_value a, struct chat_value b, int *order, int depth) {
    if (depth > CHAT_VALUE_DEPTH_MAX)
        return false;
    if (chat_value_is_number(a) && chat_value_is_number(b)) {
        *order = order_numbers(a, b);
        return true;
    }
    if (a.kind == CHAT_STRING && b.kind == CHAT_STRING) {
        *order = order_views(chat_string_view(a.as.string), chat_string_view(b.as.string));
        return true;
    }
    if (a.kind != b.kind || !chat_value_is_sequence(a))
        return false;
    size_t i = 0;
    for (; i < a.as.list->count && i < b.as.list->count; i++) {
        if (!equal_at(a.as.list->items[i], b.as.list->items[i], depth + 1))
            return compare_at(a.as.list->items[i], b.as.list->items[i], order, depth + 1);
    }
    *order = (a.as.list->count > b.as.list->count) - (a.as.list->count < b.as.list->count);
    return true;
}

bool chat_value_compare(struct chat_value a, struct chat_value b, int *order) {
    return compare_at(a, b, order, 0);
}
