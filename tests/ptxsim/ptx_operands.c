/* Operands as written to registers, constants, addresses and targets, led by a row's letters. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptxsim/ptx_decode.h"

static enum status new_register(struct ptx_decoder *decoder, uint8_t bytes,
                                struct ptx_register *home) {
    struct ptx_program *program = decoder->program;
    if (program->register_count >= UINT16_MAX)
        return ptx_decode_fail(decoder, "more than 65535 registers");
    *home = (struct ptx_register){.offset = program->register_bytes,
                                  .id = (uint16_t)program->register_count++,
                                  .bytes = bytes};
    program->register_bytes += (bytes ? bytes : 2u) * PTX_LANES;
    return STATUS_OK;
}

/* A constant in every lane; the same constant is stored once. */
static enum status constant(struct ptx_decoder *decoder, uint64_t value, uint8_t bytes,
                            struct ptx_register *home) {
    struct ptx_program *program = decoder->program;
    const uint32_t size = (bytes ? bytes : 2u) * PTX_LANES;
    uint8_t lanes[8 * PTX_LANES];
    const uint32_t mask = value ? PTX_ALL_LANES : 0;
    memset(lanes, 0, sizeof lanes);
    for (int lane = 0; lane < PTX_LANES && bytes > 0; lane++)
        memcpy(lanes + lane * bytes, &value, bytes);
    if (bytes == 0)
        memcpy(lanes, &mask, sizeof mask);
    *home = (struct ptx_register){.bytes = bytes, .constant = true};
    for (uint32_t at = 0; at + size <= program->pool_bytes; at += 64) {
        if (memcmp(program->pool + at, lanes, size) == 0) {
            home->offset = at;
            return STATUS_OK;
        }
    }
    if (program->pool_bytes + size > program->pool_capacity) {
        const uint32_t capacity = (program->pool_capacity + size) * 2;
        uint8_t *grown = realloc(program->pool, capacity);
        if (!grown)
            return error_no_memory(decoder->error, "PTX constants");
        program->pool = grown;
        program->pool_capacity = capacity;
    }
    memcpy(program->pool + program->pool_bytes, lanes, size);
    home->offset = program->pool_bytes;
    program->pool_bytes += size;
    return STATUS_OK;
}

static enum status special(struct ptx_decoder *decoder, uint8_t kind, uint8_t bytes,
                           struct ptx_register *home) {
    struct ptx_program *program = decoder->program;
    for (uint32_t i = 0; i < program->special_count; i++) {
        if (program->specials[i].special == kind) {
            *home = program->specials[i].home;
            return STATUS_OK;
        }
    }
    struct ptx_special_use *grown =
        realloc(program->specials, (program->special_count + 1) * sizeof *grown);
    if (!grown)
        return error_no_memory(decoder->error, "PTX special registers");
    program->specials = grown;
    TRY(new_register(decoder, bytes, home));
    grown[program->special_count++] = (struct ptx_special_use){kind, *home};
    return STATUS_OK;
}

static void home_of(const struct ptx_variable *variable, uint32_t index,
                    struct ptx_register *home) {
    const uint8_t bytes = (uint8_t)ptx_types_bytes(variable->type);
    *home = (struct ptx_register){
        .offset = (uint32_t)variable->value + index * (bytes ? bytes : 2u) * PTX_LANES,
        .id = (uint16_t)(variable->first_id + index),
        .bytes = bytes,
    };
}

/* A name: register, special register, or the address of a variable. */
static enum status named(struct ptx_decoder *decoder, struct view name, uint64_t offset,
                         uint8_t bytes, struct ptx_register *home) {
    uint8_t kind, width;
    uint32_t index = 0;
    if (name.bytes[0] == '%' && ptx_special_find(name, &kind, &width))
        return special(decoder, kind, width, home);
    if (view_is(name, "WARP_SZ"))
        return constant(decoder, PTX_LANES, bytes, home);
    const struct ptx_variable *variable = ptx_decode_variable(decoder, name, &index);
    if (!variable)
        return ptx_decode_fail(decoder, "'%.*s' is not declared", (int)name.length, name.bytes);
    if (variable->space != PTX_REGISTER)
        return constant(decoder, variable->value + offset, bytes, home);
    home_of(variable, index, home);
    return STATUS_OK;
}

static uint64_t literal(const struct ptx_operand *operand, uint8_t bytes) {
    double wide;
    float narrow;
    uint32_t bits;
    if (operand->kind == PTX_OPERAND_DECIMAL && bytes == 4) {
        memcpy(&wide, &operand->bits, sizeof wide);
        narrow = (float)wide;
        memcpy(&bits, &narrow, sizeof bits);
        return bits;
    }
    return operand->bits;
}

/* One register or constant of `bytes` (for constants; 0xff: any register). */
static enum status value(struct ptx_decoder *decoder, const struct ptx_operand *operand,
                         uint8_t constant_bytes, bool exact, struct ptx_register *home) {
    if (operand->kind == PTX_OPERAND_NAME)
        TRY(named(decoder, operand->name, operand->bits, constant_bytes, home));
    else if (operand->kind <= PTX_OPERAND_DECIMAL)
        TRY(constant(decoder, literal(operand, constant_bytes), constant_bytes, home));
    else
        return ptx_decode_fail(decoder, "a register or constant is wanted");
    if (exact && home->bytes != constant_bytes)
        return ptx_decode_fail(decoder, "an operand has %u bytes, not %u", home->bytes,
                               constant_bytes);
    if ((home->bytes == 0) != (constant_bytes == 0))
        return ptx_decode_fail(decoder, "a predicate where none can be, or none where one must be");
    home->negated = operand->negated;
    return STATUS_OK;
}

static enum status push(struct ptx_decoder *decoder, struct ptx_instruction *in,
                        const struct ptx_register *home) {
    if (in->operand_count == PTX_OPERANDS_MAX)
        return ptx_decode_fail(decoder, "too many operands");
    in->operands[in->operand_count++] = *home;
    return STATUS_OK;
}

static enum status push_written(struct ptx_decoder *decoder, struct ptx_instruction *in,
                                const struct ptx_operand *operand, uint8_t bytes, bool exact) {
    struct ptx_register home = {0};
    if (operand->kind == PTX_OPERAND_NAME && view_is(operand->name, "_"))
        TRY(new_register(decoder, bytes, &home)); /* a sink */
    else
        TRY(value(decoder, operand, bytes, exact, &home));
    if (home.constant)
        return ptx_decode_fail(decoder, "the result is no register");
    in->write_count++;
    return push(decoder, in, &home);
}

static uint8_t last_bytes(const struct ptx_instruction *in) {
    const uint32_t bytes =
        in->type_count ? ptx_types_bytes((enum ptx_type)in->types[in->type_count - 1]) : 4;
    return bytes < 2 ? 2 : (uint8_t)bytes;
}

static uint8_t width_of(char letter, const struct ptx_instruction *in) {
    switch (tolower((unsigned char)letter)) {
    case 'h':
        return 2;
    case 'r':
    case 'g':
        return 4;
    case 'l':
        return 8;
    case 'p':
    case 'q':
        return 0;
    default:
        return last_bytes(in);
    }
}

static enum status pair(struct ptx_decoder *decoder, struct ptx_instruction *in,
                        const struct ptx_operand *operand, uint8_t bytes) {
    TRY(push_written(decoder, in, operand, bytes, true));
    if (operand->second.length == 0)
        return STATUS_OK;
    const struct ptx_operand second = {.kind = PTX_OPERAND_NAME, .name = operand->second};
    return push_written(decoder, in, &second, 0, true);
}

static enum status vector(struct ptx_decoder *decoder, struct ptx_instruction *in,
                          const struct ptx_operand *operand, bool written, int *vectors) {
    const bool many = operand->kind == PTX_OPERAND_VECTOR;
    const struct ptx_operand *items = many ? operand->items : operand;
    const uint32_t count = many ? operand->item_count : 1;
    /* Fragments are whole registers whatever their elements are. */
    const uint8_t bytes = in->flow == PTX_FLOW_WHOLE_WARP ? 4 : last_bytes(in);
    if (*vectors < 4)
        in->vector_counts[(*vectors)++] = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++) {
        struct ptx_register home = {0};
        if (written) {
            TRY(push_written(decoder, in, &items[i], bytes, false));
        } else {
            TRY(value(decoder, &items[i], bytes, false, &home));
            TRY(push(decoder, in, &home));
        }
    }
    return STATUS_OK;
}

/* The base register, or a constant with the whole address. */
static enum status address(struct ptx_decoder *decoder, struct ptx_instruction *in,
                           const struct ptx_operand *operand, int *addresses) {
    struct ptx_register home = {0};
    if (operand->kind != PTX_OPERAND_ADDRESS)
        return ptx_decode_fail(decoder, "an address in brackets is wanted");
    if (operand->name.length == 0)
        TRY(constant(decoder, operand->bits, 8, &home));
    else
        TRY(named(decoder, operand->name, 0, 8, &home));
    if (home.bytes != 4 && home.bytes != 8)
        return ptx_decode_fail(decoder, "an address register has 4 or 8 bytes");
    in->offsets[(*addresses)++ & 1] = operand->name.length ? (int64_t)operand->bits : 0;
    return push(decoder, in, &home);
}

/* mov: packs, unpacks, or copies. */
static enum status moved(struct ptx_decoder *decoder, struct ptx_instruction *in,
                         const struct ptx_operand *operand, bool written) {
    if (operand->kind == PTX_OPERAND_VECTOR) {
        const uint8_t whole = last_bytes(in);
        const uint8_t bytes = (uint8_t)(whole / (operand->item_count ? operand->item_count : 1));
        for (uint32_t i = 0; i < operand->item_count; i++) {
            struct ptx_register home = {0};
            if (written) {
                TRY(push_written(decoder, in, &operand->items[i], bytes, true));
                continue;
            }
            TRY(value(decoder, &operand->items[i], bytes, true, &home));
            TRY(push(decoder, in, &home));
        }
        return STATUS_OK;
    }
    if (written)
        return push_written(decoder, in, operand, last_bytes(in), true);
    struct ptx_register home = {0};
    TRY(value(decoder, operand, last_bytes(in), false, &home));
    if (home.bytes != last_bytes(in)) /* %clock64 and its like keep their width */
        return ptx_decode_fail(decoder, "an operand has %u bytes, not %u", home.bytes,
                               last_bytes(in));
    return push(decoder, in, &home);
}

static enum status one(struct ptx_decoder *decoder, struct ptx_instruction *in, char letter,
                       const struct ptx_operand *operand, int counts[2]) {
    struct ptx_register home = {0};
    const uint8_t bytes = width_of(letter, in);
    switch (letter) {
    case 'i':
        if (operand->kind != PTX_OPERAND_INTEGER)
            return ptx_decode_fail(decoder, "an integer constant is wanted");
        in->immediate = (int64_t)operand->bits;
        return STATUS_OK;
    case 'a':
        return address(decoder, in, operand, &counts[0]);
    case 'V':
    case 'v':
        return vector(decoder, in, operand, letter == 'V', &counts[1]);
    case 'M':
    case 'm':
        return moved(decoder, in, operand, letter == 'M');
    case 'G':
    case 'Q':
        return pair(decoder, in, operand, bytes);
    default:
        break;
    }
    const bool exact = letter != 'x' && letter != 'X';
    if (isupper((unsigned char)letter))
        return push_written(decoder, in, operand, bytes, exact);
    TRY(value(decoder, operand, bytes, exact, &home));
    return push(decoder, in, &home);
}

enum status ptx_operands_decode(struct ptx_decoder *decoder, const struct ptx_opcode *row,
                                struct ptx_instruction *in) {
    const struct ptx_statement *statement = decoder->statement;
    uint32_t at = 0;
    int counts[2] = {0, 0};
    bool optional = false;
    for (const char *letter = row->operands; *letter != '\0' && *letter != 't'; letter++) {
        if (*letter == '?') {
            optional = true;
            continue;
        }
        if (at == statement->operand_count && optional)
            return STATUS_OK;
        if (at == statement->operand_count)
            return ptx_decode_fail(decoder, "an operand is missing");
        TRY(one(decoder, in, *letter, &statement->operands[at++], counts));
    }
    if (strchr(row->operands, 't') == NULL && at < statement->operand_count)
        return ptx_decode_fail(decoder, "an operand too many");
    return STATUS_OK;
}

enum status ptx_operands_guard(struct ptx_decoder *decoder, struct ptx_instruction *in) {
    if (decoder->statement->guard.length == 0)
        return STATUS_OK;
    const struct ptx_operand operand = {.kind = PTX_OPERAND_NAME,
                                        .name = decoder->statement->guard,
                                        .negated = decoder->statement->guard_negated};
    in->has_guard = true;
    return value(decoder, &operand, 0, true, &in->guard);
}
