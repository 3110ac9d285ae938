/* The tree a template is parsed to, and its tokens. Nodes live in the template's arena and are
 * never changed after parsing, so that one template serves many threads. */
#ifndef TOKENIZER_CHAT_NODE_H
#define TOKENIZER_CHAT_NODE_H

#include "tokenizer/chat_value.h"

enum chat_token_kind {
    CHAT_TOKEN_END,
    CHAT_TOKEN_DATA, /* template text, blanks already trimmed */
    CHAT_TOKEN_VARIABLE_BEGIN,
    CHAT_TOKEN_VARIABLE_END,
    CHAT_TOKEN_BLOCK_BEGIN,
    CHAT_TOKEN_BLOCK_END,
    CHAT_TOKEN_NAME,
    CHAT_TOKEN_STRING, /* text with quotes and escapes */
    CHAT_TOKEN_INTEGER,
    CHAT_TOKEN_FLOAT,
    CHAT_TOKEN_OPERATOR,
};

struct chat_token {
    enum chat_token_kind kind;
    int line;
    struct view text;
};

enum chat_node_kind {
    /* statements */
    CHAT_NODE_DATA,       /* constant: the text */
    CHAT_NODE_OUTPUT,     /* first: expression */
    CHAT_NODE_IF,         /* first: condition; body; otherwise */
    CHAT_NODE_FOR,        /* target; first: iterable; second: condition or NULL; body; otherwise */
    CHAT_NODE_SET,        /* target; first: expression */
    CHAT_NODE_SET_BLOCK,  /* target; first: filters over CHAT_NODE_CAPTURED, or NULL; body */
    CHAT_NODE_WITH,       /* list: CHAT_NODE_SET nodes; body */
    CHAT_NODE_MACRO,      /* name; list: parameters; body */
    CHAT_NODE_CALL_BLOCK, /* first: a CHAT_NODE_CALL; list: parameters of caller(); body */
    CHAT_NODE_FILTER_BLOCK, /* first: filters over CHAT_NODE_CAPTURED; body */
    CHAT_NODE_SCOPE,        /* body: in a scope of its own ({% generation %}) */
    CHAT_NODE_BREAK,
    CHAT_NODE_CONTINUE,
    /* expressions */
    CHAT_NODE_CONSTANT,
    CHAT_NODE_CAPTURED, /* the text a block statement has gathered */
    CHAT_NODE_NAME,
    CHAT_NODE_TUPLE,     /* list: items */
    CHAT_NODE_LIST,      /* list: items */
    CHAT_NODE_DICT,      /* list: key, value, key, value… */
    CHAT_NODE_ATTRIBUTE, /* first: object; name */
    CHAT_NODE_ITEM,      /* first: object; second: index */
    CHAT_NODE_SLICE, /* first: object; list: start, stop, step (CHAT_NODE_CONSTANT none if left out)
                      */
    CHAT_NODE_CALL,  /* first: callee; list: arguments */
    CHAT_NODE_FILTER,  /* first: value; name; list: arguments */
    CHAT_NODE_TEST,    /* first: value; name; list: arguments */
    CHAT_NODE_KEYWORD, /* name; first: value: a named argument, or a parameter with its default */
    CHAT_NODE_NOT,
    CHAT_NODE_NEGATE,
    CHAT_NODE_PLUS,
    CHAT_NODE_AND,
    CHAT_NODE_OR,
    CHAT_NODE_BINARY,      /* first, second; operation */
    CHAT_NODE_COMPARE,     /* first; list: CHAT_NODE_OPERAND */
    CHAT_NODE_OPERAND,     /* operation; first */
    CHAT_NODE_CONDITIONAL, /* first: condition; second: value; otherwise: value or NULL */
};

enum chat_operation {
    CHAT_ADD,
    CHAT_SUBTRACT,
    CHAT_MULTIPLY,
    CHAT_DIVIDE,
    CHAT_FLOOR_DIVIDE,
    CHAT_MODULO,
    CHAT_POWER,
    CHAT_CONCATENATE,
    CHAT_EQUAL,
    CHAT_UNEQUAL,
    CHAT_LESS,
    CHAT_LESS_EQUAL,
    CHAT_GREATER,
    CHAT_GREATER_EQUAL,
    CHAT_IN,
    CHAT_NOT_IN,
};

struct chat_node {
    enum chat_node_kind kind;
    enum chat_operation operation;
    int line;
    struct view name;
    struct chat_value constant;
    struct chat_node *target; /* NAME, TUPLE of targets, or ATTRIBUTE of a NAME (a namespace's) */
    struct chat_node *first, *second;
    struct chat_node *list;      /* linked by next */
    struct chat_node *body;      /* statements, linked by next */
    struct chat_node *otherwise; /* statements, linked by next; of CONDITIONAL: an expression */
    struct chat_node *next;
    const void *row; /* FILTER, TEST: its row of the table; NULL: unknown, an error when reached */
};

#endif
