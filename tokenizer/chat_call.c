/* Calls. Positional arguments fill parameters from the left, named ones by name; defaults of macros
 * are evaluated inside the macro, at the time of the call. */
#include "tokenizer/chat_call.h"

#include "tokenizer/chat_access.h"
#include "tokenizer/chat_functions.h"
#include "tokenizer/chat_methods.h"
#include "tokenizer/chat_statement.h"

enum status chat_call_arguments(struct chat_evaluator *evaluator, const struct chat_node *list,
                                struct chat_arguments *arguments) {
    *arguments = (struct chat_arguments){0};
    if (!list)
        return STATUS_OK;
    size_t count = 0;
    for (const struct chat_node *node = list; node; node = node->next)
        count++;
    arguments->values = arena_calloc(&evaluator->arena, count, sizeof *arguments->values);
    arguments->keywords = arena_calloc(&evaluator->arena, count, sizeof *arguments->keywords);
    if (!arguments->values || !arguments->keywords)
        return chat_eval_full(evaluator);
    for (const struct chat_node *node = list; node; node = node->next) {
        if (node->kind == CHAT_NODE_KEYWORD) {
            struct chat_keyword *keyword = &arguments->keywords[arguments->keyword_count++];
            keyword->name = node->name;
            TRY(chat_eval_flat_expression(evaluator, node->first, &keyword->value));
        } else {
            TRY(chat_eval_flat_expression(evaluator, node, &arguments->values[arguments->count++]));
        }
    }
    return STATUS_OK;
}

static int find_parameter(const struct chat_signature *signature, struct view name) {
    for (int i = 0; i < signature->count; i++) {
        if (name.length > 0 && view_is(name, signature->parameters[i]))
            return i;
    }
    return -1;
}

enum status chat_call_bind(struct chat_evaluator *evaluator, const struct chat_signature *signature,
                           const struct chat_arguments *arguments, struct chat_value *bound) {
    for (int i = 0; i < CHAT_CALL_PARAMETERS_MAX; i++)
        bound[i] = (struct chat_value){.kind = CHAT_ABSENT};
    if (arguments->count > (size_t)signature->count)
        return chat_eval_fail(evaluator, "%s takes at most %d arguments", signature->name,
                              signature->count);
    for (size_t i = 0; i < arguments->count; i++)
        bound[i] = arguments->values[i];
    for (size_t i = 0; i < arguments->keyword_count; i++) {
        const struct chat_keyword *keyword = &arguments->keywords[i];
        int at = find_parameter(signature, keyword->name);
        if (at < 0 || bound[at].kind != CHAT_ABSENT)
            return chat_eval_fail(evaluator, "%s takes no argument '%.*s'", signature->name,
                                  (int)(keyword->name.length < 60 ? keyword->name.length : 60),
                                  keyword->name.bytes);
        bound[at] = keyword->value;
    }
    for (int i = 0; i < signature->required; i++) {
        if (bound[i].kind == CHAT_ABSENT)
            return chat_eval_fail(evaluator, "%s needs %d arguments", signature->name,
                                  signature->required);
    }
    return STATUS_OK;
}

/* The named argument, marked as used by its index; NULL: not given. */
static const struct chat_value *find_keyword(const struct chat_arguments *arguments,
                                             struct view name) {
    for (size_t i = 0; i < arguments->keyword_count; i++) {
        if (view_equal(arguments->keywords[i].name, name))
            return &arguments->keywords[i].value;
    }
    return NULL;
}

static enum status bind_macro_parameter(struct chat_evaluator *evaluator,
                                        const struct chat_node *parameter, size_t index,
                                        const struct chat_arguments *arguments) {
    struct chat_value value;
    const struct chat_value *named = find_keyword(arguments, parameter->name);
    if (index < arguments->count)
        value = arguments->values[index];
    else if (named)
        value = *named;
    else if (parameter->first)
        TRY(chat_eval_expression(evaluator, parameter->first, &value));
    else
        TRY(chat_access_missing(evaluator, NULL, parameter->name, &value));
    return chat_eval_set_name(evaluator, parameter->name, value);
}

static enum status bind_macro(struct chat_evaluator *evaluator, const struct chat_macro *macro,
                              const struct chat_arguments *arguments) {
    size_t count = 0;
    size_t named = 0;
    for (const struct chat_node *node = macro->parameters; node; node = node->next) {
        named += find_keyword(arguments, node->name) != NULL && count >= arguments->count;
        TRY(bind_macro_parameter(evaluator, node, count++, arguments));
    }
    if (arguments->count > count || named != arguments->keyword_count)
        return chat_eval_fail(evaluator, "macro '%.*s' does not take these arguments",
                              (int)(macro->name.length < 60 ? macro->name.length : 60),
                              macro->name.bytes);
    return STATUS_OK;
}

enum status chat_call_macro(struct chat_evaluator *evaluator, const struct chat_macro *macro,
                            const struct chat_arguments *arguments, struct chat_value caller,
                            struct chat_value *result) {
    struct chat_scope *outer = evaluator->scope;
    const struct chat_string *text;
    TRY(chat_eval_push_scope(evaluator, macro->scope));
    if (caller.kind != CHAT_ABSENT)
        TRY(chat_eval_set_name(evaluator, view_of("caller"), caller));
    TRY(bind_macro(evaluator, macro, arguments));
    TRY(chat_statement_capture(evaluator, macro->body, evaluator->scope, &text));
    evaluator->scope = outer;
    *result = chat_value_string(text);
    return STATUS_OK;
}

enum status chat_call_value(struct chat_evaluator *evaluator, struct chat_value callee,
                            const struct chat_arguments *arguments, struct chat_value *result) {
    if (callee.kind == CHAT_MACRO)
        return chat_call_macro(evaluator, callee.as.macro, arguments,
                               (struct chat_value){.kind = CHAT_ABSENT}, result);
    if (callee.kind == CHAT_FUNCTION)
        return chat_functions_call(evaluator, callee.as.function, arguments, result);
    if (callee.kind == CHAT_METHOD)
        return chat_methods_call(evaluator, callee.as.bound, arguments, result);
    if (callee.kind == CHAT_UNDEFINED)
        return chat_access_fail(evaluator, callee);
    return chat_eval_fail(evaluator, "'%s' object is not callable", chat_value_type_name(callee));
}
