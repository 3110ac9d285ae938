/* PTX text to struct ptx_syntax. `text` must outlive the result. */
#ifndef TESTS_PTXSIM_PTX_PARSER_H
#define TESTS_PTXSIM_PTX_PARSER_H

#include "tests/ptxsim/ptx_lexer.h"
#include "tests/ptxsim/ptx_syntax.h"

enum { PTX_PARSER_LIST_MAX = 128 };

struct ptx_parser {
    struct ptx_lexer lexer;
    struct ptx_syntax *syntax;
    struct error *error;
};

enum status ptx_parser_read(const char *text, size_t length, struct arena *arena,
                            struct ptx_syntax *syntax, struct error *error);

/* ---- shared by the parser's files ---- */
enum status ptx_parser_fail(struct ptx_parser *parser, const char *wanted);
bool ptx_parser_at_mark(const struct ptx_parser *parser, char mark);
bool ptx_parser_at_directive(const struct ptx_parser *parser, const char *name);
enum status ptx_parser_next(struct ptx_parser *parser);
enum status ptx_parser_expect(struct ptx_parser *parser, char mark);
enum status ptx_parser_word(struct ptx_parser *parser, struct view *word);
enum status ptx_parser_integer(struct ptx_parser *parser, uint64_t *value);
void *ptx_parser_alloc(struct ptx_parser *parser, size_t count, size_t size);

/* Declarations (ptx_declarations.c): `.space ... name;` up to and with the semicolon, or one
 * parameter of a list, without what follows it. */
enum status ptx_declarations_read(struct ptx_parser *parser, uint32_t scope, bool is_extern,
                                  struct ptx_variable ***tail);
enum status ptx_declarations_param(struct ptx_parser *parser, struct ptx_variable ***tail);
bool ptx_declarations_at(const struct ptx_parser *parser);

#endif
