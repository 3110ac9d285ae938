/* The lexer keeps one position and three states: text, inside {{ }}, inside {% %}. The trimming
 * follows what Jinja documents and what its lexer does where the documentation is silent: whether a
 * tag stands alone on its line depends on how the tag before it ended. */
#include "tokenizer/chat_lexer.h"

#include <stdlib.h>
#include <string.h>

enum { LEXER_NESTING_MAX = 128 };

struct lexer {
    const char *bytes;
    size_t length;
    size_t position;
    int line;
    bool line_starting; /* the tag before ended with a newline */
    struct arena *arena;
    struct error *error;
    struct chat_token *tokens;
    size_t count, capacity;
    char nesting[LEXER_NESTING_MAX]; /* closing brackets still expected */
    size_t depth;
};

static enum status fail(struct lexer *lexer, const char *what) {
    return error_set(lexer->error, STATUS_BAD_INPUT, "chat template line %d: %s", lexer->line,
                     what);
}

static bool looking_at(const struct lexer *lexer, size_t position, const char *text) {
    size_t length = strlen(text);
    return lexer->length - position >= length && memcmp(lexer->bytes + position, text, length) == 0;
}

static int count_lines(const char *bytes, size_t length) {
    int lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += bytes[i] == '\n';
    return lines;
}

/* Move on, counting lines. */
static void advance(struct lexer *lexer, size_t position) {
    lexer->line += count_lines(lexer->bytes + lexer->position, position - lexer->position);
    lexer->line_starting = position > lexer->position && lexer->bytes[position - 1] == '\n';
    lexer->position = position;
}

static enum status add_token(struct lexer *lexer, enum chat_token_kind kind, size_t length) {
    if (lexer->count == lexer->capacity) {
        size_t capacity = lexer->capacity ? lexer->capacity * 2 : 256;
        struct chat_token *grown = arena_calloc(lexer->arena, capacity, sizeof *grown);
        if (!grown)
            return error_set(lexer->error, STATUS_OVER_LIMIT, "chat template is too large");
        if (lexer->count > 0)
            memcpy(grown, lexer->tokens, lexer->count * sizeof *grown);
        lexer->tokens = grown;
        lexer->capacity = capacity;
    }
    lexer->tokens[lexer->count++] =
        (struct chat_token){kind, lexer->line, {lexer->bytes + lexer->position, length}};
    return STATUS_OK;
}

static size_t skip_spaces(const struct lexer *lexer, size_t position) {
    while (position < lexer->length) {
        int32_t character;
        size_t length =
            chat_string_character(lexer->bytes + position, lexer->length - position, &character);
        if (!chat_string_is_space(character))
            break;
        position += length;
    }
    return position;
}

/* End of [first, end) with trailing blanks taken off. */
static size_t strip_end(const struct lexer *lexer, size_t first, size_t end) {
    while (end > first) {
        size_t start = end - 1;
        while (start > first && ((unsigned char)lexer->bytes[start] & 0xC0) == 0x80)
            start--;
        int32_t character;
        size_t length = chat_string_character(lexer->bytes + start, end - start, &character);
        if (length != end - start || !chat_string_is_space(character))
            break;
        end = start;
    }
    return end;
}

/* Where text that runs up to a tag at `tag` ends, given the tag's sign. */
static size_t trimmed_end(const struct lexer *lexer, size_t tag, char sign, bool is_variable) {
    if (sign == '-')
        return strip_end(lexer, lexer->position, tag);
    if (sign == '+' || is_variable)
        return tag;
    size_t line = tag;
    while (line > lexer->position && lexer->bytes[line - 1] != '\n')
        line--;
    if (line == lexer->position && !lexer->line_starting)
        return tag;
    return skip_spaces(lexer, line) >= tag ? line : tag;
}

static enum status add_data(struct lexer *lexer, size_t end) {
    return end > lexer->position ? add_token(lexer, CHAT_TOKEN_DATA, end - lexer->position)
                                 : STATUS_OK;
}

/* The position after a closing tag that starts at `position`, with what it trims. */
static size_t after_close(const struct lexer *lexer, size_t position, bool trims_newline) {
    char sign = lexer->bytes[position];
    position += sign == '-' || sign == '+' ? 3 : 2;
    if (sign == '-')
        return skip_spaces(lexer, position);
    if (trims_newline && sign != '+' && position < lexer->length && lexer->bytes[position] == '\n')
        position++;
    return position;
}

static bool closes_at(const struct lexer *lexer, size_t position, const char *close, bool plus) {
    if (lexer->bytes[position] == '-' || (plus && lexer->bytes[position] == '+'))
        position++;
    return looking_at(lexer, position, close);
}

static enum status skip_comment(struct lexer *lexer, size_t position) {
    for (; position < lexer->length; position++) {
        if (!closes_at(lexer, position, "#}", true))
            continue;
        advance(lexer, after_close(lexer, position, true));
        return STATUS_OK;
    }
    return fail(lexer, "missing end of comment tag");
}

/* If a `{% name %}` tag opens at `position`: its end, else 0. Signs are told apart by after_close.
 */
static size_t match_word_tag(const struct lexer *lexer, size_t position, const char *name,
                             bool trims_newline) {
    size_t at = position + 2;
    if (at < lexer->length && (lexer->bytes[at] == '-' || lexer->bytes[at] == '+'))
        at++;
    at = skip_spaces(lexer, at);
    if (at >= lexer->length || !looking_at(lexer, at, name))
        return 0;
    at = skip_spaces(lexer, at + strlen(name));
    if (at >= lexer->length || !closes_at(lexer, at, "%}", trims_newline))
        return 0;
    return after_close(lexer, at, trims_newline);
}

static char sign_at(const struct lexer *lexer, size_t position) {
    if (position < lexer->length &&
        (lexer->bytes[position] == '-' || lexer->bytes[position] == '+'))
        return lexer->bytes[position];
    return ' ';
}

/* Text between {% raw %} and {% endraw %} is data. */
static enum status lex_raw(struct lexer *lexer, size_t body) {
    advance(lexer, body);
    for (size_t at = body; at < lexer->length; at++) {
        size_t end = looking_at(lexer, at, "{%") ? match_word_tag(lexer, at, "endraw", true) : 0;
        if (end == 0)
            continue;
        TRY(add_data(lexer, trimmed_end(lexer, at, sign_at(lexer, at + 2), false)));
        advance(lexer, end);
        return STATUS_OK;
    }
    return fail(lexer, "missing end of raw block");
}

/* Text up to the next tag, then the tag's opening. */
static enum status lex_text(struct lexer *lexer, char *state) {
    size_t tag = lexer->position;
    while (tag < lexer->length && !looking_at(lexer, tag, "{{") && !looking_at(lexer, tag, "{%") &&
           !looking_at(lexer, tag, "{#"))
        tag++;
    if (tag >= lexer->length) {
        TRY(add_data(lexer, lexer->length));
        advance(lexer, lexer->length);
        return STATUS_OK;
    }
    char kind = lexer->bytes[tag + 1];
    char sign = sign_at(lexer, tag + 2);
    TRY(add_data(lexer, trimmed_end(lexer, tag, sign, kind == '{')));
    advance(lexer, tag);
    size_t inside = tag + (sign == ' ' ? 2 : 3);
    if (kind == '#')
        return skip_comment(lexer, inside);
    size_t raw = kind == '%' ? match_word_tag(lexer, tag, "raw", false) : 0;
    if (raw > 0)
        return lex_raw(lexer, raw);
    TRY(add_token(lexer, kind == '{' ? CHAT_TOKEN_VARIABLE_BEGIN : CHAT_TOKEN_BLOCK_BEGIN,
                  inside - tag));
    advance(lexer, inside);
    *state = kind;
    return STATUS_OK;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static enum status lex_name(struct lexer *lexer) {
    size_t end = lexer->position;
    while (end < lexer->length && (is_name_start(lexer->bytes[end]) || is_digit(lexer->bytes[end])))
        end++;
    TRY(add_token(lexer, CHAT_TOKEN_NAME, end - lexer->position));
    advance(lexer, end);
    return STATUS_OK;
}

static size_t skip_digits(const struct lexer *lexer, size_t position) {
    while (position < lexer->length &&
           (is_digit(lexer->bytes[position]) ||
            (lexer->bytes[position] == '_' && position + 1 < lexer->length &&
             is_digit(lexer->bytes[position + 1]))))
        position++;
    return position;
}

/* Decimal integers, and floats with a fraction or an exponent. */
static enum status lex_number(struct lexer *lexer) {
    size_t end = skip_digits(lexer, lexer->position);
    enum chat_token_kind kind = CHAT_TOKEN_INTEGER;
    bool may_be_float = lexer->bytes[lexer->position - 1] != '.'; /* not in x.0.1 */
    if (may_be_float && end + 1 < lexer->length && lexer->bytes[end] == '.' &&
        is_digit(lexer->bytes[end + 1])) {
        end = skip_digits(lexer, end + 1);
        kind = CHAT_TOKEN_FLOAT;
    }
    if (may_be_float && end < lexer->length &&
        (lexer->bytes[end] == 'e' || lexer->bytes[end] == 'E')) {
        size_t digits = end + 1;
        if (digits < lexer->length && (lexer->bytes[digits] == '+' || lexer->bytes[digits] == '-'))
            digits++;
        if (digits < lexer->length && is_digit(lexer->bytes[digits])) {
            end = skip_digits(lexer, digits);
            kind = CHAT_TOKEN_FLOAT;
        }
    }
    TRY(add_token(lexer, kind, end - lexer->position));
    advance(lexer, end);
    return STATUS_OK;
}

static enum status lex_string(struct lexer *lexer) {
    char quote = lexer->bytes[lexer->position];
    size_t end = lexer->position + 1;
    while (end < lexer->length && lexer->bytes[end] != quote)
        end += lexer->bytes[end] == '\\' ? 2 : 1;
    if (end >= lexer->length)
        return fail(lexer, "string without an end");
    end++;
    TRY(add_token(lexer, CHAT_TOKEN_STRING, end - lexer->position));
    advance(lexer, end);
    return STATUS_OK;
}

/* Brackets must pair: inside them, }} and %} do not end the tag. */
static enum status balance(struct lexer *lexer, char c) {
    const char *open = c ? strchr("([{", c) : NULL;
    if (open) {
        if (lexer->depth == LEXER_NESTING_MAX)
            return fail(lexer, "brackets nested too deeply");
        lexer->nesting[lexer->depth++] = ")]}"[open - "([{"];
        return STATUS_OK;
    }
    if (!strchr(")]}", c))
        return STATUS_OK;
    if (lexer->depth == 0 || lexer->nesting[lexer->depth - 1] != c) {
        return error_set(lexer->error, STATUS_BAD_INPUT, "chat template line %d: unexpected '%c'",
                         lexer->line, c);
    }
    lexer->depth--;
    return STATUS_OK;
}

static enum status lex_operator(struct lexer *lexer) {
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (!looking_at(lexer, lexer->position, operators[i]))
            continue;
        TRY(balance(lexer, operators[i][0]));
        TRY(add_token(lexer, CHAT_TOKEN_OPERATOR, strlen(operators[i])));
        advance(lexer, lexer->position + strlen(operators[i]));
        return STATUS_OK;
    }
    return error_set(lexer->error, STATUS_BAD_INPUT,
                     "chat template line %d: unexpected character '%.*s'", lexer->line, 1,
                     lexer->bytes + lexer->position);
}

/* One token inside a tag, or the tag's end. */
static enum status lex_inside(struct lexer *lexer, char *state) {
    bool variable = *state == '{';
    const char *close = variable ? "}}" : "%}";
    if (lexer->depth == 0 && closes_at(lexer, lexer->position, close, !variable)) {
        size_t end = after_close(lexer, lexer->position, !variable);
        TRY(add_token(lexer, variable ? CHAT_TOKEN_VARIABLE_END : CHAT_TOKEN_BLOCK_END, 2));
        advance(lexer, end);
        *state = 0;
        return STATUS_OK;
    }
    size_t spaces = skip_spaces(lexer, lexer->position);
    if (spaces > lexer->position) {
        advance(lexer, spaces);
        return STATUS_OK;
    }
    char c = lexer->bytes[lexer->position];
    if (is_name_start(c))
        return lex_name(lexer);
    if (is_digit(c))
        return lex_number(lexer);
    if (c == '\'' || c == '"')
        return lex_string(lexer);
    return lex_operator(lexer);
}

/* \r\n and \r become \n, and one newline at the end goes. */
static char *normalise(struct view source, struct arena *arena, size_t *length) {
    char *bytes = arena_copy_text(arena, source.bytes ? source.bytes : "", source.length);
    if (!bytes)
        return NULL;
    size_t used = 0;
    for (size_t i = 0; i < source.length; i++) {
        if (bytes[i] == '\n' && i > 0 && source.bytes[i - 1] == '\r')
            continue;
        bytes[used++] = bytes[i] == '\r' ? '\n' : bytes[i];
    }
    if (used > 0 && bytes[used - 1] == '\n')
        used--;
    bytes[used] = '\0';
    *length = used;
    return bytes;
}

enum status chat_lexer_run(struct view source, struct arena *arena, struct chat_token **tokens,
                           struct error *error) {
    struct lexer lexer = {.line = 1, .line_starting = true, .arena = arena, .error = error};
    lexer.bytes = normalise(source, arena, &lexer.length);
    if (!lexer.bytes)
        return error_set(error, STATUS_OVER_LIMIT, "chat template is too large");
    char state = 0; /* 0: text, '{': inside {{ }}, '%': inside {% %} */
    while (lexer.position < lexer.length)
        TRY(state ? lex_inside(&lexer, &state) : lex_text(&lexer, &state));
    TRY(add_token(&lexer, CHAT_TOKEN_END, 0));
    *tokens = lexer.tokens;
    return STATUS_OK;
}
