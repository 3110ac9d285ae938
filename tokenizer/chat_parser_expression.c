/* The expression parser: one function a level of precedence, loosest first: conditional, or, and,
 * not, comparison, + -, ~, * / // %, **, unary. Filters and tests bind tighter than all of them. */
#include "tokenizer/chat_parser.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/chat_escape.h"
#include "tokenizer/chat_filters.h"
#include "tokenizer/chat_tests.h"

static enum status parse_or(struct chat_parser *parser, struct chat_node **node);
static enum status parse_unary(struct chat_parser *parser, bool with_filters,
                               struct chat_node **node);
static enum status parse_postfix(struct chat_parser *parser, struct chat_node **node);
static enum status parse_number(struct chat_parser *parser, struct chat_node **node);

/* Put a new node of `kind` over *node. */
static enum status wrap(struct chat_parser *parser, enum chat_node_kind kind,
                        struct chat_node **node) {
    struct chat_node *first = *node;
    TRY(chat_parser_node(parser, kind, node));
    (*node)->first = first;
    return STATUS_OK;
}

static enum status parse_conditional(struct chat_parser *parser, struct chat_node **node) {
    TRY(parse_or(parser, node));
    while (chat_parser_skip_name(parser, "if")) {
        struct chat_node *value = *node;
        TRY(chat_parser_node(parser, CHAT_NODE_CONDITIONAL, node));
        (*node)->second = value;
        TRY(parse_or(parser, &(*node)->first));
        if (chat_parser_skip_name(parser, "else"))
            TRY(chat_parser_expression(parser, true, &(*node)->otherwise));
    }
    return STATUS_OK;
}

enum status chat_parser_expression(struct chat_parser *parser, bool with_conditional,
                                   struct chat_node **node) {
    TRY(chat_parser_enter(parser));
    TRY(with_conditional ? parse_conditional(parser, node) : parse_or(parser, node));
    parser->depth--;
    return STATUS_OK;
}

static bool ends_tuple(const struct chat_parser *parser) {
    return parser->token->kind == CHAT_TOKEN_VARIABLE_END ||
           parser->token->kind == CHAT_TOKEN_BLOCK_END || parser->token->kind == CHAT_TOKEN_END ||
           chat_parser_at_operator(parser, ")") || chat_parser_at_operator(parser, "=");
}

enum status chat_parser_expression_tuple(struct chat_parser *parser, bool with_conditional,
                                         struct chat_node **node) {
    TRY(chat_parser_expression(parser, with_conditional, node));
    if (!chat_parser_at_operator(parser, ","))
        return STATUS_OK;
    struct chat_node *items = *node;
    TRY(chat_parser_node(parser, CHAT_NODE_TUPLE, node));
    (*node)->list = items;
    struct chat_node **place = &items->next;
    while (chat_parser_skip_operator(parser, ",") && !ends_tuple(parser)) {
        TRY(chat_parser_expression(parser, with_conditional, place));
        place = &(*place)->next;
    }
    return STATUS_OK;
}

static enum status parse_and(struct chat_parser *parser, struct chat_node **node);
static enum status parse_not(struct chat_parser *parser, struct chat_node **node);

static enum status parse_or(struct chat_parser *parser, struct chat_node **node) {
    TRY(parse_and(parser, node));
    while (chat_parser_skip_name(parser, "or")) {
        TRY(wrap(parser, CHAT_NODE_OR, node));
        TRY(parse_and(parser, &(*node)->second));
    }
    return STATUS_OK;
}

static enum status parse_and(struct chat_parser *parser, struct chat_node **node) {
    TRY(parse_not(parser, node));
    while (chat_parser_skip_name(parser, "and")) {
        TRY(wrap(parser, CHAT_NODE_AND, node));
        TRY(parse_not(parser, &(*node)->second));
    }
    return STATUS_OK;
}

struct operation_row {
    const char *text;
    enum chat_operation operation;
};

static const struct operation_row *find_operation(const struct chat_parser *parser,
                                                  const struct operation_row *rows) {
    if (parser->token->kind != CHAT_TOKEN_OPERATOR)
        return NULL;
    for (; rows->text; rows++) {
        if (view_is(parser->token->text, rows->text))
            return rows;
    }
    return NULL;
}

/* One of the comparison operators, `in` and `not in` among them. */
static bool skip_comparison(struct chat_parser *parser, enum chat_operation *operation) {
    static const struct operation_row rows[] = {
        {"==", CHAT_EQUAL},  {"!=", CHAT_UNEQUAL},       {"<", CHAT_LESS},  {"<=", CHAT_LESS_EQUAL},
        {">", CHAT_GREATER}, {">=", CHAT_GREATER_EQUAL}, {NULL, CHAT_EQUAL}};
    const struct operation_row *row = find_operation(parser, rows);
    if (row) {
        parser->token++;
        *operation = row->operation;
        return true;
    }
    if (chat_parser_skip_name(parser, "in")) {
        *operation = CHAT_IN;
        return true;
    }
    if (chat_parser_at_name(parser, "not") && parser->token[1].kind == CHAT_TOKEN_NAME &&
        view_is(parser->token[1].text, "in")) {
        parser->token += 2;
        *operation = CHAT_NOT_IN;
        return true;
    }
    return false;
}

/* Left-associative binary operators of one level. */
static enum status parse_binary(struct chat_parser *parser, const struct operation_row *rows,
                                enum status (*operand)(struct chat_parser *, struct chat_node **),
                                struct chat_node **node) {
    TRY(operand(parser, node));
    const struct operation_row *row;
    while ((row = find_operation(parser, rows))) {
        TRY(wrap(parser, CHAT_NODE_BINARY, node));
        (*node)->operation = row->operation;
        parser->token++;
        TRY(operand(parser, &(*node)->second));
    }
    return STATUS_OK;
}

static enum status parse_filtered_unary(struct chat_parser *parser, struct chat_node **node) {
    return parse_unary(parser, true, node);
}

static enum status parse_power(struct chat_parser *parser, struct chat_node **node) {
    static const struct operation_row rows[] = {{"**", CHAT_POWER}, {NULL, CHAT_POWER}};
    return parse_binary(parser, rows, parse_filtered_unary, node);
}

static enum status parse_product(struct chat_parser *parser, struct chat_node **node) {
    static const struct operation_row rows[] = {{"*", CHAT_MULTIPLY},
                                                {"/", CHAT_DIVIDE},
                                                {"//", CHAT_FLOOR_DIVIDE},
                                                {"%", CHAT_MODULO},
                                                {NULL, CHAT_MULTIPLY}};
    return parse_binary(parser, rows, parse_power, node);
}

static enum status parse_concatenation(struct chat_parser *parser, struct chat_node **node) {
    static const struct operation_row rows[] = {{"~", CHAT_CONCATENATE}, {NULL, CHAT_CONCATENATE}};
    return parse_binary(parser, rows, parse_product, node);
}

static enum status parse_sum(struct chat_parser *parser, struct chat_node **node) {
    static const struct operation_row rows[] = {
        {"+", CHAT_ADD}, {"-", CHAT_SUBTRACT}, {NULL, CHAT_ADD}};
    return parse_binary(parser, rows, parse_concatenation, node);
}

static enum status parse_comparison(struct chat_parser *parser, struct chat_node **node) {
    TRY(parse_sum(parser, node));
    struct chat_node *compare = NULL;
    struct chat_node **place = NULL;
    enum chat_operation operation;
    while (skip_comparison(parser, &operation)) {
        if (!compare) {
            TRY(wrap(parser, CHAT_NODE_COMPARE, node));
            compare = *node;
            place = &compare->list;
        }
        TRY(chat_parser_node(parser, CHAT_NODE_OPERAND, place));
        (*place)->operation = operation;
        TRY(parse_sum(parser, &(*place)->first));
        place = &(*place)->next;
    }
    return STATUS_OK;
}

static enum status parse_not(struct chat_parser *parser, struct chat_node **node) {
    if (!chat_parser_at_name(parser, "not"))
        return parse_comparison(parser, node);
    TRY(chat_parser_enter(parser));
    TRY(chat_parser_node(parser, CHAT_NODE_NOT, node));
    parser->token++;
    TRY(parse_not(parser, &(*node)->first));
    parser->depth--;
    return STATUS_OK;
}

/* (a, b, name=c): arguments of a call, filter or test. */
static enum status parse_arguments(struct chat_parser *parser, struct chat_node **list) {
    TRY(chat_parser_expect_operator(parser, "("));
    while (!chat_parser_at_operator(parser, ")")) {
        if (chat_parser_at_operator(parser, "*") || chat_parser_at_operator(parser, "**"))
            return chat_parser_fail(parser, parser->token->line,
                                    "starred arguments are not supported");
        const struct chat_token *after = parser->token + 1;
        if (parser->token->kind == CHAT_TOKEN_NAME && after->kind == CHAT_TOKEN_OPERATOR &&
            view_is(after->text, "=")) {
            TRY(chat_parser_node(parser, CHAT_NODE_KEYWORD, list));
            (*list)->name = parser->token->text;
            parser->token += 2;
            TRY(chat_parser_expression(parser, true, &(*list)->first));
        } else {
            TRY(chat_parser_expression(parser, true, list));
        }
        list = &(*list)->next;
        if (!chat_parser_at_operator(parser, ")"))
            TRY(chat_parser_expect_operator(parser, ","));
    }
    parser->token++;
    return STATUS_OK;
}

static enum status parse_filter(struct chat_parser *parser, struct chat_node **node) {
    TRY(wrap(parser, CHAT_NODE_FILTER, node));
    struct chat_node *filter = *node;
    TRY(chat_parser_expect_name(parser, &filter->name));
    filter->row = chat_filters_find(filter->name);
    if (!filter->row && parser->if_depth == 0)
        return chat_parser_fail(parser, filter->line, "filter '%.*s' is not supported",
                                (int)filter->name.length, filter->name.bytes);
    return chat_parser_at_operator(parser, "(") ? parse_arguments(parser, &filter->list)
                                                : STATUS_OK;
}

/* Whether a test's argument without brackets follows: `x is divisibleby 3`. */
static bool at_bare_argument(const struct chat_parser *parser) {
    static const char *const not_arguments[] = {"else", "or", "and", "is", "if", "in", "not"};
    for (size_t i = 0; i < sizeof not_arguments / sizeof not_arguments[0]; i++) {
        if (chat_parser_at_name(parser, not_arguments[i]))
            return false;
    }
    enum chat_token_kind kind = parser->token->kind;
    return kind == CHAT_TOKEN_NAME || kind == CHAT_TOKEN_STRING || kind == CHAT_TOKEN_INTEGER ||
           kind == CHAT_TOKEN_FLOAT || chat_parser_at_operator(parser, "[") ||
           chat_parser_at_operator(parser, "{");
}

static enum status parse_test(struct chat_parser *parser, struct chat_node **node) {
    bool negated = chat_parser_skip_name(parser, "not");
    TRY(wrap(parser, CHAT_NODE_TEST, node));
    struct chat_node *test = *node;
    TRY(chat_parser_expect_name(parser, &test->name));
    test->row = chat_tests_find(test->name);
    if (!test->row && parser->if_depth == 0)
        return chat_parser_fail(parser, test->line, "test '%.*s' is not supported",
                                (int)test->name.length, test->name.bytes);
    if (chat_parser_at_operator(parser, "("))
        TRY(parse_arguments(parser, &test->list));
    else if (at_bare_argument(parser))
        TRY(chat_parser_expression_unary(parser, &test->list));
    return negated ? wrap(parser, CHAT_NODE_NOT, node) : STATUS_OK;
}

enum status chat_parser_expression_filters(struct chat_parser *parser, bool named,
                                           struct chat_node **node) {
    if (named)
        TRY(parse_filter(parser, node));
    for (;;) {
        if (chat_parser_skip_operator(parser, "|"))
            TRY(parse_filter(parser, node));
        else if (chat_parser_skip_name(parser, "is"))
            TRY(parse_test(parser, node));
        else if (chat_parser_at_operator(parser, "("))
            TRY(parse_postfix(parser, node));
        else
            return STATUS_OK;
    }
}

/* [index] or [start:stop:step], after the opening bracket. */
static enum status parse_subscript(struct chat_parser *parser, struct chat_node **node) {
    struct chat_node *parts[3] = {0};
    int colons = 0;
    while (!chat_parser_at_operator(parser, "]")) {
        if (chat_parser_skip_operator(parser, ":")) {
            if (++colons > 2)
                return chat_parser_expect_operator(parser, "]");
        } else if (parts[colons]) {
            return chat_parser_expect_operator(parser, "]");
        } else {
            TRY(chat_parser_expression(parser, true, &parts[colons]));
        }
    }
    if (colons == 0) {
        if (!parts[0])
            return chat_parser_fail(parser, parser->token->line, "expected an index, got ']'");
        TRY(wrap(parser, CHAT_NODE_ITEM, node));
        (*node)->second = parts[0];
    } else {
        TRY(wrap(parser, CHAT_NODE_SLICE, node));
        struct chat_node **place = &(*node)->list;
        for (int i = 0; i < 3; i++) {
            if (!parts[i]) {
                TRY(chat_parser_node(parser, CHAT_NODE_CONSTANT, &parts[i]));
                parts[i]->constant = chat_value_none();
            }
            *place = parts[i];
            place = &parts[i]->next;
        }
    }
    parser->token++;
    return STATUS_OK;
}

/* `.name`, `.0`, `[…]` and calls after a value. */
static enum status parse_postfix(struct chat_parser *parser, struct chat_node **node) {
    for (;;) {
        if (chat_parser_skip_operator(parser, ".")) {
            bool numbered = parser->token->kind == CHAT_TOKEN_INTEGER; /* x.0 is x[0] */
            TRY(wrap(parser, numbered ? CHAT_NODE_ITEM : CHAT_NODE_ATTRIBUTE, node));
            if (numbered) {
                TRY(parse_number(parser, &(*node)->second));
                continue;
            }
            TRY(chat_parser_expect_name(parser, &(*node)->name));
        } else if (chat_parser_skip_operator(parser, "[")) {
            TRY(parse_subscript(parser, node));
        } else if (chat_parser_at_operator(parser, "(")) {
            TRY(wrap(parser, CHAT_NODE_CALL, node));
            TRY(parse_arguments(parser, &(*node)->list));
        } else {
            return STATUS_OK;
        }
    }
}

static enum status parse_string(struct chat_parser *parser, struct chat_node **node) {
    TRY(chat_parser_node(parser, CHAT_NODE_CONSTANT, node));
    struct view text;
    TRY(chat_escape_resolve(parser->token++, parser->arena, &text, parser->error));
    if (parser->token->kind == CHAT_TOKEN_STRING) { /* neighbours are one string */
        const struct chat_string *left = chat_string_borrow(parser->arena, text, ORIGIN_TEMPLATE);
        struct chat_string_builder builder;
        chat_string_builder_init(&builder, parser->arena);
        if (left)
            chat_string_builder_append(&builder, text, ORIGIN_TEMPLATE);
        while (parser->token->kind == CHAT_TOKEN_STRING) {
            TRY(chat_escape_resolve(parser->token++, parser->arena, &text, parser->error));
            chat_string_builder_append(&builder, text, ORIGIN_TEMPLATE);
        }
        text = (struct view){builder.bytes, builder.length};
        if (builder.failed || !left)
            return error_set(parser->error, STATUS_OVER_LIMIT, "chat template is too large");
    }
    const struct chat_string *string = chat_string_borrow(parser->arena, text, ORIGIN_TEMPLATE);
    if (!string)
        return error_set(parser->error, STATUS_OVER_LIMIT, "chat template is too large");
    (*node)->constant = chat_value_string(string);
    return STATUS_OK;
}

/* Digits with single underscores between. */
static enum status parse_number(struct chat_parser *parser, struct chat_node **node) {
    TRY(chat_parser_node(parser, CHAT_NODE_CONSTANT, node));
    const struct chat_token *token = parser->token++;
    char digits[64];
    size_t length = 0;
    for (size_t i = 0; i < token->text.length; i++) {
        if (token->text.bytes[i] == '_')
            continue;
        if (length + 1 >= sizeof digits)
            return chat_parser_fail(parser, token->line, "number is too long");
        digits[length++] = token->text.bytes[i];
    }
    digits[length] = '\0';
    if (token->kind == CHAT_TOKEN_FLOAT) {
        (*node)->constant = chat_value_float(strtod(digits, NULL));
        return STATUS_OK;
    }
    if (length > 18)
        return chat_parser_fail(parser, token->line, "integer is too large");
    (*node)->constant = chat_value_integer(strtoll(digits, NULL, 10));
    return STATUS_OK;
}

static enum status parse_name(struct chat_parser *parser, struct chat_node **node) {
    static const struct {
        const char *name;
        struct chat_value value;
    } constants[] = {
        {"true", {CHAT_BOOL, {.boolean = true}}},
        {"True", {CHAT_BOOL, {.boolean = true}}},
        {"false", {CHAT_BOOL, {.boolean = false}}},
        {"False", {CHAT_BOOL, {.boolean = false}}},
        {"none", {CHAT_NONE, {0}}},
        {"None", {CHAT_NONE, {0}}},
    };
    TRY(chat_parser_node(parser, CHAT_NODE_NAME, node));
    TRY(chat_parser_expect_name(parser, &(*node)->name));
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        if (view_is((*node)->name, constants[i].name)) {
            (*node)->kind = CHAT_NODE_CONSTANT;
            (*node)->constant = constants[i].value;
        }
    }
    return STATUS_OK;
}

/* (…): nothing is the empty tuple. */
static enum status parse_brackets(struct chat_parser *parser, struct chat_node **node) {
    parser->token++;
    if (chat_parser_at_operator(parser, ")"))
        TRY(chat_parser_node(parser, CHAT_NODE_TUPLE, node));
    else
        TRY(chat_parser_expression_tuple(parser, true, node));
    return chat_parser_expect_operator(parser, ")");
}

/* [a, b] and {a: b, c: d}: items in a row, keys before their values. */
static enum status parse_items(struct chat_parser *parser, enum chat_node_kind kind,
                               const char *close, struct chat_node **node) {
    TRY(chat_parser_node(parser, kind, node));
    struct chat_node **place = &(*node)->list;
    parser->token++;
    while (!chat_parser_at_operator(parser, close)) {
        TRY(chat_parser_expression(parser, true, place));
        place = &(*place)->next;
        if (kind == CHAT_NODE_DICT) {
            TRY(chat_parser_expect_operator(parser, ":"));
            TRY(chat_parser_expression(parser, true, place));
            place = &(*place)->next;
        }
        if (!chat_parser_at_operator(parser, close))
            TRY(chat_parser_expect_operator(parser, ","));
    }
    parser->token++;
    return STATUS_OK;
}

static enum status parse_primary(struct chat_parser *parser, struct chat_node **node) {
    if (parser->token->kind == CHAT_TOKEN_STRING)
        return parse_string(parser, node);
    if (parser->token->kind == CHAT_TOKEN_INTEGER || parser->token->kind == CHAT_TOKEN_FLOAT)
        return parse_number(parser, node);
    if (chat_parser_at_operator(parser, "("))
        return parse_brackets(parser, node);
    if (chat_parser_at_operator(parser, "["))
        return parse_items(parser, CHAT_NODE_LIST, "]", node);
    if (chat_parser_at_operator(parser, "{"))
        return parse_items(parser, CHAT_NODE_DICT, "}", node);
    return parse_name(parser, node);
}

enum status chat_parser_expression_unary(struct chat_parser *parser, struct chat_node **node) {
    TRY(parse_primary(parser, node));
    return parse_postfix(parser, node);
}

/* A sign binds looser than `.x`, `[x]` and calls, and tighter than the filters after it. */
static enum status parse_unary(struct chat_parser *parser, bool with_filters,
                               struct chat_node **node) {
    bool negative = chat_parser_at_operator(parser, "-");
    if (negative || chat_parser_at_operator(parser, "+")) {
        TRY(chat_parser_enter(parser));
        TRY(chat_parser_node(parser, negative ? CHAT_NODE_NEGATE : CHAT_NODE_PLUS, node));
        parser->token++;
        TRY(parse_unary(parser, false, &(*node)->first));
        parser->depth--;
    } else {
        TRY(parse_primary(parser, node));
    }
    TRY(parse_postfix(parser, node));
    return with_filters ? chat_parser_expression_filters(parser, false, node) : STATUS_OK;
}
