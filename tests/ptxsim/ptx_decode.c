/* Layout of a kernel's program: registers, shared, local and call-parameter memory, code with
 * callees first (so that lanes inside a call, whose pc is lower, run until they return), and then
 * each instruction. Every function has its registers once: recursion is refused. */
#include "tests/ptxsim/ptx_decode.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptxsim/ptx_access.h"

enum status ptx_decode_fail(struct ptx_decoder *decoder, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(decoder->error, STATUS_UNSUPPORTED, "line %u: '%.*s': %s",
                     decoder->statement ? decoder->statement->line : decoder->function->line,
                     decoder->statement ? (int)decoder->statement->opcode.length : 0,
                     decoder->statement ? decoder->statement->opcode.bytes : "", text);
}

/* ---- names ---- */
static bool is_numbered(const struct ptx_variable *variable, struct view name, uint32_t *index) {
    const size_t prefix = variable->name.length;
    if (name.length <= prefix || name.length > prefix + 8 ||
        memcmp(name.bytes, variable->name.bytes, prefix) != 0)
        return false;
    uint32_t number = 0;
    for (size_t i = prefix; i < name.length; i++) {
        if (name.bytes[i] < '0' || name.bytes[i] > '9')
            return false;
        number = number * 10 + (uint32_t)(name.bytes[i] - '0');
    }
    *index = number;
    return number < variable->numbered;
}

static struct ptx_variable *find_in(struct ptx_variable *list, struct view name, uint32_t scope,
                                    uint32_t *index) {
    for (struct ptx_variable *variable = list; variable; variable = variable->next) {
        if (variable->scope != scope)
            continue;
        if (variable->numbered ? is_numbered(variable, name, index)
                               : view_equal(variable->name, name))
            return variable;
    }
    return NULL;
}

struct ptx_variable *ptx_decode_variable(const struct ptx_decoder *decoder, struct view name,
                                         uint32_t *index) {
    const struct ptx_function *function = decoder->function;
    uint32_t scope = decoder->statement ? decoder->statement->scope : 0;
    struct ptx_variable *found;
    *index = 0;
    for (;;) {
        found = find_in(function->variables, name, scope, index);
        if (found || scope == 0)
            break;
        scope = function->scope_parents[scope];
    }
    if (!found)
        found = find_in(function->params, name, 0, index);
    if (!found)
        found = find_in(function->results, name, 0, index);
    return found ? found : find_in(decoder->syntax->variables, name, 0, index);
}

struct ptx_function *ptx_decode_function(const struct ptx_syntax *syntax, struct view name) {
    struct ptx_function *found = NULL;
    for (struct ptx_function *f = syntax->functions; f; f = f->next)
        if (view_equal(f->name, name) && (!found || f->has_body))
            found = f;
    return found;
}

/* ---- layout ---- */
static bool is_call(const struct ptx_statement *statement) {
    const struct view opcode = statement->opcode;
    return opcode.length >= 4 && memcmp(opcode.bytes, "call", 4) == 0 &&
           (opcode.length == 4 || opcode.bytes[4] == '.');
}

/* The called name of `call (result), name, (params);` and where its lists are. */
static struct view callee_of(const struct ptx_statement *statement,
                             const struct ptx_operand **results,
                             const struct ptx_operand **params) {
    uint32_t at = 0;
    *results = *params = NULL;
    if (at < statement->operand_count && statement->operands[at].kind == PTX_OPERAND_LIST)
        *results = &statement->operands[at++];
    const struct view name =
        at < statement->operand_count ? statement->operands[at++].name : (struct view){0};
    if (at < statement->operand_count && statement->operands[at].kind == PTX_OPERAND_LIST)
        *params = &statement->operands[at];
    return name;
}

static enum status collect(struct ptx_decoder *decoder, struct ptx_function *function) {
    const struct ptx_operand *results, *params;
    decoder->function = function;
    if (function->visit == 1)
        return ptx_decode_fail(decoder, "'%.*s' calls itself", (int)function->name.length,
                               function->name.bytes);
    if (function->visit == 2)
        return STATUS_OK;
    function->visit = 1;
    for (uint32_t i = 0; i < function->statement_count; i++) {
        if (!is_call(&function->statements[i]))
            continue;
        const struct view name = callee_of(&function->statements[i], &results, &params);
        struct ptx_function *callee = ptx_decode_function(decoder->syntax, name);
        if (callee && callee->has_body)
            TRY(collect(decoder, callee));
    }
    function->visit = 2;
    if (decoder->function_count == PTX_FUNCTIONS_MAX)
        return ptx_decode_fail(decoder, "more than %d functions", PTX_FUNCTIONS_MAX);
    decoder->functions[decoder->function_count++] = function;
    return STATUS_OK;
}

static uint32_t place(uint32_t *bytes, const struct ptx_variable *variable) {
    const uint32_t at = (*bytes + variable->align - 1) / variable->align * variable->align;
    *bytes = at + (uint32_t)variable->bytes;
    return at;
}

static enum status place_variable(struct ptx_decoder *decoder, struct ptx_variable *variable,
                                  uint32_t *shared) {
    struct ptx_program *program = decoder->program;
    const uint32_t count = variable->numbered ? variable->numbered : 1;
    const uint32_t bytes = ptx_types_bytes(variable->type);
    switch ((int)variable->space) {
    case PTX_REGISTER:
        if (variable->vector > 1 || bytes == 1)
            return ptx_decode_fail(decoder, "a register '%.*s' of a vector or of 8 bits",
                                   (int)variable->name.length, variable->name.bytes);
        if (program->register_count + count > UINT16_MAX)
            return ptx_decode_fail(decoder, "more than 65535 registers");
        variable->value = program->register_bytes;
        variable->first_id = (uint16_t)program->register_count;
        program->register_count += count;
        program->register_bytes += count * (bytes ? bytes : 2) * PTX_LANES;
        return STATUS_OK;
    case PTX_LOCAL:
        variable->value = place(&program->kernel.local_bytes, variable);
        return STATUS_OK;
    case PTX_SHARED:
        variable->value = place(shared, variable);
        return STATUS_OK;
    case PTX_PARAM:
        variable->value = PTX_CALL_PARAMS + place(&program->call_param_bytes, variable);
        return STATUS_OK;
    default:
        return ptx_decode_fail(decoder, "a global variable inside a function");
    }
}

static enum status place_list(struct ptx_decoder *decoder, struct ptx_variable *list,
                              uint32_t *shared) {
    for (struct ptx_variable *variable = list; variable; variable = variable->next)
        TRY(place_variable(decoder, variable, shared));
    return STATUS_OK;
}

/* Shared variables of the module count where the kernel names them; dynamic ones come last. */
static void place_shared(struct ptx_decoder *decoder, const struct ptx_operand *operand,
                         bool dynamic, uint32_t *shared) {
    uint32_t index;
    for (uint32_t i = 0; i < operand->item_count; i++)
        place_shared(decoder, &operand->items[i], dynamic, shared);
    if (operand->name.length == 0 || operand->name.bytes[0] == '%')
        return;
    struct ptx_variable *variable = ptx_decode_variable(decoder, operand->name, &index);
    const bool mine = variable && variable->space == PTX_SHARED &&
                      find_in(decoder->syntax->variables, operand->name, 0, &index) == variable;
    if (!mine || variable->is_placed || (variable->is_extern || variable->is_array_open) != dynamic)
        return;
    variable->is_placed = true;
    if (dynamic)
        variable->value = *shared;
    else
        variable->value = place(shared, variable);
}

static void place_module_shared(struct ptx_decoder *decoder, bool dynamic, uint32_t *shared) {
    for (uint32_t f = 0; f < decoder->function_count; f++) {
        decoder->function = decoder->functions[f];
        for (uint32_t i = 0; i < decoder->function->statement_count; i++) {
            decoder->statement = &decoder->function->statements[i];
            for (uint32_t o = 0; o < decoder->statement->operand_count; o++)
                place_shared(decoder, &decoder->statement->operands[o], dynamic, shared);
        }
    }
    decoder->statement = NULL;
}

static enum status place_params(struct ptx_decoder *decoder, struct ptx_function *kernel) {
    struct ptxsim_kernel *out = &decoder->program->kernel;
    uint32_t count = 0;
    for (struct ptx_variable *v = kernel->params; v; v = v->next)
        count++;
    struct ptxsim_param *params = arena_calloc(decoder->syntax->arena, count + 1, sizeof *params);
    out->name = arena_copy_text(decoder->syntax->arena, kernel->name.bytes, kernel->name.length);
    if (!params || !out->name)
        return error_no_memory(decoder->error, "PTX kernel");
    out->params = params;
    for (struct ptx_variable *v = kernel->params; v; v = v->next) {
        v->value = place(&out->param_bytes, v);
        params[out->param_count++] = (struct ptxsim_param){(uint32_t)v->value, (uint32_t)v->bytes};
    }
    return STATUS_OK;
}

static enum status lay_out(struct ptx_decoder *decoder, struct ptx_function *kernel) {
    uint32_t shared = 0;
    for (struct ptx_variable *v = decoder->syntax->variables; v; v = v->next)
        if (v->space == PTX_SHARED)
            v->is_placed = false;
    for (uint32_t f = 0; f < decoder->function_count; f++) {
        decoder->function = decoder->functions[f];
        TRY(place_list(decoder, decoder->function->variables, &shared));
        if (decoder->function != kernel) {
            TRY(place_list(decoder, decoder->function->params, &shared));
            TRY(place_list(decoder, decoder->function->results, &shared));
        }
    }
    place_module_shared(decoder, false, &shared);
    shared = (shared + 15) / 16 * 16;
    place_module_shared(decoder, true, &shared);
    decoder->program->kernel.shared_bytes = shared;
    decoder->program->kernel.local_bytes = (decoder->program->kernel.local_bytes + 15) / 16 * 16;
    decoder->program->call_param_bytes = (decoder->program->call_param_bytes + 15) / 16 * 16;
    return place_params(decoder, kernel);
}

/* ---- code ---- */
static enum status add_label(struct ptx_decoder *decoder, uint32_t pc) {
    struct ptx_label *label = arena_calloc(decoder->syntax->arena, 1, sizeof *label);
    if (!label)
        return error_no_memory(decoder->error, "PTX label");
    *label = (struct ptx_label){decoder->function, decoder->statement, pc, decoder->labels};
    decoder->labels = label;
    return STATUS_OK;
}

/* Numbers the code; a call is followed by the copy of its results. */
static enum status number(struct ptx_decoder *decoder, uint32_t *count) {
    for (uint32_t f = 0; f < decoder->function_count; f++) {
        decoder->function = decoder->functions[f];
        decoder->function->entry = *count;
        for (uint32_t i = 0; i < decoder->function->statement_count; i++) {
            decoder->statement = &decoder->function->statements[i];
            if (decoder->statement->opcode.length == 0)
                TRY(add_label(decoder, *count));
            else
                *count += is_call(decoder->statement) ? 2 : 1;
        }
        decoder->statement = NULL;
        (*count)++; /* an implicit return */
    }
    return STATUS_OK;
}

/* Labels of inline assembly are local to its scope. */
static const struct ptx_label *find_label(const struct ptx_decoder *decoder, struct view name) {
    uint32_t scope = decoder->statement->scope;
    for (;;) {
        for (const struct ptx_label *label = decoder->labels; label; label = label->next)
            if (label->function == decoder->function && label->statement->scope == scope &&
                view_equal(label->statement->label, name))
                return label;
        if (scope == 0)
            return NULL;
        scope = decoder->function->scope_parents[scope];
    }
}

static enum status decode_branch(struct ptx_decoder *decoder, struct ptx_instruction *in) {
    const struct ptx_operand *last =
        &decoder->statement->operands[decoder->statement->operand_count - 1];
    if (decoder->statement->operand_count == 0)
        return ptx_decode_fail(decoder, "a target is missing");
    const struct ptx_label *label = find_label(decoder, last->name);
    if (!label)
        return ptx_decode_fail(decoder, "no label '%.*s'", (int)last->name.length,
                               last->name.bytes);
    in->target = label->pc;
    if (in->flow == PTX_FLOW_BRANCH)
        return STATUS_OK;
    const struct ptx_statement *list = label->statement;
    if (!list->is_target_list)
        return ptx_decode_fail(decoder, "the label is no .branchtargets");
    in->targets = arena_calloc(decoder->syntax->arena, list->operand_count + 1, sizeof(uint32_t));
    if (!in->targets)
        return error_no_memory(decoder->error, "PTX branch targets");
    for (uint32_t i = 0; i < list->operand_count; i++) {
        const struct ptx_label *target = find_label(decoder, list->operands[i].name);
        if (!target)
            return ptx_decode_fail(decoder, "a branch target that is no label");
        in->targets[in->target_count++] = target->pc;
    }
    return STATUS_OK;
}

/* Copies between a call's parameter variables and the callee's. */
static enum status decode_copies(struct ptx_decoder *decoder, const struct ptx_operand *list,
                                 const struct ptx_variable *formal, bool back,
                                 struct ptx_instruction *in) {
    const uint32_t count = list ? list->item_count : 0;
    in->copies = arena_calloc(decoder->syntax->arena, count + 1, sizeof *in->copies);
    if (!in->copies)
        return error_no_memory(decoder->error, "PTX call");
    for (uint32_t i = 0; i < count; i++, formal = formal->next) {
        uint32_t index;
        const struct ptx_variable *actual =
            ptx_decode_variable(decoder, list->items[i].name, &index);
        if (!formal || !actual || actual->space != PTX_PARAM || formal->space != PTX_PARAM ||
            actual->bytes != formal->bytes)
            return ptx_decode_fail(decoder, "parameters that are no matching .param variables");
        const uint32_t here = (uint32_t)(actual->value - PTX_CALL_PARAMS);
        const uint32_t there = (uint32_t)(formal->value - PTX_CALL_PARAMS);
        in->copies[in->copy_count++] =
            (struct ptx_copy){back ? there : here, back ? here : there, (uint32_t)formal->bytes};
    }
    return STATUS_OK;
}

static enum status decode_call(struct ptx_decoder *decoder, struct ptx_instruction *in) {
    const struct ptx_operand *results, *params;
    const struct view name = callee_of(decoder->statement, &results, &params);
    const struct ptx_function *callee = ptx_decode_function(decoder->syntax, name);
    if (!callee)
        return ptx_decode_fail(decoder, "no function '%.*s'; calls by address are not known",
                               (int)name.length, name.bytes);
    in[1] = in[0];
    in[1].flow = PTX_FLOW_NEXT;
    in[1].has_guard = false;
    in->target = callee->has_body ? callee->entry : UINT32_MAX; /* extern: a fault when reached */
    if (!callee->has_body)
        return STATUS_OK;
    TRY(decode_copies(decoder, params, callee->params, false, &in[0]));
    return decode_copies(decoder, results, callee->results, true, &in[1]);
}

static bool copy_results(struct ptx_warp *warp, const struct ptx_instruction *in, uint32_t mask) {
    const uint32_t size = warp->program->call_param_bytes;
    for (uint32_t i = 0; i < in->copy_count; i++)
        PTX_EACH_LANE(mask, memcpy(warp->call_params + (uint32_t)lane * size + in->copies[i].to,
                                   warp->call_params + (uint32_t)lane * size + in->copies[i].from,
                                   in->copies[i].bytes));
    return true;
}

static enum status decode_statement(struct ptx_decoder *decoder, struct ptx_instruction *in) {
    const struct ptx_statement *statement = decoder->statement;
    const struct ptx_opcode *row;
    const enum status status =
        ptx_opcodes_match(statement->opcode, decoder->syntax->target, in, &row, decoder->error);
    if (status != STATUS_OK) {
        error_context(decoder->error, "line %u", statement->line);
        return status;
    }
    in->run = row->run;
    in->flow = row->flow;
    in->propagates = row->propagates;
    in->line = statement->line;
    in->text = statement->opcode;
    TRY(ptx_operands_guard(decoder, in));
    TRY(ptx_operands_decode(decoder, row, in));
    in->member_operand = (uint8_t)(in->operand_count - 1); /* the mask is always last */
    if (strncmp(row->key, "atom", 4) == 0 || strncmp(row->key, "red.", 4) == 0)
        decoder->program->has_atomics = true;
    if (in->flow == PTX_FLOW_BRANCH || in->flow == PTX_FLOW_INDEXED)
        return decode_branch(decoder, in);
    if (in->flow != PTX_FLOW_CALL)
        return STATUS_OK;
    in->run = copy_results;
    return decode_call(decoder, in);
}

static enum status decode_code(struct ptx_decoder *decoder) {
    uint32_t pc = 0;
    for (uint32_t f = 0; f < decoder->function_count; f++) {
        decoder->function = decoder->functions[f];
        for (uint32_t i = 0; i < decoder->function->statement_count; i++) {
            decoder->statement = &decoder->function->statements[i];
            if (decoder->statement->opcode.length == 0)
                continue;
            TRY(decode_statement(decoder, &decoder->program->code[pc]));
            pc += is_call(decoder->statement) ? 2 : 1;
        }
        decoder->program->code[pc++] = (struct ptx_instruction){
            .flow = PTX_FLOW_RETURN, .line = decoder->function->line, .text = view_of("ret")};
    }
    return STATUS_OK;
}

enum status ptx_decode_kernel(struct ptx_syntax *syntax, struct ptx_function *kernel,
                              struct ptx_program *program, struct error *error) {
    struct ptx_decoder decoder = {.syntax = syntax, .program = program, .error = error};
    uint32_t count = 0;
    program->register_count = 1;
    for (struct ptx_function *f = syntax->functions; f; f = f->next)
        f->visit = 0;
    TRY(collect(&decoder, kernel));
    TRY(lay_out(&decoder, kernel));
    TRY(number(&decoder, &count));
    program->code = calloc(count, sizeof *program->code);
    if (!program->code)
        return error_no_memory(error, "PTX program");
    program->code_count = count;
    TRY(decode_code(&decoder));
    program->entry = kernel->entry;
    program->kernel.threads_max = kernel->threads_max;
    program->kernel.registers = program->register_count - 1;
    return STATUS_OK;
}
