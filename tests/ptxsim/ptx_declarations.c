/* Variable declarations of PTX: registers, parameters and memory, with initialisers. */
#include <string.h>

#include "tests/ptxsim/ptx_parser.h"

static const struct {
    const char *directive;
    enum ptx_space space;
} spaces[] = {
    {".reg", PTX_REGISTER}, {".param", PTX_PARAM}, {".shared", PTX_SHARED},
    {".local", PTX_LOCAL},  {".const", PTX_CONST}, {".global", PTX_GLOBAL},
};

bool ptx_declarations_at(const struct ptx_parser *parser) {
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (ptx_parser_at_directive(parser, spaces[i].directive))
            return true;
    return false;
}

static enum status read_space(struct ptx_parser *parser, enum ptx_space *space) {
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        if (ptx_parser_at_directive(parser, spaces[i].directive)) {
            *space = spaces[i].space;
            return ptx_parser_next(parser);
        }
    }
    return ptx_parser_fail(parser, "a state space");
}

/* .align N, .v2/.v4, .ptr .space, and last the type. */
static enum status read_attributes(struct ptx_parser *parser, struct ptx_variable *variable) {
    variable->vector = 1;
    while (parser->lexer.token.kind == PTX_TOKEN_DIRECTIVE) {
        const struct view text = parser->lexer.token.text;
        const enum ptx_type type = ptx_types_find((struct view){text.bytes + 1, text.length - 1});
        if (type != PTX_NONE) {
            variable->type = type;
            TRY(ptx_parser_next(parser));
        } else if (ptx_parser_at_directive(parser, ".align")) {
            uint64_t align = 0;
            TRY(ptx_parser_next(parser));
            TRY(ptx_parser_integer(parser, &align));
            if (variable->type == PTX_NONE) /* behind .ptr it is the target's */
                variable->align = (uint32_t)align;
        } else if (ptx_parser_at_directive(parser, ".v2") ||
                   ptx_parser_at_directive(parser, ".v4")) {
            variable->vector = text.bytes[2] == '2' ? 2 : 4;
            TRY(ptx_parser_next(parser));
        } else if (ptx_parser_at_directive(parser, ".ptr") || ptx_declarations_at(parser)) {
            TRY(ptx_parser_next(parser));
        } else {
            return ptx_parser_fail(parser, "a type");
        }
    }
    if (variable->type == PTX_NONE)
        return ptx_parser_fail(parser, "a type");
    const uint32_t bytes = ptx_types_bytes(variable->type) * variable->vector;
    if (variable->align == 0)
        variable->align = bytes > 0 ? bytes : 1;
    return STATUS_OK;
}

/* name, name<count>, name[n][m], name[] */
static enum status read_name(struct ptx_parser *parser, struct ptx_variable *variable) {
    uint64_t count = 1;
    variable->line = parser->lexer.token.line;
    TRY(ptx_parser_word(parser, &variable->name));
    if (ptx_parser_at_mark(parser, '<')) {
        TRY(ptx_parser_next(parser));
        TRY(ptx_parser_integer(parser, &count));
        if (count == 0 || count > 1 << 20)
            return ptx_parser_fail(parser, "a register count from 1 to 2^20");
        variable->numbered = (uint32_t)count;
        return ptx_parser_expect(parser, '>');
    }
    while (ptx_parser_at_mark(parser, '[')) {
        uint64_t extent = 0;
        TRY(ptx_parser_next(parser));
        if (ptx_parser_at_mark(parser, ']'))
            variable->is_array_open = true;
        else
            TRY(ptx_parser_integer(parser, &extent));
        if (extent > (1u << 31) || count * extent > (1u << 31))
            return ptx_parser_fail(parser, "an array of at most 2^31 elements");
        count *= extent;
        TRY(ptx_parser_expect(parser, ']'));
    }
    variable->bytes = count * variable->vector * ptx_types_bytes(variable->type);
    return STATUS_OK;
}

struct initialiser {
    struct ptx_variable *variable;
    uint64_t at;
};

static enum status put_bytes(struct ptx_parser *parser, struct initialiser *to, uint64_t bits) {
    const uint32_t bytes = ptx_types_bytes(to->variable->type);
    if (to->at + bytes > to->variable->bytes)
        return ptx_parser_fail(parser, "no more initial values than elements");
    memcpy(to->variable->data + to->at, &bits, bytes);
    to->at += bytes;
    return STATUS_OK;
}

static enum status put_name(struct ptx_parser *parser, struct initialiser *to) {
    struct ptx_relocation *relocation = ptx_parser_alloc(parser, 1, sizeof *relocation);
    if (!relocation)
        return error_no_memory(parser->error, "PTX relocation");
    const bool generic = view_is(parser->lexer.token.text, "generic");
    if (generic) {
        TRY(ptx_parser_next(parser));
        TRY(ptx_parser_expect(parser, '('));
    }
    TRY(ptx_parser_word(parser, &relocation->name));
    if (generic)
        TRY(ptx_parser_expect(parser, ')'));
    if (ptx_parser_at_mark(parser, '+')) {
        TRY(ptx_parser_next(parser));
        TRY(ptx_parser_integer(parser, &relocation->addend));
    }
    relocation->offset = to->at;
    relocation->next = to->variable->relocations;
    to->variable->relocations = relocation;
    if (ptx_types_bytes(to->variable->type) != 8)
        return ptx_parser_fail(parser, "an address in a 64-bit element");
    return put_bytes(parser, to, 0);
}

static enum status put_number(struct ptx_parser *parser, struct initialiser *to) {
    const struct ptx_token token = parser->lexer.token;
    uint64_t bits = token.value;
    if (token.kind == PTX_TOKEN_DECIMAL && to->variable->type == PTX_F32) {
        double wide;
        memcpy(&wide, &bits, sizeof wide);
        const float value = (float)wide;
        uint32_t narrow;
        memcpy(&narrow, &value, sizeof narrow);
        bits = narrow;
    }
    if (token.kind == PTX_TOKEN_MARK || token.kind == PTX_TOKEN_INTEGER)
        TRY(ptx_parser_integer(parser, &bits));
    else
        TRY(ptx_parser_next(parser));
    return put_bytes(parser, to, bits);
}

/* {1, 2, {3}} or a single value. */
static enum status read_initialiser(struct ptx_parser *parser, struct ptx_variable *variable) {
    if (variable->is_array_open)
        return ptx_parser_fail(parser, "an array with its extent before initial values");
    variable->data = ptx_parser_alloc(parser, 1, variable->bytes + 8);
    if (!variable->data)
        return error_no_memory(parser->error, "PTX initial values");
    struct initialiser to = {variable, 0};
    int depth = 0;
    do {
        if (ptx_parser_at_mark(parser, '{')) {
            depth++;
            TRY(ptx_parser_next(parser));
        } else if (ptx_parser_at_mark(parser, '}')) {
            depth--;
            TRY(ptx_parser_next(parser));
        } else if (ptx_parser_at_mark(parser, ',')) {
            TRY(ptx_parser_next(parser));
        } else if (parser->lexer.token.kind == PTX_TOKEN_WORD) {
            TRY(put_name(parser, &to));
        } else {
            TRY(put_number(parser, &to));
        }
    } while (depth > 0);
    return STATUS_OK;
}

static enum status add(struct ptx_parser *parser, const struct ptx_variable *variable,
                       struct ptx_variable ***tail) {
    struct ptx_variable *kept = ptx_parser_alloc(parser, 1, sizeof *kept);
    if (!kept)
        return error_no_memory(parser->error, "PTX declaration");
    *kept = *variable;
    **tail = kept;
    *tail = &kept->next;
    return STATUS_OK;
}

enum status ptx_declarations_read(struct ptx_parser *parser, uint32_t scope, bool is_extern,
                                  struct ptx_variable ***tail) {
    struct ptx_variable common = {.scope = scope, .is_extern = is_extern};
    TRY(read_space(parser, &common.space));
    TRY(read_attributes(parser, &common));
    for (;;) {
        struct ptx_variable variable = common;
        TRY(read_name(parser, &variable));
        if (ptx_parser_at_mark(parser, '=')) {
            TRY(ptx_parser_next(parser));
            TRY(read_initialiser(parser, &variable));
        }
        TRY(add(parser, &variable, tail));
        if (!ptx_parser_at_mark(parser, ','))
            return ptx_parser_expect(parser, ';');
        TRY(ptx_parser_next(parser));
    }
}

enum status ptx_declarations_param(struct ptx_parser *parser, struct ptx_variable ***tail) {
    struct ptx_variable variable = {0};
    TRY(read_space(parser, &variable.space));
    TRY(read_attributes(parser, &variable));
    TRY(read_name(parser, &variable));
    return add(parser, &variable, tail);
}
