/* PTX text to tokens. Comments and blanks vanish. A word keeps the ".parts" that touch it, so an
 * opcode with its modifiers, or %tid.x, is one token; a directive such as ".reg" begins with its
 * dot. */
#ifndef TESTS_PTXSIM_PTX_LEXER_H
#define TESTS_PTXSIM_PTX_LEXER_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/base/view.h"

enum ptx_token_kind {
    PTX_TOKEN_END,
    PTX_TOKEN_WORD,      /* name, %register, opcode.with.modifiers */
    PTX_TOKEN_DIRECTIVE, /* .name */
    PTX_TOKEN_INTEGER,
    PTX_TOKEN_F32,     /* 0f followed by 8 digits: value has the bits */
    PTX_TOKEN_F64,     /* 0d followed by 16 digits */
    PTX_TOKEN_DECIMAL, /* 1.5: value has a double's bits */
    PTX_TOKEN_STRING,  /* without its quotes */
    PTX_TOKEN_MARK     /* one character */
};

struct ptx_token {
    enum ptx_token_kind kind;
    struct view text;
    uint64_t value;
    uint32_t line;
};

struct ptx_lexer {
    const char *at, *end;
    uint32_t line;
    struct ptx_token token; /* the current one */
};

/* Both read one token into lexer->token. */
enum status ptx_lexer_open(struct ptx_lexer *lexer, const char *text, size_t length,
                           struct error *error);
enum status ptx_lexer_next(struct ptx_lexer *lexer, struct error *error);

/* Continue behind the end of this token's line. */
enum status ptx_lexer_skip_line(struct ptx_lexer *lexer, struct error *error);

#endif
