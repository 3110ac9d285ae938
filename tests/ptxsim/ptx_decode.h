/* A kernel and the functions it calls to one program. */
#ifndef TESTS_PTXSIM_PTX_DECODE_H
#define TESTS_PTXSIM_PTX_DECODE_H

#include "tests/ptxsim/ptx_machine.h"
#include "tests/ptxsim/ptx_opcodes.h"
#include "tests/ptxsim/ptx_syntax.h"

enum { PTX_FUNCTIONS_MAX = 64 };

struct ptx_decoder {
    struct ptx_syntax *syntax;
    struct ptx_program *program;
    struct ptx_function *functions[PTX_FUNCTIONS_MAX]; /* callees first */
    uint32_t function_count;
    struct ptx_function *function; /* the current one */
    const struct ptx_statement *statement;
    struct ptx_label *labels;
    struct error *error;
};

struct ptx_label {
    const struct ptx_function *function;
    const struct ptx_statement *statement;
    uint32_t pc;
    struct ptx_label *next;
};

enum status ptx_decode_kernel(struct ptx_syntax *syntax, struct ptx_function *kernel,
                              struct ptx_program *program, struct error *error);

/* ---- shared with ptx_operands.c ---- */
enum status ptx_decode_fail(struct ptx_decoder *decoder, const char *format, ...)
    ERROR_FORMAT(2, 3);
struct ptx_variable *ptx_decode_variable(const struct ptx_decoder *decoder, struct view name,
                                         uint32_t *index);
struct ptx_function *ptx_decode_function(const struct ptx_syntax *syntax, struct view name);

/* Operands of the current statement into `instruction`, by the letters of `row`. */
enum status ptx_operands_decode(struct ptx_decoder *decoder, const struct ptx_opcode *row,
                                struct ptx_instruction *instruction);
enum status ptx_operands_guard(struct ptx_decoder *decoder, struct ptx_instruction *instruction);

/* Special registers (ptx_special.c). */
bool ptx_special_find(struct view name, uint8_t *special, uint8_t *bytes);
void ptx_special_fill(struct ptx_warp *warp, const struct ptx_special_use *use);

#endif
