/* The scanner of ptx_lexer.h: one pass, no lookahead beyond two characters. */
#include "tests/ptxsim/ptx_lexer.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static char peek(const struct ptx_lexer *lexer, size_t ahead) {
    return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : '\0';
}

static void skip_comment(struct ptx_lexer *lexer) {
    const bool block = lexer->at[1] == '*';
    lexer->at += 2;
    while (lexer->at < lexer->end) {
        if (!block && *lexer->at == '\n')
            return;
        if (block && *lexer->at == '*' && peek(lexer, 1) == '/') {
            lexer->at += 2;
            return;
        }
        lexer->line += *lexer->at++ == '\n';
    }
}

static void skip_blanks(struct ptx_lexer *lexer) {
    while (lexer->at < lexer->end) {
        const char c = *lexer->at;
        if (c == '/' && (peek(lexer, 1) == '/' || peek(lexer, 1) == '*')) {
            skip_comment(lexer);
        } else if (isspace((unsigned char)c)) {
            lexer->line += c == '\n';
            lexer->at++;
        } else {
            return;
        }
    }
}

static void scan_word(struct ptx_lexer *lexer) {
    while (lexer->at < lexer->end) {
        if (is_word(*lexer->at))
            lexer->at++;
        else if (*lexer->at == '.' && is_word(peek(lexer, 1)))
            lexer->at++;
        else if (*lexer->at == ':' && peek(lexer, 1) == ':')
            lexer->at += 2;
        else
            return;
    }
}

static enum status scan_bits(struct ptx_lexer *lexer, int digits, struct error *error) {
    char text[17] = {0};
    lexer->at += 2;
    for (int i = 0; i < digits; i++) {
        if (!isxdigit((unsigned char)peek(lexer, 0)))
            return error_set(error, STATUS_CORRUPT, "line %u: a float needs %d hex digits",
                             lexer->line, digits);
        text[i] = *lexer->at++;
    }
    lexer->token.value = strtoull(text, NULL, 16);
    lexer->token.kind = digits == 8 ? PTX_TOKEN_F32 : PTX_TOKEN_F64;
    return STATUS_OK;
}

static enum status scan_number(struct ptx_lexer *lexer, struct error *error) {
    const char second = (char)tolower((unsigned char)peek(lexer, 1));
    if (peek(lexer, 0) == '0' && (second == 'f' || second == 'd'))
        return scan_bits(lexer, second == 'f' ? 8 : 16, error);
    char text[72] = {0};
    size_t length = 0;
    bool decimal = false;
    const bool hex = second == 'x';
    while (length < sizeof text - 1) {
        const char c = peek(lexer, 0);
        const bool sign = (c == '-' || c == '+') && decimal && length > 0 &&
                          (text[length - 1] == 'e' || text[length - 1] == 'E');
        if (!isalnum((unsigned char)c) && c != '.' && !sign)
            break;
        decimal = decimal || c == '.' || (!hex && (c == 'e' || c == 'E'));
        text[length++] = c;
        lexer->at++;
    }
    char *end = NULL;
    if (decimal) {
        const double value = strtod(text, &end);
        memcpy(&lexer->token.value, &value, sizeof value);
        lexer->token.kind = PTX_TOKEN_DECIMAL;
    } else {
        const bool binary = text[0] == '0' && (text[1] == 'b' || text[1] == 'B');
        lexer->token.value = strtoull(binary ? text + 2 : text, &end, binary ? 2 : 0);
        lexer->token.kind = PTX_TOKEN_INTEGER;
        end += *end == 'U';
    }
    if (*end != '\0')
        return error_set(error, STATUS_CORRUPT, "line %u: '%s' is no number", lexer->line, text);
    return STATUS_OK;
}

static enum status scan_string(struct ptx_lexer *lexer, struct error *error) {
    const char *start = ++lexer->at;
    while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
        lexer->at++;
    if (peek(lexer, 0) != '"')
        return error_set(error, STATUS_CORRUPT, "line %u: a string without an end", lexer->line);
    lexer->token.kind = PTX_TOKEN_STRING;
    lexer->token.text = (struct view){start, (size_t)(lexer->at++ - start)};
    return STATUS_OK;
}

enum status ptx_lexer_next(struct ptx_lexer *lexer, struct error *error) {
    skip_blanks(lexer);
    const char *start = lexer->at;
    lexer->token = (struct ptx_token){.line = lexer->line};
    if (start == lexer->end)
        return STATUS_OK;
    if (*start == '"')
        return scan_string(lexer, error);
    if (isdigit((unsigned char)*start)) {
        TRY(scan_number(lexer, error));
    } else if (is_word(*start)) {
        lexer->token.kind = PTX_TOKEN_WORD;
        scan_word(lexer);
    } else if (*start == '.' && is_word(peek(lexer, 1))) {
        lexer->token.kind = PTX_TOKEN_DIRECTIVE;
        lexer->at++;
        while (is_word(peek(lexer, 0)))
            lexer->at++;
    } else {
        lexer->token.kind = PTX_TOKEN_MARK;
        lexer->at++;
    }
    lexer->token.text = (struct view){start, (size_t)(lexer->at - start)};
    return STATUS_OK;
}

enum status ptx_lexer_open(struct ptx_lexer *lexer, const char *text, size_t length,
                           struct error *error) {
    while (length > 0 && text[length - 1] == '\0')
        length--; /* images are passed with their terminator */
    *lexer = (struct ptx_lexer){.at = text, .end = text + length, .line = 1};
    return ptx_lexer_next(lexer, error);
}

enum status ptx_lexer_skip_line(struct ptx_lexer *lexer, struct error *error) {
    const uint32_t line = lexer->token.line;
    while (lexer->token.kind != PTX_TOKEN_END && lexer->token.line == line)
        TRY(ptx_lexer_next(lexer, error));
    return STATUS_OK;
}
