/* Matching of opcodes to rows, and the meaning of each modifier. */
#include "tests/ptxsim/ptx_opcodes.h"

#include <string.h>

struct modifier {
    const char *name;
    uint8_t field, value;
};

static const struct modifier modifiers[] = {
    {"rn", PTX_FIELD_ROUND, 1},
    {"rz", PTX_FIELD_ROUND, 2},
    {"rm", PTX_FIELD_ROUND, 3},
    {"rp", PTX_FIELD_ROUND, 4},
    {"rna", PTX_FIELD_ROUND, 5},
    {"rni", PTX_FIELD_ROUND, PTX_ROUND_INTEGER + 1},
    {"rzi", PTX_FIELD_ROUND, PTX_ROUND_INTEGER + 2},
    {"rmi", PTX_FIELD_ROUND, PTX_ROUND_INTEGER + 3},
    {"rpi", PTX_FIELD_ROUND, PTX_ROUND_INTEGER + 4},
    {"ftz", PTX_FIELD_FTZ, 1},
    {"sat", PTX_FIELD_SAT, PTX_SAT_PLAIN},
    {"satfinite", PTX_FIELD_SAT, PTX_SAT_FINITE},
    {"approx", PTX_FIELD_APPROX, 1},
    {"full", PTX_FIELD_APPROX, 2},
    {"eq", PTX_FIELD_COMPARE, PTX_COMPARE_EQ},
    {"ne", PTX_FIELD_COMPARE, PTX_COMPARE_NE},
    {"lt", PTX_FIELD_COMPARE, PTX_COMPARE_LT},
    {"le", PTX_FIELD_COMPARE, PTX_COMPARE_LE},
    {"gt", PTX_FIELD_COMPARE, PTX_COMPARE_GT},
    {"ge", PTX_FIELD_COMPARE, PTX_COMPARE_GE},
    {"lo", PTX_FIELD_COMPARE, PTX_COMPARE_LT},
    {"ls", PTX_FIELD_COMPARE, PTX_COMPARE_LE},
    {"hi", PTX_FIELD_COMPARE, PTX_COMPARE_GT},
    {"hs", PTX_FIELD_COMPARE, PTX_COMPARE_GE},
    {"equ", PTX_FIELD_COMPARE, PTX_COMPARE_EQ | PTX_COMPARE_UNORDERED},
    {"neu", PTX_FIELD_COMPARE, PTX_COMPARE_NE | PTX_COMPARE_UNORDERED},
    {"ltu", PTX_FIELD_COMPARE, PTX_COMPARE_LT | PTX_COMPARE_UNORDERED},
    {"leu", PTX_FIELD_COMPARE, PTX_COMPARE_LE | PTX_COMPARE_UNORDERED},
    {"gtu", PTX_FIELD_COMPARE, PTX_COMPARE_GT | PTX_COMPARE_UNORDERED},
    {"geu", PTX_FIELD_COMPARE, PTX_COMPARE_GE | PTX_COMPARE_UNORDERED},
    {"num", PTX_FIELD_COMPARE, PTX_COMPARE_NUM},
    {"nan", PTX_FIELD_COMPARE, PTX_COMPARE_NAN},
    {"add", PTX_FIELD_OP, PTX_OP_ADD},
    {"min", PTX_FIELD_OP, PTX_OP_MIN},
    {"max", PTX_FIELD_OP, PTX_OP_MAX},
    {"and", PTX_FIELD_OP, PTX_OP_AND},
    {"or", PTX_FIELD_OP, PTX_OP_OR},
    {"xor", PTX_FIELD_OP, PTX_OP_XOR},
    {"exch", PTX_FIELD_OP, PTX_OP_EXCH},
    {"cas", PTX_FIELD_OP, PTX_OP_CAS},
    {"inc", PTX_FIELD_OP, PTX_OP_INC},
    {"dec", PTX_FIELD_OP, PTX_OP_DEC},
    {"popc", PTX_FIELD_OP, PTX_OP_POPC},
    {"global", PTX_FIELD_SPACE, PTX_GLOBAL},
    {"shared", PTX_FIELD_SPACE, PTX_SHARED},
    {"shared::cta", PTX_FIELD_SPACE, PTX_SHARED},
    {"local", PTX_FIELD_SPACE, PTX_LOCAL},
    {"param", PTX_FIELD_SPACE, PTX_PARAM},
    {"param::entry", PTX_FIELD_SPACE, PTX_PARAM},
    {"param::func", PTX_FIELD_SPACE, PTX_PARAM},
    {"const", PTX_FIELD_SPACE, PTX_CONST},
    {"v2", PTX_FIELD_VECTOR, 2},
    {"v4", PTX_FIELD_VECTOR, 4},
    {"v8", PTX_FIELD_VECTOR, 8},
    {"uni", PTX_FIELD_MODE, PTX_MODE_UNI},
    {"all", PTX_FIELD_MODE, PTX_MODE_ALL},
    {"any", PTX_FIELD_MODE, PTX_MODE_ANY},
    {"ballot", PTX_FIELD_MODE, PTX_MODE_BALLOT},
    {"idx", PTX_FIELD_MODE, PTX_MODE_IDX},
    {"up", PTX_FIELD_MODE, PTX_MODE_UP},
    {"down", PTX_FIELD_MODE, PTX_MODE_DOWN},
    {"bfly", PTX_FIELD_MODE, PTX_MODE_BFLY},
    {"nc", PTX_FIELD_CACHE, 1},
    {"ca", PTX_FIELD_CACHE, 1},
    {"cg", PTX_FIELD_CACHE, 1},
    {"cs", PTX_FIELD_CACHE, 1},
    {"lu", PTX_FIELD_CACHE, 1},
    {"cv", PTX_FIELD_CACHE, 1},
    {"wb", PTX_FIELD_CACHE, 1},
    {"wt", PTX_FIELD_CACHE, 1},
    {"L1::evict_normal", PTX_FIELD_CACHE, 1},
    {"L1::evict_unchanged", PTX_FIELD_CACHE, 1},
    {"L1::evict_first", PTX_FIELD_CACHE, 1},
    {"L1::evict_last", PTX_FIELD_CACHE, 1},
    {"L1::no_allocate", PTX_FIELD_CACHE, 1},
    {"L2::evict_first", PTX_FIELD_CACHE, 1},
    {"L2::evict_last", PTX_FIELD_CACHE, 1},
    {"L2::evict_normal", PTX_FIELD_CACHE, 1},
    {"L2::64B", PTX_FIELD_CACHE, 1},
    {"L2::128B", PTX_FIELD_CACHE, 1},
    {"L2::256B", PTX_FIELD_CACHE, 1},
    {"weak", PTX_FIELD_MEMORY_MODEL, 1},
    {"volatile", PTX_FIELD_MEMORY_MODEL, 1},
    {"relaxed", PTX_FIELD_MEMORY_MODEL, 1},
    {"acquire", PTX_FIELD_MEMORY_MODEL, 1},
    {"release", PTX_FIELD_MEMORY_MODEL, 1},
    {"acq_rel", PTX_FIELD_MEMORY_MODEL, 1},
    {"sc", PTX_FIELD_MEMORY_MODEL, 1},
    {"cta", PTX_FIELD_MEMORY_MODEL, 1},
    {"cluster", PTX_FIELD_MEMORY_MODEL, 1},
    {"gpu", PTX_FIELD_MEMORY_MODEL, 1},
    {"gl", PTX_FIELD_MEMORY_MODEL, 1},
    {"sys", PTX_FIELD_MEMORY_MODEL, 1},
    {"noftz", PTX_FIELD_MEMORY_MODEL, 1},
    {"relu", PTX_FIELD_RELU, 1},
    {"x1", PTX_FIELD_COUNT_OF, 1},
    {"x2", PTX_FIELD_COUNT_OF, 2},
    {"x4", PTX_FIELD_COUNT_OF, 4},
    {"trans", PTX_FIELD_TRANS, 1},
    {"f4e", PTX_FIELD_KIND, PTX_KIND_F4E},
    {"b4e", PTX_FIELD_KIND, PTX_KIND_B4E},
    {"rc8", PTX_FIELD_KIND, PTX_KIND_RC8},
    {"ecl", PTX_FIELD_KIND, PTX_KIND_ECL},
    {"ecr", PTX_FIELD_KIND, PTX_KIND_ECR},
    {"rc16", PTX_FIELD_KIND, PTX_KIND_RC16},
    {"wrap", PTX_FIELD_KIND, PTX_KIND_WRAP},
    {"clamp", PTX_FIELD_KIND, PTX_KIND_CLAMP},
    {"finite", PTX_FIELD_KIND, PTX_KIND_FINITE},
    {"infinite", PTX_FIELD_KIND, PTX_KIND_INFINITE},
    {"number", PTX_FIELD_KIND, PTX_KIND_NUMBER},
    {"notanumber", PTX_FIELD_KIND, PTX_KIND_NOTANUMBER},
    {"normal", PTX_FIELD_KIND, PTX_KIND_NORMAL},
    {"subnormal", PTX_FIELD_KIND, PTX_KIND_SUBNORMAL},
};

static const struct modifier *find_modifier(struct view part) {
    for (size_t i = 0; i < PTX_COUNT(modifiers); i++)
        if (part.length > 0 && part.bytes[0] == modifiers[i].name[0] &&
            view_is(part, modifiers[i].name))
            return &modifiers[i];
    return NULL;
}

/* Cut the first dot-separated part off. */
static struct view next_part(struct view *rest) {
    const char *dot = rest->length > 0 ? memchr(rest->bytes, '.', rest->length) : NULL;
    const size_t length = dot ? (size_t)(dot - rest->bytes) : rest->length;
    const struct view part = {rest->bytes, length};
    const size_t skipped = dot ? length + 1 : length;
    *rest = (struct view){rest->bytes + skipped, rest->length - skipped};
    return part;
}

static void record(struct ptx_instruction *filled, struct view part) {
    const enum ptx_type type = ptx_types_find(part);
    const struct modifier *modifier = find_modifier(part);
    if (type != PTX_NONE && filled->type_count < PTX_TYPES_MAX)
        filled->types[filled->type_count++] = (uint8_t)type;
    else if (modifier)
        filled->fields[modifier->field] = modifier->value;
}

static bool may_stand(struct view part, uint32_t optional) {
    if (ptx_types_find(part) != PTX_NONE)
        return optional & PTX_MAY(TYPE);
    const struct modifier *modifier = find_modifier(part);
    return modifier && (optional >> modifier->field & 1);
}

/* Whether a key begins with the same part: most rows differ there, and modules have many lines. */
static bool begins_alike(struct view first, const char *key) {
    return strncmp(first.bytes, key, first.length) == 0 &&
           (key[first.length] == '\0' || key[first.length] == '.');
}

/* `culprit` is the first part that the row cannot take, of the row that gets furthest. */
static bool matches(struct view text, const struct ptx_opcode *row, struct ptx_instruction *filled,
                    struct view *culprit) {
    struct view key = view_of(row->key);
    struct view wanted = next_part(&key);
    bool done = false;
    while (text.length > 0) {
        const struct view part = next_part(&text);
        if (!done && view_equal(part, wanted)) {
            done = key.length == 0;
            wanted = next_part(&key);
        } else if (!may_stand(part, row->optional)) {
            if (part.bytes > culprit->bytes)
                *culprit = part;
            return false;
        }
        record(filled, part);
    }
    return done;
}

static const struct ptx_opcode_list *const lists[] = {
    &ptx_integer_opcodes, &ptx_float_opcodes,  &ptx_half_opcodes,   &ptx_convert_opcodes,
    &ptx_move_opcodes,    &ptx_access_opcodes, &ptx_atomic_opcodes, &ptx_collective_opcodes,
    &ptx_control_opcodes, &ptx_matrix_opcodes,
};

static enum status check_target(struct view text, uint32_t target, const struct ptx_opcode *row,
                                struct error *error) {
    if (target >= row->target)
        return STATUS_OK;
    return error_set(error, STATUS_UNSUPPORTED, "'%.*s' needs sm_%d, the module is for sm_%u",
                     (int)text.length, text.bytes, row->target, target);
}

enum status ptx_opcodes_match(struct view text, uint32_t target, struct ptx_instruction *filled,
                              const struct ptx_opcode **row, struct error *error) {
    struct view culprit = {text.bytes, text.length}, rest = text;
    const struct view first = next_part(&rest);
    for (size_t l = 0; l < PTX_COUNT(lists); l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            if (!begins_alike(first, lists[l]->rows[i].key))
                continue;
            filled->type_count = 0;
            memset(filled->fields, 0, sizeof filled->fields);
            *row = &lists[l]->rows[i];
            if (matches(text, *row, filled, &culprit))
                return check_target(text, target, *row, error);
        }
    }
    if (culprit.bytes == text.bytes)
        return error_set(error, STATUS_UNSUPPORTED, "unknown instruction '%.*s'", (int)text.length,
                         text.bytes);
    return error_set(error, STATUS_UNSUPPORTED, "'.%.*s' is not known in '%.*s'",
                     (int)culprit.length, culprit.bytes, (int)text.length, text.bytes);
}
