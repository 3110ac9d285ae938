/* Expressions: one function a kind of node, and what they share. */
#include "tokenizer/chat_eval.h"

#include <stdarg.h>
#include <stdio.h>

#include "tokenizer/chat_access.h"
#include "tokenizer/chat_call.h"
#include "tokenizer/chat_filters.h"
#include "tokenizer/chat_format.h"
#include "tokenizer/chat_functions.h"
#include "tokenizer/chat_operators.h"
#include "tokenizer/chat_tests.h"

enum { CHARGE_BYTES_PER_STEP = 16 };

enum status chat_eval_fail(struct chat_evaluator *evaluator, const char *format, ...) {
    char reason[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return error_set(evaluator->error, STATUS_BAD_INPUT, "chat template line %d: %s",
                     evaluator->line, reason);
}

enum status chat_eval_full(struct chat_evaluator *evaluator) {
    return error_set(evaluator->error, STATUS_OVER_LIMIT,
                     "chat template line %d: more than %zu MB of memory or output needed",
                     evaluator->line, evaluator->bytes_max >> 20);
}

enum status chat_eval_charge(struct chat_evaluator *evaluator, size_t bytes) {
    evaluator->steps += bytes / CHARGE_BYTES_PER_STEP;
    if (evaluator->steps <= evaluator->steps_max)
        return STATUS_OK;
    return error_set(evaluator->error, STATUS_OVER_LIMIT,
                     "chat template line %d: more than %zu steps", evaluator->line,
                     evaluator->steps_max);
}

enum status chat_eval_flatten(struct chat_evaluator *evaluator, struct chat_value *value) {
    if (value->kind != CHAT_STRING || value->as.string->bytes)
        return STATUS_OK;
    TRY(chat_eval_charge(evaluator, value->as.string->length));
    value->as.string = chat_string_flatten(&evaluator->arena, value->as.string);
    return value->as.string ? STATUS_OK : chat_eval_full(evaluator);
}

enum status chat_eval_built(struct chat_evaluator *evaluator, struct chat_string_builder *builder,
                            struct chat_value *value) {
    const struct chat_string *string = chat_string_builder_finish(builder);
    if (!string || string->length > evaluator->bytes_max)
        return chat_eval_full(evaluator);
    *value = chat_value_string(string);
    return STATUS_OK;
}

enum status chat_eval_text(struct chat_evaluator *evaluator, struct chat_value value,
                           const struct chat_string **text) {
    if (value.kind == CHAT_STRING) {
        TRY(chat_eval_flatten(evaluator, &value));
        *text = value.as.string;
        return STATUS_OK;
    }
    struct chat_string_builder builder;
    chat_string_builder_init(&builder, &evaluator->arena);
    TRY(chat_format_text(evaluator, value, &builder));
    struct chat_value string = chat_value_none();
    TRY(chat_eval_built(evaluator, &builder, &string));
    *text = string.as.string;
    return STATUS_OK;
}

enum status chat_eval_concat(struct chat_evaluator *evaluator, const struct chat_string *left,
                             const struct chat_string *right, const struct chat_string **result) {
    *result = chat_string_concat(&evaluator->arena, left, right);
    if (!*result || (*result)->length > evaluator->bytes_max)
        return chat_eval_full(evaluator);
    return STATUS_OK;
}

enum status chat_eval_new_text(struct chat_evaluator *evaluator, struct view text,
                               struct chat_value *value) {
    const struct chat_string *string = chat_string_borrow(&evaluator->arena, text, ORIGIN_TEMPLATE);
    if (!string)
        return chat_eval_full(evaluator);
    *value = chat_value_string(string);
    return STATUS_OK;
}

enum status chat_eval_slice(struct chat_evaluator *evaluator, const struct chat_string *flat,
                            size_t first, size_t length, struct chat_value *value) {
    const struct chat_string *slice = chat_string_slice(&evaluator->arena, flat, first, length);
    if (!slice)
        return chat_eval_full(evaluator);
    *value = chat_value_string(slice);
    return STATUS_OK;
}

enum status chat_eval_new_list(struct chat_evaluator *evaluator, size_t count,
                               struct chat_list **list) {
    TRY(chat_eval_charge(evaluator, count));
    *list = chat_value_new_list(&evaluator->arena, count);
    return *list ? STATUS_OK : chat_eval_full(evaluator);
}

const struct chat_value *chat_eval_find_name(const struct chat_evaluator *evaluator,
                                             struct view name) {
    for (const struct chat_scope *scope = evaluator->scope; scope; scope = scope->parent) {
        for (const struct chat_variable *v = scope->variables; v; v = v->next) {
            if (view_equal(v->name, name))
                return &v->value;
        }
    }
    return NULL;
}

enum status chat_eval_set_name(struct chat_evaluator *evaluator, struct view name,
                               struct chat_value value) {
    for (struct chat_variable *v = evaluator->scope->variables; v; v = v->next) {
        if (view_equal(v->name, name)) {
            v->value = value;
            return STATUS_OK;
        }
    }
    struct chat_variable *variable = arena_alloc(&evaluator->arena, sizeof *variable);
    if (!variable)
        return chat_eval_full(evaluator);
    *variable = (struct chat_variable){name, value, evaluator->scope->variables};
    evaluator->scope->variables = variable;
    return STATUS_OK;
}

enum status chat_eval_push_scope(struct chat_evaluator *evaluator, struct chat_scope *parent) {
    struct chat_scope *scope = arena_calloc(&evaluator->arena, 1, sizeof *scope);
    if (!scope)
        return chat_eval_full(evaluator);
    scope->parent = parent;
    evaluator->scope = scope;
    return STATUS_OK;
}

static enum status eval_name(struct chat_evaluator *evaluator, const struct chat_node *node,
                             struct chat_value *value) {
    const struct chat_value *found = chat_eval_find_name(evaluator, node->name);
    if (found) {
        *value = *found;
        return STATUS_OK;
    }
    const struct chat_function *function = chat_functions_find(node->name);
    if (function) {
        *value = (struct chat_value){.kind = CHAT_FUNCTION, .as.function = function};
        return STATUS_OK;
    }
    return chat_access_missing(evaluator, NULL, node->name, value);
}

static enum status eval_items(struct chat_evaluator *evaluator, const struct chat_node *node,
                              struct chat_value *value) {
    size_t count = 0;
    for (const struct chat_node *item = node->list; item; item = item->next)
        count++;
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, count, &list));
    size_t i = 0;
    for (const struct chat_node *item = node->list; item; item = item->next)
        TRY(chat_eval_flat_expression(evaluator, item, &list->items[i++]));
    value->kind = node->kind == CHAT_NODE_LIST ? CHAT_LIST : CHAT_TUPLE;
    value->as.list = list;
    return STATUS_OK;
}

static enum status eval_dict(struct chat_evaluator *evaluator, const struct chat_node *node,
                             struct chat_value *value) {
    struct chat_dict *dict = chat_value_new_dict(&evaluator->arena, 0);
    if (!dict)
        return chat_eval_full(evaluator);
    for (const struct chat_node *item = node->list; item; item = item->next->next) {
        struct chat_value key;
        struct chat_value content;
        TRY(chat_eval_flat_expression(evaluator, item, &key));
        TRY(chat_eval_flat_expression(evaluator, item->next, &content));
        if (!chat_value_hashable(key))
            return chat_eval_fail(evaluator, "a %s cannot be a key", chat_value_type_name(key));
        if (!chat_value_dict_set(&evaluator->arena, dict, key, content))
            return chat_eval_full(evaluator);
    }
    *value = (struct chat_value){.kind = CHAT_DICT, .as.dict = dict};
    return STATUS_OK;
}

static enum status eval_attribute(struct chat_evaluator *evaluator, const struct chat_node *node,
                                  struct chat_value *value) {
    struct chat_value object;
    TRY(chat_eval_expression(evaluator, node->first, &object));
    evaluator->line = node->line;
    return chat_access_attribute(evaluator, object, node->name, value);
}

static enum status eval_item(struct chat_evaluator *evaluator, const struct chat_node *node,
                             struct chat_value *value) {
    struct chat_value object;
    struct chat_value key;
    TRY(chat_eval_flat_expression(evaluator, node->first, &object));
    TRY(chat_eval_flat_expression(evaluator, node->second, &key));
    evaluator->line = node->line;
    return chat_access_item(evaluator, object, key, value);
}

static enum status eval_slice(struct chat_evaluator *evaluator, const struct chat_node *node,
                              struct chat_value *value) {
    struct chat_value object;
    struct chat_value bounds[3];
    TRY(chat_eval_flat_expression(evaluator, node->first, &object));
    const struct chat_node *bound = node->list;
    for (int i = 0; i < 3; i++, bound = bound->next)
        TRY(chat_eval_expression(evaluator, bound, &bounds[i]));
    evaluator->line = node->line;
    return chat_access_subrange(evaluator, object, bounds, value);
}

static enum status eval_call(struct chat_evaluator *evaluator, const struct chat_node *node,
                             struct chat_value *value) {
    struct chat_value callee;
    struct chat_arguments arguments;
    TRY(chat_eval_expression(evaluator, node->first, &callee));
    TRY(chat_call_arguments(evaluator, node->list, &arguments));
    evaluator->line = node->line;
    return chat_call_value(evaluator, callee, &arguments, value);
}

static enum status eval_filter(struct chat_evaluator *evaluator, const struct chat_node *node,
                               struct chat_value *value) {
    struct chat_value input;
    struct chat_arguments arguments;
    TRY(chat_eval_expression(evaluator, node->first, &input));
    TRY(chat_call_arguments(evaluator, node->list, &arguments));
    evaluator->line = node->line;
    if (!node->row)
        return chat_eval_fail(evaluator, "filter '%.*s' is not supported", (int)node->name.length,
                              node->name.bytes);
    return chat_filters_apply(evaluator, node->row, input, &arguments, value);
}

static enum status eval_test(struct chat_evaluator *evaluator, const struct chat_node *node,
                             struct chat_value *value) {
    struct chat_value input;
    struct chat_arguments arguments;
    bool result;
    TRY(chat_eval_flat_expression(evaluator, node->first, &input));
    TRY(chat_call_arguments(evaluator, node->list, &arguments));
    evaluator->line = node->line;
    if (!node->row)
        return chat_eval_fail(evaluator, "test '%.*s' is not supported", (int)node->name.length,
                              node->name.bytes);
    TRY(chat_tests_apply(evaluator, node->row, input, &arguments, &result));
    *value = chat_value_bool(result);
    return STATUS_OK;
}

/* Signs and `not`. */
static enum status eval_sign(struct chat_evaluator *evaluator, const struct chat_node *node,
                             struct chat_value *value) {
    struct chat_value operand;
    TRY(chat_eval_expression(evaluator, node->first, &operand));
    evaluator->line = node->line;
    if (node->kind == CHAT_NODE_NEGATE)
        return chat_operators_negate(evaluator, operand, value);
    if (node->kind == CHAT_NODE_NOT)
        *value = chat_value_bool(!chat_value_truth(operand));
    else if (!chat_value_is_number(operand))
        return chat_eval_fail(evaluator, "bad operand type for unary +: '%s'",
                              chat_value_type_name(operand));
    else
        *value = operand;
    return STATUS_OK;
}

/* `and` and `or` give the operand that decided. */
static enum status eval_logic(struct chat_evaluator *evaluator, const struct chat_node *node,
                              struct chat_value *value) {
    TRY(chat_eval_expression(evaluator, node->first, value));
    if (chat_value_truth(*value) == (node->kind == CHAT_NODE_OR))
        return STATUS_OK;
    return chat_eval_expression(evaluator, node->second, value);
}

static enum status eval_binary(struct chat_evaluator *evaluator, const struct chat_node *node,
                               struct chat_value *value) {
    struct chat_value left;
    struct chat_value right;
    TRY(chat_eval_expression(evaluator, node->first, &left));
    TRY(chat_eval_expression(evaluator, node->second, &right));
    evaluator->line = node->line;
    return chat_operators_apply(evaluator, node->operation, left, right, value);
}

static enum status eval_compare(struct chat_evaluator *evaluator, const struct chat_node *node,
                                struct chat_value *value) {
    struct chat_value left;
    bool holds = true;
    TRY(chat_eval_flat_expression(evaluator, node->first, &left));
    for (const struct chat_node *operand = node->list; operand && holds; operand = operand->next) {
        struct chat_value right;
        TRY(chat_eval_flat_expression(evaluator, operand->first, &right));
        evaluator->line = node->line;
        TRY(chat_operators_compare(evaluator, operand->operation, left, right, &holds));
        left = right;
    }
    *value = chat_value_bool(holds);
    return STATUS_OK;
}

static enum status eval_conditional(struct chat_evaluator *evaluator, const struct chat_node *node,
                                    struct chat_value *value) {
    struct chat_value condition;
    TRY(chat_eval_expression(evaluator, node->first, &condition));
    if (chat_value_truth(condition))
        return chat_eval_expression(evaluator, node->second, value);
    if (node->otherwise)
        return chat_eval_expression(evaluator, node->otherwise, value);
    return chat_access_missing(evaluator, NULL, view_of("the result of an if without else"), value);
}

static enum status eval_constant(struct chat_evaluator *evaluator, const struct chat_node *node,
                                 struct chat_value *value) {
    *value =
        node->kind == CHAT_NODE_CAPTURED ? chat_value_string(evaluator->block) : node->constant;
    return STATUS_OK;
}

enum status chat_eval_expression(struct chat_evaluator *evaluator, const struct chat_node *node,
                                 struct chat_value *value) {
    static enum status (*const functions[])(struct chat_evaluator *, const struct chat_node *,
                                            struct chat_value *) = {
        [CHAT_NODE_CONSTANT] = eval_constant,
        [CHAT_NODE_CAPTURED] = eval_constant,
        [CHAT_NODE_NAME] = eval_name,
        [CHAT_NODE_TUPLE] = eval_items,
        [CHAT_NODE_LIST] = eval_items,
        [CHAT_NODE_DICT] = eval_dict,
        [CHAT_NODE_ATTRIBUTE] = eval_attribute,
        [CHAT_NODE_ITEM] = eval_item,
        [CHAT_NODE_SLICE] = eval_slice,
        [CHAT_NODE_CALL] = eval_call,
        [CHAT_NODE_FILTER] = eval_filter,
        [CHAT_NODE_TEST] = eval_test,
        [CHAT_NODE_NOT] = eval_sign,
        [CHAT_NODE_NEGATE] = eval_sign,
        [CHAT_NODE_PLUS] = eval_sign,
        [CHAT_NODE_AND] = eval_logic,
        [CHAT_NODE_OR] = eval_logic,
        [CHAT_NODE_BINARY] = eval_binary,
        [CHAT_NODE_COMPARE] = eval_compare,
        [CHAT_NODE_CONDITIONAL] = eval_conditional,
    };
    evaluator->line = node->line;
    if (++evaluator->depth > CHAT_EVAL_DEPTH_MAX)
        return error_set(evaluator->error, STATUS_OVER_LIMIT,
                         "chat template line %d: nested more than %d levels deep", node->line,
                         CHAT_EVAL_DEPTH_MAX);
    TRY(chat_eval_charge(evaluator, CHARGE_BYTES_PER_STEP));
    TRY(functions[node->kind](evaluator, node, value));
    evaluator->depth--;
    return STATUS_OK;
}

enum status chat_eval_flat_expression(struct chat_evaluator *evaluator,
                                      const struct chat_node *node, struct chat_value *value) {
    TRY(chat_eval_expression(evaluator, node, value));
    return chat_eval_flatten(evaluator, value);
}
