/* Statements: one function a kind of node. `if` opens no scope, every round of a `for` opens one.
 */
#include "tokenizer/chat_statement.h"

#include "tokenizer/chat_access.h"
#include "tokenizer/chat_call.h"

static enum status emit(struct chat_evaluator *evaluator, const struct chat_string *string) {
    if (string->length == 0)
        return STATUS_OK;
    if (evaluator->capturing)
        return chat_eval_concat(evaluator, evaluator->captured, string, &evaluator->captured);
    TRY(chat_eval_charge(evaluator, string->length));
    if (evaluator->out->text.length > evaluator->bytes_max - string->length)
        return chat_eval_full(evaluator);
    return chat_string_write(string, evaluator->out) ? STATUS_OK : chat_eval_full(evaluator);
}

static enum status run_data(struct chat_evaluator *evaluator, const struct chat_node *node) {
    return emit(evaluator, node->constant.as.string);
}

static enum status run_output(struct chat_evaluator *evaluator, const struct chat_node *node) {
    struct chat_value value;
    TRY(chat_eval_expression(evaluator, node->first, &value));
    if (value.kind == CHAT_STRING)
        return emit(evaluator, value.as.string);
    const struct chat_string *text;
    TRY(chat_eval_text(evaluator, value, &text));
    return emit(evaluator, text);
}

static enum status run_if(struct chat_evaluator *evaluator, const struct chat_node *node) {
    struct chat_value condition;
    TRY(chat_eval_expression(evaluator, node->first, &condition));
    return chat_statement_run(evaluator,
                              chat_value_truth(condition) ? node->body : node->otherwise);
}

static enum status assign_tuple(struct chat_evaluator *evaluator, const struct chat_node *target,
                                struct chat_value value) {
    const struct chat_list *items;
    TRY(chat_access_iterate(evaluator, value, &items));
    size_t count = 0;
    for (const struct chat_node *item = target->list; item; item = item->next)
        count++;
    if (count != items->count)
        return chat_eval_fail(evaluator, "cannot unpack %zu values into %zu names", items->count,
                              count);
    size_t i = 0;
    for (const struct chat_node *item = target->list; item; item = item->next)
        TRY(chat_statement_assign(evaluator, item, items->items[i++]));
    return STATUS_OK;
}

/* namespace.name = value */
static enum status assign_attribute(struct chat_evaluator *evaluator,
                                    const struct chat_node *target, struct chat_value value) {
    const struct chat_value *object = chat_eval_find_name(evaluator, target->first->name);
    if (!object || object->kind != CHAT_NAMESPACE)
        return chat_eval_fail(evaluator, "cannot assign attribute on non-namespace object");
    struct chat_value key;
    TRY(chat_eval_new_text(evaluator, target->name, &key));
    if (!chat_value_dict_set(&evaluator->arena, object->as.dict, key, value))
        return chat_eval_full(evaluator);
    return STATUS_OK;
}

enum status chat_statement_assign(struct chat_evaluator *evaluator, const struct chat_node *target,
                                  struct chat_value value) {
    evaluator->line = target->line;
    if (target->kind == CHAT_NODE_TUPLE)
        return assign_tuple(evaluator, target, value);
    if (target->kind == CHAT_NODE_ATTRIBUTE)
        return assign_attribute(evaluator, target, value);
    return chat_eval_set_name(evaluator, target->name, value);
}

/* Items for which the loop's own condition holds. */
static enum status select_items(struct chat_evaluator *evaluator, const struct chat_node *node,
                                const struct chat_list **items) {
    const struct chat_list *all = *items;
    struct chat_list *kept;
    struct chat_scope *outer = evaluator->scope;
    TRY(chat_eval_new_list(evaluator, all->count, &kept));
    kept->count = 0;
    for (size_t i = 0; i < all->count; i++) {
        struct chat_value holds;
        TRY(chat_eval_push_scope(evaluator, outer));
        TRY(chat_statement_assign(evaluator, node->target, all->items[i]));
        TRY(chat_eval_expression(evaluator, node->second, &holds));
        if (chat_value_truth(holds))
            kept->items[kept->count++] = all->items[i];
    }
    evaluator->scope = outer;
    *items = kept;
    return STATUS_OK;
}

static enum status run_round(struct chat_evaluator *evaluator, const struct chat_node *node,
                             const struct chat_list *items, size_t index) {
    struct chat_loop *loop = arena_alloc(&evaluator->arena, sizeof *loop);
    if (!loop)
        return chat_eval_full(evaluator);
    *loop = (struct chat_loop){items, index};
    TRY(chat_eval_set_name(evaluator, view_of("loop"),
                           (struct chat_value){.kind = CHAT_LOOP, .as.loop = loop}));
    TRY(chat_statement_assign(evaluator, node->target, items->items[index]));
    return chat_statement_run(evaluator, node->body);
}

static enum status run_for(struct chat_evaluator *evaluator, const struct chat_node *node) {
    struct chat_value iterable;
    const struct chat_list *items;
    TRY(chat_eval_expression(evaluator, node->first, &iterable));
    evaluator->line = node->line;
    TRY(chat_access_iterate(evaluator, iterable, &items));
    if (node->second)
        TRY(select_items(evaluator, node, &items));
    struct chat_scope *outer = evaluator->scope;
    for (size_t i = 0; i < items->count && evaluator->flow != CHAT_FLOW_BREAK; i++) {
        evaluator->flow = CHAT_FLOW_ON;
        TRY(chat_eval_charge(evaluator, 16));
        TRY(chat_eval_push_scope(evaluator, outer));
        TRY(run_round(evaluator, node, items, i));
    }
    evaluator->flow = CHAT_FLOW_ON;
    evaluator->scope = outer;
    return items->count == 0 ? chat_statement_run(evaluator, node->otherwise) : STATUS_OK;
}

static enum status run_set(struct chat_evaluator *evaluator, const struct chat_node *node) {
    struct chat_value value;
    TRY(chat_eval_expression(evaluator, node->first, &value));
    return chat_statement_assign(evaluator, node->target, value);
}

enum status chat_statement_capture(struct chat_evaluator *evaluator, const struct chat_node *body,
                                   struct chat_scope *parent, const struct chat_string **text) {
    static const struct chat_string nothing = {.bytes = ""};
    struct chat_evaluator saved = {.scope = evaluator->scope,
                                   .captured = evaluator->captured,
                                   .capturing = evaluator->capturing};
    TRY(chat_eval_push_scope(evaluator, parent));
    evaluator->captured = &nothing;
    evaluator->capturing = true;
    TRY(chat_statement_run(evaluator, body));
    *text = evaluator->captured;
    evaluator->captured = saved.captured;
    evaluator->capturing = saved.capturing;
    evaluator->scope = saved.scope;
    return STATUS_OK;
}

/* The text of a block statement's body, through the filters of its tag. */
static enum status filtered_block(struct chat_evaluator *evaluator, const struct chat_node *node,
                                  struct chat_value *value) {
    const struct chat_string *outer = evaluator->block;
    const struct chat_string *text;
    TRY(chat_statement_capture(evaluator, node->body, evaluator->scope, &text));
    evaluator->block = text;
    TRY(chat_eval_expression(evaluator, node->first, value));
    evaluator->block = outer;
    return STATUS_OK;
}

static enum status run_set_block(struct chat_evaluator *evaluator, const struct chat_node *node) {
    struct chat_value value;
    TRY(filtered_block(evaluator, node, &value));
    return chat_statement_assign(evaluator, node->target, value);
}

static enum status run_filter_block(struct chat_evaluator *evaluator,
                                    const struct chat_node *node) {
    struct chat_value value;
    const struct chat_string *text;
    TRY(filtered_block(evaluator, node, &value));
    TRY(chat_eval_text(evaluator, value, &text));
    return emit(evaluator, text);
}

static enum status run_with(struct chat_evaluator *evaluator, const struct chat_node *node) {
    struct chat_scope *outer = evaluator->scope;
    TRY(chat_eval_push_scope(evaluator, outer));
    struct chat_scope *inner = evaluator->scope;
    for (const struct chat_node *set = node->list; set; set = set->next) {
        struct chat_value value; /* seen from outside: the names do not see each other */
        evaluator->scope = outer;
        TRY(chat_eval_expression(evaluator, set->first, &value));
        evaluator->scope = inner;
        TRY(chat_statement_assign(evaluator, set->target, value));
    }
    TRY(chat_statement_run(evaluator, node->body));
    evaluator->scope = outer;
    return STATUS_OK;
}

static enum status run_scope(struct chat_evaluator *evaluator, const struct chat_node *node) {
    struct chat_scope *outer = evaluator->scope;
    TRY(chat_eval_push_scope(evaluator, outer));
    TRY(chat_statement_run(evaluator, node->body));
    evaluator->scope = outer;
    return STATUS_OK;
}

static enum status new_macro(struct chat_evaluator *evaluator, const struct chat_node *node,
                             struct view name, struct chat_value *value) {
    struct chat_macro *macro = arena_alloc(&evaluator->arena, sizeof *macro);
    if (!macro)
        return chat_eval_full(evaluator);
    *macro = (struct chat_macro){name, node->list, node->body, evaluator->scope};
    *value = (struct chat_value){.kind = CHAT_MACRO, .as.macro = macro};
    return STATUS_OK;
}

static enum status run_macro(struct chat_evaluator *evaluator, const struct chat_node *node) {
    struct chat_value macro;
    TRY(new_macro(evaluator, node, node->name, &macro));
    return chat_eval_set_name(evaluator, node->name, macro);
}

static enum status run_call_block(struct chat_evaluator *evaluator, const struct chat_node *node) {
    struct chat_value callee;
    struct chat_value caller;
    struct chat_value result;
    struct chat_arguments arguments;
    TRY(chat_eval_expression(evaluator, node->first->first, &callee));
    TRY(chat_call_arguments(evaluator, node->first->list, &arguments));
    evaluator->line = node->line;
    if (callee.kind != CHAT_MACRO)
        return chat_eval_fail(evaluator, "a call block needs a macro, not a %s",
                              chat_value_type_name(callee));
    TRY(new_macro(evaluator, node, view_of("caller"), &caller));
    TRY(chat_call_macro(evaluator, callee.as.macro, &arguments, caller, &result));
    return emit(evaluator, result.as.string);
}

static enum status run_jump(struct chat_evaluator *evaluator, const struct chat_node *node) {
    evaluator->flow = node->kind == CHAT_NODE_BREAK ? CHAT_FLOW_BREAK : CHAT_FLOW_CONTINUE;
    return STATUS_OK;
}

static enum status run_one(struct chat_evaluator *evaluator, const struct chat_node *node) {
    static enum status (*const functions[])(struct chat_evaluator *, const struct chat_node *) = {
        [CHAT_NODE_DATA] = run_data,
        [CHAT_NODE_OUTPUT] = run_output,
        [CHAT_NODE_IF] = run_if,
        [CHAT_NODE_FOR] = run_for,
        [CHAT_NODE_SET] = run_set,
        [CHAT_NODE_SET_BLOCK] = run_set_block,
        [CHAT_NODE_WITH] = run_with,
        [CHAT_NODE_MACRO] = run_macro,
        [CHAT_NODE_CALL_BLOCK] = run_call_block,
        [CHAT_NODE_FILTER_BLOCK] = run_filter_block,
        [CHAT_NODE_SCOPE] = run_scope,
        [CHAT_NODE_BREAK] = run_jump,
        [CHAT_NODE_CONTINUE] = run_jump,
    };
    evaluator->line = node->line;
    if (++evaluator->depth > CHAT_EVAL_DEPTH_MAX)
        return error_set(evaluator->error, STATUS_OVER_LIMIT,
                         "chat template line %d: nested more than %d levels deep", node->line,
                         CHAT_EVAL_DEPTH_MAX);
    TRY(chat_eval_charge(evaluator, 16));
    TRY(functions[node->kind](evaluator, node));
    evaluator->depth--;
    return STATUS_OK;
}

enum status chat_statement_run(struct chat_evaluator *evaluator, const struct chat_node *body) {
    for (; body && evaluator->flow == CHAT_FLOW_ON; body = body->next)
        TRY(run_one(evaluator, body));
    return STATUS_OK;
}
