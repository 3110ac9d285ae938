/* Tokens to tree. Statements are parsed in chat_parser.c, expressions in chat_parser_expression.c.
 * What the engine cannot do is refused here, with the line and the construct's name; only filters
 * and tests inside an {% if %} may be unknown, since the branch may never run (as in Jinja). */
#ifndef TOKENIZER_CHAT_PARSER_H
#define TOKENIZER_CHAT_PARSER_H

#include "core/base/error.h"
#include "tokenizer/chat_node.h"

enum { CHAT_PARSER_DEPTH_MAX = 120 };

struct chat_parser {
    const struct chat_token *token; /* the one looked at */
    struct arena *arena;
    struct error *error;
    int depth;      /* nesting of statements and expressions */
    int loop_depth; /* {% for %} around, for break and continue */
    int if_depth;   /* {% if %} around */
};

/* The whole template as a list of statements. */
enum status chat_parser_run(struct view source, struct arena *arena, struct chat_node **body,
                            struct error *error);

enum status chat_parser_fail(const struct chat_parser *parser, int line, const char *format, ...)
    ERROR_FORMAT(3, 4);
enum status chat_parser_node(struct chat_parser *parser, enum chat_node_kind kind,
                             struct chat_node **node);
bool chat_parser_at_operator(const struct chat_parser *parser, const char *text);
bool chat_parser_at_name(const struct chat_parser *parser, const char *name);
/* Step over an operator or name if it is there. */
bool chat_parser_skip_operator(struct chat_parser *parser, const char *text);
bool chat_parser_skip_name(struct chat_parser *parser, const char *name);
enum status chat_parser_expect_operator(struct chat_parser *parser, const char *text);
enum status chat_parser_expect_name(struct chat_parser *parser, struct view *name);
/* Count one level of nesting; every success is paired with `depth--`. */
enum status chat_parser_enter(struct chat_parser *parser);

/* An expression; `with_conditional`: `a if b else c` allowed. */
enum status chat_parser_expression(struct chat_parser *parser, bool with_conditional,
                                   struct chat_node **node);
/* Expressions with commas between: a tuple, or the one expression without commas. */
enum status chat_parser_expression_tuple(struct chat_parser *parser, bool with_conditional,
                                         struct chat_node **node);
/* A name, literal or bracketed expression, with what follows it: `.x`, `[x]`, `(x)`. */
enum status chat_parser_expression_unary(struct chat_parser *parser, struct chat_node **node);
/* Filters after a value: from `|`, or from a filter's name when `named`. */
enum status chat_parser_expression_filters(struct chat_parser *parser, bool named,
                                           struct chat_node **node);

#endif
