/* The statement parser: a table of tags, one small function each. It recurses for nested statements
 * and expressions only, and counts how deep it is. */
#include "tokenizer/chat_parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tokenizer/chat_lexer.h"

enum status chat_parser_fail(const struct chat_parser *parser, int line, const char *format, ...) {
    char reason[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return error_set(parser->error, STATUS_UNSUPPORTED, "chat template line %d: %s", line, reason);
}

enum status chat_parser_node(struct chat_parser *parser, enum chat_node_kind kind,
                             struct chat_node **node) {
    *node = arena_calloc(parser->arena, 1, sizeof **node);
    if (!*node)
        return error_set(parser->error, STATUS_OVER_LIMIT, "chat template is too large");
    (*node)->kind = kind;
    (*node)->line = parser->token->line;
    return STATUS_OK;
}

bool chat_parser_at_operator(const struct chat_parser *parser, const char *text) {
    return parser->token->kind == CHAT_TOKEN_OPERATOR && view_is(parser->token->text, text);
}

bool chat_parser_at_name(const struct chat_parser *parser, const char *name) {
    return parser->token->kind == CHAT_TOKEN_NAME && view_is(parser->token->text, name);
}

bool chat_parser_skip_operator(struct chat_parser *parser, const char *text) {
    bool there = chat_parser_at_operator(parser, text);
    parser->token += there;
    return there;
}

bool chat_parser_skip_name(struct chat_parser *parser, const char *name) {
    bool there = chat_parser_at_name(parser, name);
    parser->token += there;
    return there;
}

/* "expected X, got Y" */
static enum status fail_expected(const struct chat_parser *parser, const char *expected) {
    const struct chat_token *token = parser->token;
    switch (token->kind) {
    case CHAT_TOKEN_END:
        return chat_parser_fail(parser, token->line, "expected %s, got the end of the template",
                                expected);
    case CHAT_TOKEN_DATA:
        return chat_parser_fail(parser, token->line, "expected %s, got text", expected);
    case CHAT_TOKEN_VARIABLE_END:
    case CHAT_TOKEN_BLOCK_END:
        return chat_parser_fail(parser, token->line, "expected %s, got the end of the tag",
                                expected);
    case CHAT_TOKEN_VARIABLE_BEGIN:
    case CHAT_TOKEN_BLOCK_BEGIN:
    case CHAT_TOKEN_NAME:
    case CHAT_TOKEN_STRING:
    case CHAT_TOKEN_INTEGER:
    case CHAT_TOKEN_FLOAT:
    case CHAT_TOKEN_OPERATOR:
        break;
    }
    return chat_parser_fail(parser, token->line, "expected %s, got '%.*s'", expected,
                            (int)(token->text.length < 60 ? token->text.length : 60),
                            token->text.bytes);
}

static enum status expect_kind(struct chat_parser *parser, enum chat_token_kind kind,
                               const char *what) {
    if (parser->token->kind != kind)
        return fail_expected(parser, what);
    parser->token++;
    return STATUS_OK;
}

enum status chat_parser_expect_operator(struct chat_parser *parser, const char *text) {
    char expected[16];
    snprintf(expected, sizeof expected, "'%s'", text);
    return chat_parser_skip_operator(parser, text) ? STATUS_OK : fail_expected(parser, expected);
}

enum status chat_parser_expect_name(struct chat_parser *parser, struct view *name) {
    *name = parser->token->text;
    return expect_kind(parser, CHAT_TOKEN_NAME, "a name");
}

enum status chat_parser_enter(struct chat_parser *parser) {
    if (parser->depth >= CHAT_PARSER_DEPTH_MAX)
        return chat_parser_fail(parser, parser->token->line, "nested more than %d levels deep",
                                CHAT_PARSER_DEPTH_MAX);
    parser->depth++;
    return STATUS_OK;
}

static enum status expect_block_end(struct chat_parser *parser) {
    return expect_kind(parser, CHAT_TOKEN_BLOCK_END, "the end of the tag");
}

static enum status parse_statements(struct chat_parser *parser, const char *const *ends,
                                    struct chat_node **body);

/* A body up to `{% end %}`; the tag before it is still open. */
static enum status parse_body(struct chat_parser *parser, const char *end,
                              struct chat_node **body) {
    TRY(expect_block_end(parser));
    const char *const ends[] = {end, NULL};
    TRY(parse_statements(parser, ends, body));
    parser->token++;
    return STATUS_OK;
}

static enum status parse_if(struct chat_parser *parser, struct chat_node **node) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    parser->if_depth++;
    struct chat_node **place = node;
    do { /* `elif` is an `if` in the otherwise branch */
        TRY(chat_parser_node(parser, CHAT_NODE_IF, place));
        struct chat_node *branch = *place;
        TRY(chat_parser_expression_tuple(parser, false, &branch->first));
        TRY(expect_block_end(parser));
        TRY(parse_statements(parser, ends, &branch->body));
        place = &branch->otherwise;
    } while (chat_parser_skip_name(parser, "elif"));
    if (chat_parser_skip_name(parser, "else"))
        TRY(parse_body(parser, "endif", place));
    else
        parser->token++;
    parser->if_depth--;
    return STATUS_OK;
}

static enum status parse_target(struct chat_parser *parser, bool with_attribute,
                                struct chat_node **node);

static enum status parse_target_item(struct chat_parser *parser, bool with_attribute,
                                     struct chat_node **node) {
    if (chat_parser_skip_operator(parser, "(")) {
        TRY(chat_parser_enter(parser));
        TRY(parse_target(parser, false, node));
        parser->depth--;
        return chat_parser_expect_operator(parser, ")");
    }
    struct chat_node *name;
    TRY(chat_parser_node(parser, CHAT_NODE_NAME, &name));
    TRY(chat_parser_expect_name(parser, &name->name));
    *node = name;
    if (with_attribute && chat_parser_skip_operator(parser, ".")) {
        TRY(chat_parser_node(parser, CHAT_NODE_ATTRIBUTE, node));
        (*node)->first = name;
        TRY(chat_parser_expect_name(parser, &(*node)->name));
    }
    return STATUS_OK;
}

/* What is assigned to: a name, a namespace's attribute, or several with commas. */
static enum status parse_target(struct chat_parser *parser, bool with_attribute,
                                struct chat_node **node) {
    TRY(parse_target_item(parser, with_attribute, node));
    if (!chat_parser_at_operator(parser, ","))
        return STATUS_OK;
    struct chat_node *tuple;
    TRY(chat_parser_node(parser, CHAT_NODE_TUPLE, &tuple));
    tuple->list = *node;
    struct chat_node **place = &tuple->list->next;
    while (chat_parser_skip_operator(parser, ",")) {
        if (parser->token->kind != CHAT_TOKEN_NAME && !chat_parser_at_operator(parser, "("))
            break;
        TRY(parse_target_item(parser, with_attribute, place));
        place = &(*place)->next;
    }
    *node = tuple;
    return STATUS_OK;
}

static enum status parse_for(struct chat_parser *parser, struct chat_node **node) {
    static const char *const ends[] = {"else", "endfor", NULL};
    TRY(chat_parser_node(parser, CHAT_NODE_FOR, node));
    TRY(parse_target(parser, false, &(*node)->target));
    if (!chat_parser_skip_name(parser, "in"))
        return fail_expected(parser, "'in'");
    TRY(chat_parser_expression_tuple(parser, false, &(*node)->first));
    if (chat_parser_skip_name(parser, "if"))
        TRY(chat_parser_expression(parser, true, &(*node)->second));
    if (chat_parser_at_name(parser, "recursive"))
        return chat_parser_fail(parser, parser->token->line,
                                "recursive for loops are not supported");
    TRY(expect_block_end(parser));
    parser->loop_depth++;
    TRY(parse_statements(parser, ends, &(*node)->body));
    parser->loop_depth--;
    if (chat_parser_skip_name(parser, "else"))
        return parse_body(parser, "endfor", &(*node)->otherwise);
    parser->token++;
    return STATUS_OK;
}

/* The text a block gathers, with the filters written in its tag. */
static enum status parse_captured(struct chat_parser *parser, bool named, struct chat_node **node) {
    TRY(chat_parser_node(parser, CHAT_NODE_CAPTURED, node));
    return chat_parser_expression_filters(parser, named, node);
}

static enum status parse_set(struct chat_parser *parser, struct chat_node **node) {
    TRY(chat_parser_node(parser, CHAT_NODE_SET, node));
    TRY(parse_target(parser, true, &(*node)->target));
    if (chat_parser_skip_operator(parser, "="))
        return chat_parser_expression_tuple(parser, true, &(*node)->first);
    (*node)->kind = CHAT_NODE_SET_BLOCK;
    TRY(parse_captured(parser, false, &(*node)->first));
    return parse_body(parser, "endset", &(*node)->body);
}

static enum status parse_with(struct chat_parser *parser, struct chat_node **node) {
    TRY(chat_parser_node(parser, CHAT_NODE_WITH, node));
    struct chat_node **place = &(*node)->list;
    while (parser->token->kind != CHAT_TOKEN_BLOCK_END) {
        if ((*node)->list)
            TRY(chat_parser_expect_operator(parser, ","));
        TRY(chat_parser_node(parser, CHAT_NODE_SET, place));
        TRY(parse_target_item(parser, false, &(*place)->target));
        TRY(chat_parser_expect_operator(parser, "="));
        TRY(chat_parser_expression(parser, true, &(*place)->first));
        place = &(*place)->next;
    }
    return parse_body(parser, "endwith", &(*node)->body);
}

/* (a, b=1): parameters with their defaults. */
static enum status parse_parameters(struct chat_parser *parser, struct chat_node **list) {
    TRY(chat_parser_expect_operator(parser, "("));
    while (!chat_parser_at_operator(parser, ")")) {
        if (chat_parser_at_operator(parser, "*") || chat_parser_at_operator(parser, "**"))
            return chat_parser_fail(parser, parser->token->line,
                                    "starred parameters are not supported");
        TRY(chat_parser_node(parser, CHAT_NODE_KEYWORD, list));
        TRY(chat_parser_expect_name(parser, &(*list)->name));
        if (chat_parser_skip_operator(parser, "="))
            TRY(chat_parser_expression(parser, true, &(*list)->first));
        list = &(*list)->next;
        if (!chat_parser_at_operator(parser, ")"))
            TRY(chat_parser_expect_operator(parser, ","));
    }
    parser->token++;
    return STATUS_OK;
}

/* A body that runs elsewhere: no break out of it into a loop around it. */
static enum status parse_detached_body(struct chat_parser *parser, const char *end,
                                       struct chat_node **body) {
    int loop_depth = parser->loop_depth;
    parser->loop_depth = 0;
    TRY(parse_body(parser, end, body));
    parser->loop_depth = loop_depth;
    return STATUS_OK;
}

static enum status parse_macro(struct chat_parser *parser, struct chat_node **node) {
    TRY(chat_parser_node(parser, CHAT_NODE_MACRO, node));
    TRY(chat_parser_expect_name(parser, &(*node)->name));
    TRY(parse_parameters(parser, &(*node)->list));
    return parse_detached_body(parser, "endmacro", &(*node)->body);
}

static enum status parse_call_block(struct chat_parser *parser, struct chat_node **node) {
    TRY(chat_parser_node(parser, CHAT_NODE_CALL_BLOCK, node));
    if (chat_parser_at_operator(parser, "("))
        TRY(parse_parameters(parser, &(*node)->list));
    TRY(chat_parser_expression(parser, true, &(*node)->first));
    if ((*node)->first->kind != CHAT_NODE_CALL)
        return fail_expected(parser, "a call");
    return parse_detached_body(parser, "endcall", &(*node)->body);
}

static enum status parse_filter_block(struct chat_parser *parser, struct chat_node **node) {
    TRY(chat_parser_node(parser, CHAT_NODE_FILTER_BLOCK, node));
    TRY(parse_captured(parser, true, &(*node)->first));
    return parse_body(parser, "endfilter", &(*node)->body);
}

static enum status parse_generation(struct chat_parser *parser, struct chat_node **node) {
    TRY(chat_parser_node(parser, CHAT_NODE_SCOPE, node));
    return parse_detached_body(parser, "endgeneration", &(*node)->body);
}

static enum status parse_jump(struct chat_parser *parser, enum chat_node_kind kind,
                              struct chat_node **node) {
    if (parser->loop_depth == 0)
        return chat_parser_fail(parser, parser->token->line, "%s outside of a loop",
                                kind == CHAT_NODE_BREAK ? "break" : "continue");
    return chat_parser_node(parser, kind, node);
}

static enum status parse_break(struct chat_parser *parser, struct chat_node **node) {
    return parse_jump(parser, CHAT_NODE_BREAK, node);
}

static enum status parse_continue(struct chat_parser *parser, struct chat_node **node) {
    return parse_jump(parser, CHAT_NODE_CONTINUE, node);
}

/* A {% tag %}: opened, up to the end of the tag that closes the statement. */
static enum status parse_tag(struct chat_parser *parser, struct chat_node **node) {
    static const struct {
        const char *name;
        enum status (*parse)(struct chat_parser *parser, struct chat_node **node);
    } tags[] = {
        {"if", parse_if},
        {"for", parse_for},
        {"set", parse_set},
        {"with", parse_with},
        {"macro", parse_macro},
        {"call", parse_call_block},
        {"break", parse_break},
        {"continue", parse_continue},
        {"filter", parse_filter_block},
        {"generation", parse_generation},
    };
    const struct chat_token *name = parser->token;
    if (name->kind != CHAT_TOKEN_NAME)
        return fail_expected(parser, "a statement's name");
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (!view_is(name->text, tags[i].name))
            continue;
        parser->token++;
        TRY(chat_parser_enter(parser));
        TRY(tags[i].parse(parser, node));
        parser->depth--;
        return expect_block_end(parser);
    }
    return chat_parser_fail(parser, name->line, "{%% %.*s %%} is not supported here",
                            (int)(name->text.length < 60 ? name->text.length : 60),
                            name->text.bytes);
}

static bool at_one_of(const struct chat_parser *parser, const char *const *names) {
    for (size_t i = 0; names && names[i]; i++) {
        if (chat_parser_at_name(parser, names[i]))
            return true;
    }
    return false;
}

static enum status parse_data(struct chat_parser *parser, struct chat_node **node) {
    TRY(chat_parser_node(parser, CHAT_NODE_DATA, node));
    struct chat_string *string =
        chat_string_borrow(parser->arena, parser->token->text, ORIGIN_TEMPLATE);
    if (!string)
        return error_set(parser->error, STATUS_OVER_LIMIT, "chat template is too large");
    (*node)->constant = chat_value_string(string);
    parser->token++;
    return STATUS_OK;
}

/* Statements up to a tag that is one of `ends` (NULL: the end); stops at the name of that tag. */
static enum status parse_statements(struct chat_parser *parser, const char *const *ends,
                                    struct chat_node **body) {
    for (;; body = *body ? &(*body)->next : body) {
        if (parser->token->kind == CHAT_TOKEN_DATA) {
            TRY(parse_data(parser, body));
        } else if (parser->token->kind == CHAT_TOKEN_VARIABLE_BEGIN) {
            parser->token++;
            TRY(chat_parser_node(parser, CHAT_NODE_OUTPUT, body));
            TRY(chat_parser_expression_tuple(parser, true, &(*body)->first));
            TRY(expect_kind(parser, CHAT_TOKEN_VARIABLE_END, "'}}'"));
        } else if (parser->token->kind == CHAT_TOKEN_BLOCK_BEGIN) {
            parser->token++;
            if (at_one_of(parser, ends))
                return STATUS_OK;
            TRY(parse_tag(parser, body));
        } else if (!ends) {
            return STATUS_OK;
        } else {
            while (ends[1]) /* the last one is the tag that must come */
                ends++;
            return chat_parser_fail(parser, parser->token->line,
                                    "the template ends before {%% %s %%}", ends[0]);
        }
    }
}

enum status chat_parser_run(struct view source, struct arena *arena, struct chat_node **body,
                            struct error *error) {
    struct chat_token *tokens;
    TRY(chat_lexer_run(source, arena, &tokens, error));
    struct chat_parser parser = {.token = tokens, .arena = arena, .error = error};
    *body = NULL;
    return parse_statements(&parser, NULL, body);
}
