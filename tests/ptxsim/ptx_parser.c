/* The grammar of PTX modules and statements, by recursive descent. Debug sections are skipped. */
#include "tests/ptxsim/ptx_parser.h"

#include <stdlib.h>
#include <string.h>

enum status ptx_parser_fail(struct ptx_parser *parser, const char *wanted) {
    const struct ptx_token *token = &parser->lexer.token;
    if (token->kind == PTX_TOKEN_END)
        return error_set(parser->error, STATUS_CORRUPT, "line %u: the text ends, expected %s",
                         token->line, wanted);
    const int length = token->text.length > 60 ? 60 : (int)token->text.length;
    return error_set(parser->error, STATUS_CORRUPT, "line %u: expected %s, got '%.*s'", token->line,
                     wanted, length, token->text.bytes);
}

bool ptx_parser_at_mark(const struct ptx_parser *parser, char mark) {
    return parser->lexer.token.kind == PTX_TOKEN_MARK && *parser->lexer.token.text.bytes == mark;
}

bool ptx_parser_at_directive(const struct ptx_parser *parser, const char *name) {
    return parser->lexer.token.kind == PTX_TOKEN_DIRECTIVE &&
           view_is(parser->lexer.token.text, name);
}

enum status ptx_parser_next(struct ptx_parser *parser) {
    return ptx_lexer_next(&parser->lexer, parser->error);
}

enum status ptx_parser_expect(struct ptx_parser *parser, char mark) {
    const char wanted[] = {'\'', mark, '\'', '\0'};
    if (!ptx_parser_at_mark(parser, mark))
        return ptx_parser_fail(parser, wanted);
    return ptx_parser_next(parser);
}

enum status ptx_parser_word(struct ptx_parser *parser, struct view *word) {
    if (parser->lexer.token.kind != PTX_TOKEN_WORD)
        return ptx_parser_fail(parser, "a name");
    *word = parser->lexer.token.text;
    return ptx_parser_next(parser);
}

enum status ptx_parser_integer(struct ptx_parser *parser, uint64_t *value) {
    const bool negative = ptx_parser_at_mark(parser, '-');
    if (negative)
        TRY(ptx_parser_next(parser));
    if (parser->lexer.token.kind != PTX_TOKEN_INTEGER)
        return ptx_parser_fail(parser, "an integer");
    *value = negative ? 0 - parser->lexer.token.value : parser->lexer.token.value;
    return ptx_parser_next(parser);
}

void *ptx_parser_alloc(struct ptx_parser *parser, size_t count, size_t size) {
    return arena_calloc(parser->syntax->arena, count, size);
}

/* ---- operands ---- */
static enum status read_operand(struct ptx_parser *parser, struct ptx_operand *operand, int depth);

static enum status read_items(struct ptx_parser *parser, char close, struct ptx_operand *parent,
                              int depth) {
    struct ptx_operand items[PTX_PARSER_LIST_MAX];
    uint32_t count = 0;
    TRY(ptx_parser_next(parser));
    while (!ptx_parser_at_mark(parser, close)) {
        if (count == PTX_PARSER_LIST_MAX)
            return ptx_parser_fail(parser, "a shorter list");
        if (count > 0)
            TRY(ptx_parser_expect(parser, ','));
        TRY(read_operand(parser, &items[count++], depth + 1));
    }
    parent->items = ptx_parser_alloc(parser, count + 1, sizeof items[0]);
    if (!parent->items)
        return error_no_memory(parser->error, "PTX operands");
    memcpy(parent->items, items, count * sizeof items[0]);
    parent->item_count = count;
    return ptx_parser_next(parser);
}

static enum status read_offset(struct ptx_parser *parser, struct ptx_operand *operand) {
    if (ptx_parser_at_mark(parser, '+'))
        TRY(ptx_parser_next(parser));
    else if (!ptx_parser_at_mark(parser, '-'))
        return STATUS_OK;
    return ptx_parser_integer(parser, &operand->bits);
}

static enum status read_address(struct ptx_parser *parser, struct ptx_operand *operand) {
    operand->kind = PTX_OPERAND_ADDRESS;
    TRY(ptx_parser_next(parser));
    if (parser->lexer.token.kind == PTX_TOKEN_WORD) {
        TRY(ptx_parser_word(parser, &operand->name));
        TRY(read_offset(parser, operand));
    } else {
        TRY(ptx_parser_integer(parser, &operand->bits));
    }
    return ptx_parser_expect(parser, ']');
}

static enum status read_number(struct ptx_parser *parser, struct ptx_operand *operand) {
    const bool negative = ptx_parser_at_mark(parser, '-');
    if (negative)
        TRY(ptx_parser_next(parser));
    const struct ptx_token token = parser->lexer.token;
    const uint64_t sign = negative ? 1 : 0;
    switch ((int)token.kind) {
    case PTX_TOKEN_INTEGER:
        operand->kind = PTX_OPERAND_INTEGER;
        operand->bits = negative ? 0 - token.value : token.value;
        break;
    case PTX_TOKEN_F32:
        operand->kind = PTX_OPERAND_F32;
        operand->bits = token.value ^ sign << 31;
        break;
    case PTX_TOKEN_F64:
    case PTX_TOKEN_DECIMAL:
        operand->kind = token.kind == PTX_TOKEN_F64 ? PTX_OPERAND_F64 : PTX_OPERAND_DECIMAL;
        operand->bits = token.value ^ sign << 63;
        break;
    default:
        return ptx_parser_fail(parser, "an operand");
    }
    return ptx_parser_next(parser);
}

static enum status read_operand(struct ptx_parser *parser, struct ptx_operand *operand, int depth) {
    *operand = (struct ptx_operand){0};
    if (depth > 2)
        return ptx_parser_fail(parser, "operands nested less deeply");
    if (ptx_parser_at_mark(parser, '{')) {
        operand->kind = PTX_OPERAND_VECTOR;
        return read_items(parser, '}', operand, depth);
    }
    if (ptx_parser_at_mark(parser, '(')) {
        operand->kind = PTX_OPERAND_LIST;
        return read_items(parser, ')', operand, depth);
    }
    if (ptx_parser_at_mark(parser, '['))
        return read_address(parser, operand);
    if (ptx_parser_at_mark(parser, '!')) {
        operand->negated = true;
        TRY(ptx_parser_next(parser));
    }
    if (parser->lexer.token.kind != PTX_TOKEN_WORD)
        return read_number(parser, operand);
    operand->kind = PTX_OPERAND_NAME;
    TRY(ptx_parser_word(parser, &operand->name));
    if (ptx_parser_at_mark(parser, '|')) {
        TRY(ptx_parser_next(parser));
        return ptx_parser_word(parser, &operand->second);
    }
    return read_offset(parser, operand);
}

/* ---- statements ---- */
struct body {
    struct ptx_statement *statements; /* malloc'd while it grows */
    uint32_t count, capacity;
    uint32_t *parents;
    uint32_t scope_count, scope_capacity;
    struct ptx_variable **tail;
};

static enum status grow(void **items, uint32_t *capacity, size_t size, struct error *error) {
    const uint32_t more = *capacity ? *capacity * 2 : 64;
    void *grown = realloc(*items, more * size);
    if (!grown)
        return error_no_memory(error, "PTX statements");
    *items = grown;
    *capacity = more;
    return STATUS_OK;
}

static enum status push_statement(struct ptx_parser *parser, struct body *body,
                                  const struct ptx_statement *statement) {
    if (body->count == body->capacity)
        TRY(grow((void **)&body->statements, &body->capacity, sizeof *body->statements,
                 parser->error));
    body->statements[body->count++] = *statement;
    return STATUS_OK;
}

static enum status push_scope(struct ptx_parser *parser, struct body *body, uint32_t parent,
                              uint32_t *scope) {
    if (body->scope_count == body->scope_capacity)
        TRY(grow((void **)&body->parents, &body->scope_capacity, sizeof *body->parents,
                 parser->error));
    *scope = body->scope_count;
    body->parents[body->scope_count++] = parent;
    return STATUS_OK;
}

/* Operands up to and with the semicolon. */
static enum status read_operands(struct ptx_parser *parser, struct ptx_statement *statement) {
    struct ptx_operand list[PTX_PARSER_LIST_MAX];
    uint32_t count = 0;
    while (!ptx_parser_at_mark(parser, ';')) {
        if (count == PTX_PARSER_LIST_MAX)
            return ptx_parser_fail(parser, "fewer operands");
        if (count > 0)
            TRY(ptx_parser_expect(parser, ','));
        TRY(read_operand(parser, &list[count++], 0));
    }
    statement->operands = ptx_parser_alloc(parser, count + 1, sizeof list[0]);
    if (!statement->operands)
        return error_no_memory(parser->error, "PTX operands");
    memcpy(statement->operands, list, count * sizeof list[0]);
    statement->operand_count = count;
    return ptx_parser_next(parser);
}

/* What follows "name:"; lists of branch targets belong to the label. */
static enum status read_label(struct ptx_parser *parser, struct body *body,
                              struct ptx_statement *statement) {
    TRY(ptx_parser_next(parser));
    if (ptx_parser_at_directive(parser, ".branchtargets")) {
        statement->is_target_list = true;
        TRY(ptx_parser_next(parser));
        TRY(read_operands(parser, statement));
    } else if (ptx_parser_at_directive(parser, ".callprototype")) {
        while (!ptx_parser_at_mark(parser, ';')) {
            if (parser->lexer.token.kind == PTX_TOKEN_END)
                return ptx_parser_fail(parser, "';'");
            TRY(ptx_parser_next(parser));
        }
        TRY(ptx_parser_next(parser));
    }
    return push_statement(parser, body, statement);
}

static enum status read_statement(struct ptx_parser *parser, struct body *body, uint32_t scope) {
    struct ptx_statement statement = {.line = parser->lexer.token.line, .scope = scope};
    if (ptx_parser_at_mark(parser, '@')) {
        TRY(ptx_parser_next(parser));
        statement.guard_negated = ptx_parser_at_mark(parser, '!');
        if (statement.guard_negated)
            TRY(ptx_parser_next(parser));
        TRY(ptx_parser_word(parser, &statement.guard));
    }
    struct view word = {0};
    TRY(ptx_parser_word(parser, &word));
    if (ptx_parser_at_mark(parser, ':') && statement.guard.length == 0) {
        statement.label = word;
        return read_label(parser, body, &statement);
    }
    statement.opcode = word;
    TRY(read_operands(parser, &statement));
    return push_statement(parser, body, &statement);
}

static enum status read_directive(struct ptx_parser *parser, struct body *body, uint32_t scope) {
    if (ptx_declarations_at(parser))
        return ptx_declarations_read(parser, scope, false, &body->tail);
    if (ptx_parser_at_directive(parser, ".loc"))
        return ptx_lexer_skip_line(&parser->lexer, parser->error);
    if (!ptx_parser_at_directive(parser, ".pragma"))
        return ptx_parser_fail(parser, "a declaration or an instruction");
    TRY(ptx_parser_next(parser));
    TRY(ptx_parser_next(parser));
    return ptx_parser_expect(parser, ';');
}

enum { SCOPE_DEPTH_MAX = 32 };

static enum status read_body(struct ptx_parser *parser, struct body *body) {
    uint32_t scopes[SCOPE_DEPTH_MAX];
    int depth = 0;
    TRY(push_scope(parser, body, 0, &scopes[0]));
    TRY(ptx_parser_expect(parser, '{'));
    for (;;) {
        if (ptx_parser_at_mark(parser, '{')) {
            if (++depth == SCOPE_DEPTH_MAX)
                return ptx_parser_fail(parser, "scopes nested less deeply");
            TRY(push_scope(parser, body, scopes[depth - 1], &scopes[depth]));
            TRY(ptx_parser_next(parser));
        } else if (ptx_parser_at_mark(parser, '}')) {
            TRY(ptx_parser_next(parser));
            if (depth-- == 0)
                return STATUS_OK;
        } else if (ptx_parser_at_mark(parser, ';')) {
            TRY(ptx_parser_next(parser));
        } else if (parser->lexer.token.kind == PTX_TOKEN_DIRECTIVE) {
            TRY(read_directive(parser, body, scopes[depth]));
        } else {
            TRY(read_statement(parser, body, scopes[depth]));
        }
    }
}

static enum status keep_body(struct ptx_parser *parser, const struct body *body,
                             struct ptx_function *function) {
    function->statements = ptx_parser_alloc(parser, body->count + 1, sizeof *function->statements);
    function->scope_parents =
        ptx_parser_alloc(parser, body->scope_count, sizeof *function->scope_parents);
    if (!function->statements || !function->scope_parents)
        return error_no_memory(parser->error, "PTX function");
    if (body->count > 0)
        memcpy(function->statements, body->statements, body->count * sizeof *body->statements);
    memcpy(function->scope_parents, body->parents, body->scope_count * sizeof *body->parents);
    function->statement_count = body->count;
    function->scope_count = body->scope_count;
    function->has_body = true;
    return STATUS_OK;
}

static enum status read_function_body(struct ptx_parser *parser, struct ptx_function *function) {
    struct body body = {.tail = &function->variables};
    enum status status = read_body(parser, &body);
    if (status == STATUS_OK)
        status = keep_body(parser, &body, function);
    free(body.statements);
    free(body.parents);
    return status;
}

/* ---- functions ---- */
static enum status read_params(struct ptx_parser *parser, struct ptx_variable **list) {
    struct ptx_variable **tail = list;
    TRY(ptx_parser_expect(parser, '('));
    while (!ptx_parser_at_mark(parser, ')')) {
        if (*list)
            TRY(ptx_parser_expect(parser, ','));
        TRY(ptx_declarations_param(parser, &tail));
    }
    return ptx_parser_next(parser);
}

/* .maxntid 128, 1, 1 and its like, between a head and its body. */
static enum status read_performance(struct ptx_parser *parser, struct ptx_function *function) {
    while (parser->lexer.token.kind == PTX_TOKEN_DIRECTIVE) {
        const bool threads = ptx_parser_at_directive(parser, ".maxntid") ||
                             ptx_parser_at_directive(parser, ".reqntid");
        uint64_t product = 1;
        TRY(ptx_parser_next(parser));
        while (parser->lexer.token.kind == PTX_TOKEN_INTEGER ||
               parser->lexer.token.kind == PTX_TOKEN_STRING || ptx_parser_at_mark(parser, ',')) {
            if (parser->lexer.token.kind == PTX_TOKEN_INTEGER)
                product *= parser->lexer.token.value;
            TRY(ptx_parser_next(parser));
        }
        if (threads)
            function->threads_max = (uint32_t)product;
    }
    return STATUS_OK;
}

static enum status read_function(struct ptx_parser *parser, bool is_kernel,
                                 struct ptx_function ***tail) {
    struct ptx_function *function = ptx_parser_alloc(parser, 1, sizeof *function);
    if (!function)
        return error_no_memory(parser->error, "PTX function");
    function->is_kernel = is_kernel;
    function->line = parser->lexer.token.line;
    if (!is_kernel && ptx_parser_at_mark(parser, '('))
        TRY(read_params(parser, &function->results));
    TRY(ptx_parser_word(parser, &function->name));
    if (ptx_parser_at_mark(parser, '('))
        TRY(read_params(parser, &function->params));
    TRY(read_performance(parser, function));
    **tail = function;
    *tail = &function->next;
    if (ptx_parser_at_mark(parser, ';'))
        return ptx_parser_next(parser);
    return read_function_body(parser, function);
}

/* ---- the module ---- */
static enum status read_target(struct ptx_parser *parser) {
    const struct view text = parser->lexer.token.text;
    if (parser->lexer.token.kind != PTX_TOKEN_WORD || text.length < 5 ||
        strncmp(text.bytes, "sm_", 3) != 0)
        return ptx_parser_fail(parser, "a target such as sm_80");
    parser->syntax->target = (uint32_t)strtoul(text.bytes + 3, NULL, 10);
    return ptx_lexer_skip_line(&parser->lexer, parser->error);
}

static enum status skip_section(struct ptx_parser *parser) {
    while (!ptx_parser_at_mark(parser, '}')) {
        if (parser->lexer.token.kind == PTX_TOKEN_END)
            return ptx_parser_fail(parser, "'}'");
        TRY(ptx_parser_next(parser));
    }
    return ptx_parser_next(parser);
}

static bool at_linkage(const struct ptx_parser *parser) {
    return ptx_parser_at_directive(parser, ".visible") ||
           ptx_parser_at_directive(parser, ".extern") || ptx_parser_at_directive(parser, ".weak") ||
           ptx_parser_at_directive(parser, ".common");
}

static enum status read_top(struct ptx_parser *parser, struct ptx_variable ***variables,
                            struct ptx_function ***functions) {
    bool is_extern = false;
    while (at_linkage(parser)) {
        is_extern = is_extern || ptx_parser_at_directive(parser, ".extern");
        TRY(ptx_parser_next(parser));
    }
    if (ptx_declarations_at(parser))
        return ptx_declarations_read(parser, 0, is_extern, variables);
    const bool is_kernel = ptx_parser_at_directive(parser, ".entry");
    if (is_kernel || ptx_parser_at_directive(parser, ".func")) {
        TRY(ptx_parser_next(parser));
        return read_function(parser, is_kernel, functions);
    }
    if (ptx_parser_at_directive(parser, ".section"))
        return skip_section(parser);
    if (ptx_parser_at_directive(parser, ".target")) {
        TRY(ptx_parser_next(parser));
        return read_target(parser);
    }
    if (ptx_parser_at_directive(parser, ".version") || ptx_parser_at_directive(parser, ".file") ||
        ptx_parser_at_directive(parser, ".address_size"))
        return ptx_lexer_skip_line(&parser->lexer, parser->error);
    if (ptx_parser_at_directive(parser, ".pragma") || ptx_parser_at_directive(parser, ".alias"))
        return ptx_lexer_skip_line(&parser->lexer, parser->error);
    return ptx_parser_fail(parser, "a declaration of a module");
}

enum status ptx_parser_read(const char *text, size_t length, struct arena *arena,
                            struct ptx_syntax *syntax, struct error *error) {
    *syntax = (struct ptx_syntax){.arena = arena};
    struct ptx_parser parser = {.syntax = syntax, .error = error};
    struct ptx_variable **variables = &syntax->variables;
    struct ptx_function **functions = &syntax->functions;
    TRY(ptx_lexer_open(&parser.lexer, text, length, error));
    while (parser.lexer.token.kind != PTX_TOKEN_END)
        TRY(read_top(&parser, &variables, &functions));
    if (syntax->target == 0)
        return error_set(error, STATUS_CORRUPT, "no .target: not PTX text");
    return STATUS_OK;
}
