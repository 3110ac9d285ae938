/* Filters of lists and dicts. Sorting is a merge sort: stable, and n log n whatever the template
 * does. */
#include "tokenizer/chat_list_filters.h"

#include <string.h>

#include "tokenizer/chat_access.h"
#include "tokenizer/chat_case.h"
#include "tokenizer/chat_filters.h"
#include "tokenizer/chat_operators.h"
#include "tokenizer/chat_tests.h"

/* What Jinja computes lazily: not a list, until the list filter makes it one. */
static struct chat_value iterator_value(const struct chat_list *list) {
    return (struct chat_value){.kind = CHAT_ITERATOR, .as.list = list};
}

/* Items to map or select from; nothing for what is false, whatever its type. */
static enum status iterate_if_true(struct chat_evaluator *evaluator, struct chat_value value,
                                   const struct chat_list **items) {
    static const struct chat_list nothing = {0};
    *items = &nothing;
    return chat_value_truth(value) ? chat_access_iterate(evaluator, value, items) : STATUS_OK;
}

static struct chat_value list_value(const struct chat_list *list) {
    return (struct chat_value){.kind = CHAT_LIST, .as.list = list};
}

/* item.a.b for "a.b", items by number; absent: the item itself. */
static enum status read_attribute(struct chat_evaluator *evaluator, struct chat_value item,
                                  struct chat_value attribute, struct chat_value *value) {
    *value = item;
    if (attribute.kind == CHAT_ABSENT || attribute.kind == CHAT_NONE)
        return STATUS_OK;
    if (attribute.kind != CHAT_STRING)
        return chat_access_item(evaluator, item, attribute, value);
    struct view path = chat_string_view(attribute.as.string);
    for (size_t first = 0; first <= path.length;) {
        size_t end = chat_string_find(path, view_of("."), first);
        if (end == SIZE_MAX)
            end = path.length;
        struct chat_value key;
        struct view part = {path.bytes + first, end - first};
        bool digits = part.length > 0 && part.length < 10;
        int64_t index = 0;
        for (size_t i = 0; i < part.length && digits; i++) {
            digits = part.bytes[i] >= '0' && part.bytes[i] <= '9';
            index = index * 10 + (part.bytes[i] - '0');
        }
        key = chat_value_integer(index);
        if (!digits)
            TRY(chat_eval_new_text(evaluator, part, &key));
        TRY(chat_access_item(evaluator, *value, key, value));
        first = end + 1;
    }
    return chat_eval_flatten(evaluator, value);
}

/* What comparing filters compare: the attribute, lower case unless told otherwise. */
static enum status read_key(struct chat_evaluator *evaluator, struct chat_value item,
                            struct chat_value attribute, bool case_sensitive,
                            struct chat_value *key) {
    TRY(read_attribute(evaluator, item, attribute, key));
    if (key->kind != CHAT_STRING || case_sensitive)
        return STATUS_OK;
    return chat_case_map(evaluator, key->as.string, CHAT_CASE_LOWER, key);
}

enum status chat_list_filters_first(struct chat_evaluator *evaluator, struct chat_value value,
                                    const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *list;
    (void)bound;
    TRY(chat_access_iterate(evaluator, value, &list));
    if (list->count == 0)
        return chat_access_missing(evaluator, NULL, view_of("the first item of nothing"), result);
    *result = list->items[0];
    return STATUS_OK;
}

enum status chat_list_filters_last(struct chat_evaluator *evaluator, struct chat_value value,
                                   const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *list;
    (void)bound;
    TRY(chat_access_iterate(evaluator, value, &list));
    if (list->count == 0)
        return chat_access_missing(evaluator, NULL, view_of("the last item of nothing"), result);
    *result = list->items[list->count - 1];
    return STATUS_OK;
}

enum status chat_list_filters_list(struct chat_evaluator *evaluator, struct chat_value value,
                                   const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *list;
    (void)bound;
    TRY(chat_access_iterate(evaluator, value, &list));
    *result = list_value(list);
    return STATUS_OK;
}

enum status chat_list_filters_join(struct chat_evaluator *evaluator, struct chat_value value,
                                   const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *items;
    const struct chat_string *separator;
    TRY(chat_access_iterate(evaluator, value, &items));
    struct chat_value between = bound[0];
    if (between.kind == CHAT_ABSENT)
        TRY(chat_eval_new_text(evaluator, view_of(""), &between));
    TRY(chat_eval_text(evaluator, between, &separator));
    struct chat_string_builder builder;
    chat_string_builder_init(&builder, &evaluator->arena);
    for (size_t i = 0; i < items->count; i++) {
        struct chat_value item;
        const struct chat_string *text;
        TRY(read_attribute(evaluator, items->items[i], bound[1], &item));
        TRY(chat_eval_text(evaluator, item, &text));
        TRY(chat_eval_charge(evaluator, 16 + text->length + separator->length));
        if (i > 0)
            chat_string_builder_append_slice(&builder, separator, 0, separator->length);
        chat_string_builder_append_slice(&builder, text, 0, text->length);
    }
    return chat_eval_built(evaluator, &builder, result);
}

/* map(attribute='x', default=y), or map('filter', arguments…) */
static enum status map_item(struct chat_evaluator *evaluator, struct chat_value item,
                            const struct chat_value *bound, const struct chat_filter *filter,
                            struct chat_value *result) {
    if (filter) {
        struct chat_value values[3];
        struct chat_arguments arguments = {.values = values};
        while (arguments.count < 3 && bound[1 + arguments.count].kind != CHAT_ABSENT) {
            values[arguments.count] = bound[1 + arguments.count];
            arguments.count++;
        }
        TRY(chat_filters_apply(evaluator, filter, item, &arguments, result));
        return chat_eval_flatten(evaluator, result);
    }
    TRY(read_attribute(evaluator, item, bound[4], result));
    if (result->kind == CHAT_UNDEFINED && bound[5].kind != CHAT_ABSENT)
        *result = bound[5];
    return STATUS_OK;
}

enum status chat_list_filters_map(struct chat_evaluator *evaluator, struct chat_value value,
                                  const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *items;
    const struct chat_filter *filter = NULL;
    TRY(iterate_if_true(evaluator, value, &items));
    if (bound[4].kind == CHAT_ABSENT) {
        if (bound[0].kind != CHAT_STRING)
            return chat_eval_fail(evaluator, "map needs a filter's name or an attribute");
        struct view name = chat_string_view(bound[0].as.string);
        filter = chat_filters_find(name);
        if (!filter)
            return chat_eval_fail(evaluator, "filter '%.*s' is not supported",
                                  (int)(name.length < 60 ? name.length : 60), name.bytes);
    }
    if (++evaluator->depth > CHAT_EVAL_DEPTH_MAX) /* map('map', 'map', …) */
        return chat_eval_fail(evaluator, "nested too deeply");
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, items->count, &list));
    for (size_t i = 0; i < items->count; i++) {
        TRY(chat_eval_charge(evaluator, 16));
        TRY(map_item(evaluator, items->items[i], bound, filter, &list->items[i]));
    }
    evaluator->depth--;
    *result = iterator_value(list);
    return STATUS_OK;
}

/* How select and its kin choose: by a test on the item or its attribute, or by truth. */
struct selection {
    struct chat_value attribute;
    const struct chat_test *test; /* NULL: truth */
    struct chat_arguments arguments;
    bool keep; /* items for which the test holds, or the others */
};

static enum status select_items(struct chat_evaluator *evaluator, struct chat_value value,
                                const struct selection *selection, struct chat_value *result) {
    const struct chat_list *items;
    struct chat_list *kept;
    TRY(iterate_if_true(evaluator, value, &items));
    TRY(chat_eval_new_list(evaluator, items->count, &kept));
    kept->count = 0;
    for (size_t i = 0; i < items->count; i++) {
        struct chat_value subject;
        TRY(chat_eval_charge(evaluator, 16));
        TRY(read_attribute(evaluator, items->items[i], selection->attribute, &subject));
        bool holds = chat_value_truth(subject);
        if (selection->test)
            TRY(chat_tests_apply(evaluator, selection->test, subject, &selection->arguments,
                                 &holds));
        if (holds == selection->keep)
            kept->items[kept->count++] = items->items[i];
    }
    *result = iterator_value(kept);
    return STATUS_OK;
}

/* `test`: the test's name and its argument, in a row. */
static enum status run_selection(struct chat_evaluator *evaluator, struct chat_value value,
                                 struct chat_value attribute, const struct chat_value *test,
                                 bool keep, struct chat_value *result) {
    struct chat_value argument = test[1];
    struct selection selection = {.attribute = attribute, .keep = keep};
    selection.arguments.values = &argument;
    selection.arguments.count = argument.kind != CHAT_ABSENT;
    if (test[0].kind != CHAT_ABSENT) {
        const struct chat_string *name;
        TRY(chat_eval_text(evaluator, test[0], &name));
        selection.test = chat_tests_find(chat_string_view(name));
        if (!selection.test)
            return chat_eval_fail(evaluator, "test '%.*s' is not supported",
                                  (int)(name->length < 60 ? name->length : 60), name->bytes);
    }
    return select_items(evaluator, value, &selection, result);
}

enum status chat_list_filters_select(struct chat_evaluator *evaluator, struct chat_value value,
                                     const struct chat_value *bound, struct chat_value *result) {
    struct chat_value itself = {.kind = CHAT_ABSENT};
    return run_selection(evaluator, value, itself, bound, true, result);
}

enum status chat_list_filters_reject(struct chat_evaluator *evaluator, struct chat_value value,
                                     const struct chat_value *bound, struct chat_value *result) {
    struct chat_value itself = {.kind = CHAT_ABSENT};
    return run_selection(evaluator, value, itself, bound, false, result);
}

enum status chat_list_filters_selectattr(struct chat_evaluator *evaluator, struct chat_value value,
                                         const struct chat_value *bound,
                                         struct chat_value *result) {
    return run_selection(evaluator, value, bound[0], bound + 1, true, result);
}

enum status chat_list_filters_rejectattr(struct chat_evaluator *evaluator, struct chat_value value,
                                         const struct chat_value *bound,
                                         struct chat_value *result) {
    return run_selection(evaluator, value, bound[0], bound + 1, false, result);
}

static enum status reverse_string(struct chat_evaluator *evaluator, struct chat_value value,
                                  struct chat_value *result) {
    const struct chat_value backwards[3] = {chat_value_none(), chat_value_none(),
                                            chat_value_integer(-1)};
    return chat_access_subrange(evaluator, value, backwards, result);
}

enum status chat_list_filters_reverse(struct chat_evaluator *evaluator, struct chat_value value,
                                      const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *items;
    struct chat_list *list;
    (void)bound;
    if (value.kind == CHAT_STRING)
        return reverse_string(evaluator, value, result);
    TRY(chat_access_iterate(evaluator, value, &items));
    TRY(chat_eval_new_list(evaluator, items->count, &list));
    for (size_t i = 0; i < items->count; i++)
        list->items[i] = items->items[items->count - 1 - i];
    *result = iterator_value(list);
    return STATUS_OK;
}

struct sort_row {
    struct chat_value key;
    struct chat_value item;
};

/* Merge two sorted halves of `rows` through `spare`; equal keys keep their order. */
static enum status merge(struct chat_evaluator *evaluator, struct sort_row *rows, size_t middle,
                         size_t count, struct sort_row *spare, bool descending) {
    size_t left = 0;
    size_t right = middle;
    for (size_t i = 0; i < count; i++) {
        bool take_right = left == middle;
        if (left < middle && right < count) {
            TRY(chat_eval_charge(evaluator, 16));
            TRY(chat_operators_compare(evaluator, descending ? CHAT_GREATER : CHAT_LESS,
                                       rows[right].key, rows[left].key, &take_right));
        }
        spare[i] = take_right ? rows[right++] : rows[left++];
    }
    memcpy(rows, spare, count * sizeof *rows);
    return STATUS_OK;
}

static enum status sort_rows(struct chat_evaluator *evaluator, struct sort_row *rows, size_t count,
                             struct sort_row *spare, bool descending) {
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t first = 0; first + width < count; first += 2 * width) {
            size_t total = count - first < 2 * width ? count - first : 2 * width;
            TRY(merge(evaluator, rows + first, width, total, spare, descending));
        }
    }
    return STATUS_OK;
}

/* Items of `items` by the key that `attribute` gives. */
static enum status sort_list(struct chat_evaluator *evaluator, const struct chat_list *items,
                             struct chat_value attribute, bool case_sensitive, bool descending,
                             struct chat_value *result) {
    struct sort_row *rows = arena_calloc(&evaluator->arena, items->count + 1, 2 * sizeof *rows);
    struct chat_list *list;
    if (!rows)
        return chat_eval_full(evaluator);
    TRY(chat_eval_new_list(evaluator, items->count, &list));
    for (size_t i = 0; i < items->count; i++) {
        rows[i].item = items->items[i];
        TRY(read_key(evaluator, rows[i].item, attribute, case_sensitive, &rows[i].key));
    }
    TRY(sort_rows(evaluator, rows, items->count, rows + items->count, descending));
    for (size_t i = 0; i < items->count; i++)
        list->items[i] = rows[i].item;
    *result = list_value(list);
    return STATUS_OK;
}

enum status chat_list_filters_sort(struct chat_evaluator *evaluator, struct chat_value value,
                                   const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *items;
    TRY(chat_access_iterate(evaluator, value, &items));
    return sort_list(evaluator, items, bound[2], chat_value_truth(bound[1]),
                     chat_value_truth(bound[0]), result);
}

enum status chat_list_filters_dictsort(struct chat_evaluator *evaluator, struct chat_value value,
                                       const struct chat_value *bound, struct chat_value *result) {
    struct chat_value pairs;
    TRY(chat_filters_items(evaluator, value, NULL, &pairs));
    bool by_value =
        bound[1].kind == CHAT_STRING && view_is(chat_string_view(bound[1].as.string), "value");
    if (bound[1].kind != CHAT_ABSENT && !by_value &&
        !(bound[1].kind == CHAT_STRING && view_is(chat_string_view(bound[1].as.string), "key")))
        return chat_eval_fail(evaluator, "you can only sort by either \"key\" or \"value\"");
    return sort_list(evaluator, pairs.as.list, chat_value_integer(by_value),
                     chat_value_truth(bound[0]), chat_value_truth(bound[2]), result);
}

/* The item whose key comes first in the order that `operation` gives. */
static enum status extreme(struct chat_evaluator *evaluator, struct chat_value value,
                           const struct chat_value *bound, enum chat_operation operation,
                           struct chat_value *result) {
    const struct chat_list *items;
    struct chat_value best_key = {.kind = CHAT_ABSENT};
    TRY(chat_access_iterate(evaluator, value, &items));
    if (items->count == 0)
        return chat_access_missing(evaluator, NULL, view_of("an item of nothing"), result);
    for (size_t i = 0; i < items->count; i++) {
        struct chat_value key;
        bool better = i == 0;
        TRY(read_key(evaluator, items->items[i], bound[1], chat_value_truth(bound[0]), &key));
        if (i > 0)
            TRY(chat_operators_compare(evaluator, operation, key, best_key, &better));
        if (better) {
            best_key = key;
            *result = items->items[i];
        }
    }
    return STATUS_OK;
}

enum status chat_list_filters_max(struct chat_evaluator *evaluator, struct chat_value value,
                                  const struct chat_value *bound, struct chat_value *result) {
    return extreme(evaluator, value, bound, CHAT_GREATER, result);
}

enum status chat_list_filters_min(struct chat_evaluator *evaluator, struct chat_value value,
                                  const struct chat_value *bound, struct chat_value *result) {
    return extreme(evaluator, value, bound, CHAT_LESS, result);
}

enum status chat_list_filters_sum(struct chat_evaluator *evaluator, struct chat_value value,
                                  const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *items;
    TRY(chat_access_iterate(evaluator, value, &items));
    *result = bound[1].kind == CHAT_ABSENT ? chat_value_integer(0) : bound[1];
    for (size_t i = 0; i < items->count; i++) {
        struct chat_value item;
        TRY(read_attribute(evaluator, items->items[i], bound[0], &item));
        TRY(chat_operators_apply(evaluator, CHAT_ADD, *result, item, result));
    }
    return STATUS_OK;
}

enum status chat_list_filters_unique(struct chat_evaluator *evaluator, struct chat_value value,
                                     const struct chat_value *bound, struct chat_value *result) {
    const struct chat_list *items;
    struct chat_list *keys;
    struct chat_list *kept;
    TRY(chat_access_iterate(evaluator, value, &items));
    TRY(chat_eval_new_list(evaluator, items->count, &keys));
    TRY(chat_eval_new_list(evaluator, items->count, &kept));
    keys->count = 0;
    for (size_t i = 0; i < items->count; i++) {
        struct chat_value key;
        bool seen;
        TRY(read_key(evaluator, items->items[i], bound[1], chat_value_truth(bound[0]), &key));
        TRY(chat_operators_compare(evaluator, CHAT_IN, key, list_value(keys), &seen));
        if (seen)
            continue;
        kept->items[keys->count] = items->items[i];
        keys->items[keys->count++] = key;
    }
    kept->count = keys->count;
    *result = iterator_value(kept);
    return STATUS_OK;
}
