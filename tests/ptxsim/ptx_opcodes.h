/* The table of instructions: one row a form. A row's key are the parts that must be there, in order
 * ("mul.wide.s32"); `optional` says which kinds of other parts may stand anywhere between them.
 * What matches no row is refused by name. To add an instruction: one row, one handler. */
#ifndef TESTS_PTXSIM_PTX_OPCODES_H
#define TESTS_PTXSIM_PTX_OPCODES_H

#include "tests/ptxsim/ptx_machine.h"

enum ptx_field {
    PTX_FIELD_TYPE, /* in `types`, not `fields` */
    PTX_FIELD_ROUND,
    PTX_FIELD_FTZ,
    PTX_FIELD_SAT,
    PTX_FIELD_APPROX, /* .approx, .full: the same here */
    PTX_FIELD_COMPARE,
    PTX_FIELD_OP, /* of atom, red, redux, bar.red; the joining one of setp */
    PTX_FIELD_SPACE,
    PTX_FIELD_VECTOR,
    PTX_FIELD_MODE, /* of shfl, vote, match; .uni */
    PTX_FIELD_CACHE,
    PTX_FIELD_MEMORY_MODEL, /* .relaxed .gpu ...: execution is sequential anyway */
    PTX_FIELD_RELU,
    PTX_FIELD_COUNT_OF, /* .x1 .x2 .x4 */
    PTX_FIELD_TRANS,
    PTX_FIELD_KIND, /* of prmt and testp, .wrap/.clamp */
};

enum {
    PTX_OP_ADD = 1,
    PTX_OP_MIN,
    PTX_OP_MAX,
    PTX_OP_AND,
    PTX_OP_OR,
    PTX_OP_XOR,
    PTX_OP_EXCH,
    PTX_OP_CAS,
    PTX_OP_INC,
    PTX_OP_DEC,
    PTX_OP_POPC
};
enum {
    PTX_MODE_UNI = 1,
    PTX_MODE_ALL,
    PTX_MODE_ANY,
    PTX_MODE_BALLOT,
    PTX_MODE_IDX,
    PTX_MODE_UP,
    PTX_MODE_DOWN,
    PTX_MODE_BFLY
};
enum {
    PTX_COMPARE_EQ = 1,
    PTX_COMPARE_NE,
    PTX_COMPARE_LT,
    PTX_COMPARE_LE,
    PTX_COMPARE_GT,
    PTX_COMPARE_GE,
    PTX_COMPARE_NUM,
    PTX_COMPARE_NAN,
    PTX_COMPARE_UNORDERED = 16
};
enum {
    PTX_KIND_F4E = 1,
    PTX_KIND_B4E,
    PTX_KIND_RC8,
    PTX_KIND_ECL,
    PTX_KIND_ECR,
    PTX_KIND_RC16,
    PTX_KIND_WRAP,
    PTX_KIND_CLAMP,
    PTX_KIND_FINITE,
    PTX_KIND_INFINITE,
    PTX_KIND_NUMBER,
    PTX_KIND_NOTANUMBER,
    PTX_KIND_NORMAL,
    PTX_KIND_SUBNORMAL
};
enum { PTX_ROUND_INTEGER = 8 }; /* added by .rni and its like; the rest is 1 + ptx_rounding */
enum { PTX_SAT_PLAIN = 1, PTX_SAT_FINITE };

/* Operands, a letter each; capitals are written, the rest read:
 *   h 16-bit, r 32-bit, l 64-bit, p predicate, x register of any width, v vector or single
 *   register of any width (constants take the instruction's last type), g 32-bit with an optional
 *   second predicate (a|p), q predicate with an optional second (p|q), a address,
 *   i integer constant, t label or function and its lists, m what mov takes;
 *   ? the rest may be left out. */
struct ptx_opcode {
    const char *key;
    const char *operands;
    uint32_t optional; /* bits of enum ptx_field */
    ptx_handler *run;
    enum ptx_flow flow;
    uint8_t target; /* least sm_ */
    bool propagates;
};

/* The row for an opcode as written, its fields filled in; STATUS_UNSUPPORTED names what is not
 * known. */
enum status ptx_opcodes_match(struct view text, uint32_t target, struct ptx_instruction *filled,
                              const struct ptx_opcode **row, struct error *error);

struct ptx_opcode_list {
    const struct ptx_opcode *rows;
    size_t count;
};

/* One list a file of handlers. */
extern const struct ptx_opcode_list ptx_integer_opcodes, ptx_float_opcodes, ptx_half_opcodes,
    ptx_convert_opcodes, ptx_move_opcodes, ptx_access_opcodes, ptx_atomic_opcodes,
    ptx_collective_opcodes, ptx_control_opcodes, ptx_matrix_opcodes;

#define PTX_MAY(field) (1u << PTX_FIELD_##field)
#define PTX_COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static inline uint8_t ptx_field(const struct ptx_instruction *instruction, enum ptx_field field) {
    return instruction->fields[field];
}

#endif
