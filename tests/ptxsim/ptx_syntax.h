/* A PTX module as written: declarations, functions, statements. Nothing is resolved here; names are
 * views into the text, which the module keeps. Everything lives in the module's arena. */
#ifndef TESTS_PTXSIM_PTX_SYNTAX_H
#define TESTS_PTXSIM_PTX_SYNTAX_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "tests/ptxsim/ptx_types.h"

enum ptx_operand_kind {
    PTX_OPERAND_NAME, /* register, special register, variable, label, function; name+offset */
    PTX_OPERAND_INTEGER,
    PTX_OPERAND_F32,
    PTX_OPERAND_F64,
    PTX_OPERAND_DECIMAL, /* bits of a double */
    PTX_OPERAND_VECTOR,  /* {a, b} */
    PTX_OPERAND_LIST,    /* (a, b) */
    PTX_OPERAND_ADDRESS  /* [name + offset] or [integer] */
};

struct ptx_operand {
    enum ptx_operand_kind kind;
    bool negated;       /* !name */
    struct view name;   /* empty in an ADDRESS of a number only */
    struct view second; /* of a pair name|second */
    uint64_t bits;      /* value, or the offset of NAME and ADDRESS */
    struct ptx_operand *items;
    uint32_t item_count;
};

struct ptx_statement {
    struct view opcode; /* empty: a label */
    struct view label;
    struct view guard; /* empty: none */
    bool guard_negated;
    bool is_target_list; /* label: .branchtargets operands */
    uint32_t line;
    uint32_t scope;
    struct ptx_operand *operands;
    uint32_t operand_count;
};

/* An address inside an initialiser. */
struct ptx_relocation {
    uint64_t offset; /* of the 8 bytes to fill */
    struct view name;
    uint64_t addend;
    struct ptx_relocation *next;
};

struct ptx_variable {
    struct view name; /* of %r<10>: "%r" */
    enum ptx_space space;
    enum ptx_type type;
    uint32_t vector; /* elements of .v2/.v4 registers and variables, else 1 */
    uint32_t align;
    uint64_t bytes;
    uint32_t numbered; /* of %r<10>: 10, else 0 */
    bool is_extern;
    bool is_array_open; /* name[]: dynamic shared memory */
    uint32_t scope;     /* of its function; 0 is the outermost */
    uint32_t line;
    uint8_t *data; /* initial bytes, NULL: none */
    struct ptx_relocation *relocations;
    /* Set by the decoder, anew for each kernel but for .global and .const: */
    uint64_t value;    /* address in its space, or the offset of the first register */
    uint16_t first_id; /* of registers */
    bool is_placed;
    struct ptx_variable *next;
};

struct ptx_function {
    struct view name;
    bool is_kernel;
    bool has_body;
    uint32_t line;
    uint32_t threads_max;
    struct ptx_variable *results; /* .param or .reg, in order */
    struct ptx_variable *params;
    struct ptx_variable *variables;
    struct ptx_statement *statements;
    uint32_t statement_count;
    uint32_t *scope_parents; /* [scope_count] */
    uint32_t scope_count;
    uint32_t entry; /* set by the decoder: where it begins in the kernel's program */
    uint8_t visit;  /* set by the decoder: 1 on the way, 2 placed */
    struct ptx_function *next;
};

struct ptx_syntax {
    struct arena *arena;
    uint32_t target; /* 80 for sm_80 */
    struct ptx_variable *variables;
    struct ptx_function *functions; /* in order of appearance; a declaration precedes its body */
};

#endif
