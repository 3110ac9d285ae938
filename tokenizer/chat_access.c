/* Attributes, items, slices and iteration. */
#include "tokenizer/chat_access.h"

#include <stdio.h>
#include <string.h>

#include "tokenizer/chat_call.h"
#include "tokenizer/chat_methods.h"

enum status chat_access_missing(struct chat_evaluator *evaluator, const char *owner,
                                struct view name, struct chat_value *value) {
    struct chat_missing *missing = arena_alloc(&evaluator->arena, sizeof *missing);
    if (!missing)
        return chat_eval_full(evaluator);
    *missing = (struct chat_missing){owner, name};
    *value = (struct chat_value){.kind = CHAT_UNDEFINED, .as.missing = missing};
    return STATUS_OK;
}

enum status chat_access_fail(struct chat_evaluator *evaluator, struct chat_value value) {
    const struct chat_missing *missing = value.as.missing;
    int length = (int)(missing->name.length < 100 ? missing->name.length : 100);
    if (!missing->owner)
        return chat_eval_fail(evaluator, "'%.*s' is undefined", length, missing->name.bytes);
    return chat_eval_fail(evaluator, "'%s object' has no attribute '%.*s'", missing->owner, length,
                          missing->name.bytes);
}

static enum status iterate_dict(struct chat_evaluator *evaluator, const struct chat_dict *dict,
                                const struct chat_list **result) {
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, dict->count, &list));
    for (size_t i = 0; i < dict->count; i++)
        list->items[i] = dict->entries[i].key;
    *result = list;
    return STATUS_OK;
}

static enum status iterate_string(struct chat_evaluator *evaluator, struct chat_value value,
                                  const struct chat_list **result) {
    TRY(chat_eval_flatten(evaluator, &value));
    struct view bytes = chat_string_view(value.as.string);
    TRY(chat_eval_charge(evaluator, bytes.length));
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, chat_string_count(bytes), &list));
    size_t offset = 0;
    for (size_t i = 0; i < list->count; i++) {
        int32_t character;
        size_t length =
            chat_string_character(bytes.bytes + offset, bytes.length - offset, &character);
        TRY(chat_eval_slice(evaluator, value.as.string, offset, length, &list->items[i]));
        offset += length;
    }
    *result = list;
    return STATUS_OK;
}

enum status chat_access_iterate(struct chat_evaluator *evaluator, struct chat_value value,
                                const struct chat_list **list) {
    static const struct chat_list nothing = {0};
    if (value.kind == CHAT_STRING)
        return iterate_string(evaluator, value, list);
    if (value.kind == CHAT_DICT)
        return iterate_dict(evaluator, value.as.dict, list);
    if (!chat_value_is_sequence(value) && value.kind != CHAT_ITERATOR &&
        value.kind != CHAT_UNDEFINED)
        return chat_eval_fail(evaluator, "'%s' object is not iterable",
                              chat_value_type_name(value));
    *list = value.kind == CHAT_UNDEFINED ? &nothing : value.as.list;
    return STATUS_OK;
}

/* loop.name; false: there is none. */
static bool loop_attribute(const struct chat_loop *loop, struct view name,
                           struct chat_value *value) {
    int64_t index = (int64_t)loop->index;
    int64_t count = (int64_t)loop->items->count;
    const struct {
        const char *name;
        struct chat_value value;
    } attributes[] = {
        {"index", chat_value_integer(index + 1)},
        {"index0", chat_value_integer(index)},
        {"revindex", chat_value_integer(count - index)},
        {"revindex0", chat_value_integer(count - index - 1)},
        {"first", chat_value_bool(index == 0)},
        {"last", chat_value_bool(index + 1 == count)},
        {"length", chat_value_integer(count)},
        {"depth", chat_value_integer(1)},
        {"depth0", chat_value_integer(0)},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        if (view_is(name, attributes[i].name)) {
            *value = attributes[i].value;
            return true;
        }
    }
    bool previous = view_is(name, "previtem") && index > 0;
    if (!previous && !(view_is(name, "nextitem") && index + 1 < count))
        return false;
    *value = loop->items->items[previous ? index - 1 : index + 1];
    return true;
}

/* What stands under a name before items are looked at: methods, fields of `loop` and macros. */
static enum status real_attribute(struct chat_evaluator *evaluator, struct chat_value object,
                                  struct view name, struct chat_value *value, bool *found) {
    *found = true;
    if (object.kind == CHAT_LOOP && loop_attribute(object.as.loop, name, value))
        return STATUS_OK;
    if (object.kind == CHAT_MACRO && view_is(name, "name"))
        return chat_eval_new_text(evaluator, object.as.macro->name, value);
    const struct chat_method *method = chat_methods_find(object.kind, name);
    if (!method) {
        *found = false;
        return STATUS_OK;
    }
    struct chat_bound *bound = arena_alloc(&evaluator->arena, sizeof *bound);
    if (!bound)
        return chat_eval_full(evaluator);
    *bound = (struct chat_bound){object, method};
    *value = (struct chat_value){.kind = CHAT_METHOD, .as.bound = bound};
    return STATUS_OK;
}

static const struct chat_value *find_entry(struct chat_value object, struct view name) {
    if (object.kind != CHAT_DICT && object.kind != CHAT_NAMESPACE)
        return NULL;
    return chat_value_dict_find(object.as.dict, name);
}

enum status chat_access_attribute(struct chat_evaluator *evaluator, struct chat_value object,
                                  struct view name, struct chat_value *value) {
    if (object.kind == CHAT_UNDEFINED)
        return chat_access_fail(evaluator, object);
    bool found;
    TRY(real_attribute(evaluator, object, name, value, &found));
    if (found)
        return STATUS_OK;
    const struct chat_value *entry = find_entry(object, name);
    if (!entry)
        return chat_access_missing(evaluator, chat_value_type_name(object), name, value);
    *value = *entry;
    return STATUS_OK;
}

/* An index from the front, or from the end when negative; false: out of range. */
static bool resolve_index(int64_t index, size_t count, size_t *position) {
    if (index < 0)
        index += (int64_t)count;
    if (index < 0 || (uint64_t)index >= count)
        return false;
    *position = (size_t)index;
    return true;
}

static enum status missing_index(struct chat_evaluator *evaluator, struct chat_value object,
                                 int64_t index, struct chat_value *value) {
    char text[24];
    int length = snprintf(text, sizeof text, "%lld", (long long)index);
    char *name = arena_copy_text(&evaluator->arena, text, (size_t)length);
    if (!name)
        return chat_eval_full(evaluator);
    return chat_access_missing(evaluator, chat_value_type_name(object), view_of(name), value);
}

static enum status item_at(struct chat_evaluator *evaluator, struct chat_value object,
                           int64_t index, struct chat_value *value) {
    size_t position;
    if (chat_value_is_sequence(object)) {
        if (!resolve_index(index, object.as.list->count, &position))
            return missing_index(evaluator, object, index, value);
        *value = object.as.list->items[position];
        return STATUS_OK;
    }
    struct view bytes = chat_string_view(object.as.string);
    TRY(chat_eval_charge(evaluator, bytes.length));
    if (!resolve_index(index, chat_string_count(bytes), &position))
        return missing_index(evaluator, object, index, value);
    size_t first = chat_string_offset(bytes, position);
    int32_t character;
    size_t length = chat_string_character(bytes.bytes + first, bytes.length - first, &character);
    return chat_eval_slice(evaluator, object.as.string, first, length, value);
}

enum status chat_access_item(struct chat_evaluator *evaluator, struct chat_value object,
                             struct chat_value key, struct chat_value *value) {
    if (object.kind == CHAT_UNDEFINED)
        return chat_access_fail(evaluator, object);
    int64_t index;
    bool indexed = object.kind == CHAT_STRING || chat_value_is_sequence(object);
    if (indexed && chat_value_to_integer(key, &index))
        return item_at(evaluator, object, index, value);
    if (object.kind == CHAT_DICT) {
        TRY(chat_eval_charge(evaluator, object.as.dict->count * 16));
        const struct chat_value *entry = chat_value_dict_get(object.as.dict, key);
        if (entry) {
            *value = *entry;
            return STATUS_OK;
        }
    }
    if (key.kind == CHAT_STRING)
        return chat_access_attribute(evaluator, object, chat_string_view(key.as.string), value);
    return chat_access_missing(evaluator, chat_value_type_name(object), view_of("that item"),
                               value);
}

/* Where a slice starts, how many items it takes and how far apart, by Python's rules. */
struct subrange {
    int64_t start, step;
    size_t count;
};

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

static enum status read_bound(struct chat_evaluator *evaluator, struct chat_value bound,
                              int64_t otherwise, int64_t *value) {
    *value = otherwise;
    if (bound.kind == CHAT_NONE || chat_value_to_integer(bound, value))
        return STATUS_OK;
    return chat_eval_fail(evaluator, "slice indices must be integers, not %s",
                          chat_value_type_name(bound));
}

static enum status resolve_subrange(struct chat_evaluator *evaluator,
                                    const struct chat_value bounds[3], size_t count,
                                    struct subrange *range) {
    int64_t length = (int64_t)count;
    int64_t stop;
    TRY(read_bound(evaluator, bounds[2], 1, &range->step));
    range->step = clamp(range->step, -length - 1, length + 1);
    if (range->step == 0)
        return chat_eval_fail(evaluator, "slice step cannot be zero");
    bool back = range->step < 0;
    int64_t low = back ? -1 : 0;
    int64_t high = back ? length - 1 : length;
    TRY(read_bound(evaluator, bounds[0], back ? high : low, &range->start));
    TRY(read_bound(evaluator, bounds[1], back ? -length - 1 : high, &stop));
    range->start += range->start < 0 && bounds[0].kind != CHAT_NONE ? length : 0;
    stop += stop < 0 ? length : 0;
    range->start = clamp(range->start, low, high);
    stop = clamp(stop, low, high);
    int64_t distance = back ? range->start - stop : stop - range->start;
    int64_t stride = back ? -range->step : range->step;
    range->count = distance > 0 ? (size_t)((distance + stride - 1) / stride) : 0;
    return STATUS_OK;
}

static enum status list_subrange(struct chat_evaluator *evaluator, struct chat_value object,
                                 const struct subrange *range, struct chat_value *value) {
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, range->count, &list));
    for (size_t i = 0; i < range->count; i++)
        list->items[i] = object.as.list->items[range->start + (int64_t)i * range->step];
    *value = (struct chat_value){.kind = object.kind, .as.list = list};
    return STATUS_OK;
}

/* Steps other than 1 pick single characters. */
static enum status pick_characters(struct chat_evaluator *evaluator,
                                   const struct chat_string *string, const struct subrange *range,
                                   struct chat_value *value) {
    const struct chat_list *characters;
    TRY(chat_access_iterate(evaluator, chat_value_string(string), &characters));
    struct chat_string_builder builder;
    chat_string_builder_init(&builder, &evaluator->arena);
    for (size_t i = 0; i < range->count; i++) {
        const struct chat_string *character =
            characters->items[range->start + (int64_t)i * range->step].as.string;
        chat_string_builder_append_slice(&builder, character, 0, character->length);
    }
    return chat_eval_built(evaluator, &builder, value);
}

static enum status string_subrange(struct chat_evaluator *evaluator,
                                   const struct chat_string *string, const struct subrange *range,
                                   struct chat_value *value) {
    if (range->step != 1)
        return pick_characters(evaluator, string, range, value);
    struct view bytes = chat_string_view(string);
    size_t first = chat_string_offset(bytes, (size_t)range->start);
    struct view rest = {bytes.bytes + first, bytes.length - first};
    return chat_eval_slice(evaluator, string, first, chat_string_offset(rest, range->count), value);
}

enum status chat_access_subrange(struct chat_evaluator *evaluator, struct chat_value object,
                                 const struct chat_value bounds[3], struct chat_value *value) {
    struct subrange range;
    if (object.kind == CHAT_UNDEFINED)
        return chat_access_fail(evaluator, object);
    if (chat_value_is_sequence(object)) {
        TRY(resolve_subrange(evaluator, bounds, object.as.list->count, &range));
        return list_subrange(evaluator, object, &range, value);
    }
    if (object.kind != CHAT_STRING)
        return chat_access_missing(evaluator, chat_value_type_name(object), view_of("slices"),
                                   value);
    struct view bytes = chat_string_view(object.as.string);
    TRY(chat_eval_charge(evaluator, bytes.length));
    TRY(resolve_subrange(evaluator, bounds, chat_string_count(bytes), &range));
    return string_subrange(evaluator, object.as.string, &range, value);
}
