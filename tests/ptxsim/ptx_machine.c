/* Lanes of any width, and how a fault is told. */
#include "tests/ptxsim/ptx_opcodes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint64_t ptx_machine_get(const struct ptx_warp *warp, const struct ptx_register *home, int lane) {
    const void *lanes = ptx_lanes(warp, home);
    if (home->bytes == 2)
        return ((const uint16_t *)lanes)[lane];
    if (home->bytes == 4)
        return ((const uint32_t *)lanes)[lane];
    return ((const uint64_t *)lanes)[lane];
}

void ptx_machine_set(const struct ptx_warp *warp, const struct ptx_register *home, int lane,
                     uint64_t bits) {
    void *lanes = ptx_lanes(warp, home);
    if (home->bytes == 2)
        ((uint16_t *)lanes)[lane] = (uint16_t)bits;
    else if (home->bytes == 4)
        ((uint32_t *)lanes)[lane] = (uint32_t)bits;
    else
        ((uint64_t *)lanes)[lane] = bits;
}

static uint32_t join(uint32_t op, uint32_t a, uint32_t b) {
    if (op == PTX_OP_AND)
        return a & b;
    if (op == PTX_OP_OR)
        return a | b;
    return op == PTX_OP_XOR ? a ^ b : a;
}

bool ptx_machine_set_predicates(struct ptx_warp *warp, const struct ptx_instruction *instruction,
                                uint32_t result, uint32_t mask) {
    const bool pair = instruction->write_count == 2;
    const bool joined = instruction->operand_count > instruction->write_count + 2;
    const uint32_t op = ptx_field(instruction, PTX_FIELD_OP);
    const uint32_t other =
        joined ? ptx_predicate(warp, &instruction->operands[instruction->operand_count - 1]) : 0;
    ptx_set_predicate(warp, &instruction->operands[0], join(op, result, other), mask);
    if (pair)
        ptx_set_predicate(warp, &instruction->operands[1], join(op, ~result, other), mask);
    return true;
}

static void place_of(const struct ptx_warp *warp, int lane, uint32_t thread[3]) {
    const uint32_t *block = warp->block->launch->block;
    const uint32_t linear = warp->index * PTX_LANES + (uint32_t)lane;
    thread[0] = linear % block[0];
    thread[1] = linear / block[0] % block[1];
    thread[2] = linear / block[0] / block[1];
}

bool ptx_machine_fault(struct ptx_warp *warp, const struct ptx_instruction *instruction, int lane,
                       enum ptxsim_fault_kind kind, const char *format, ...) {
    struct ptxsim_report *report = &warp->block->report;
    if (report->fault != PTXSIM_FAULT_NONE)
        return false;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    report->fault = kind;
    report->kernel = warp->program->kernel.name;
    report->line = instruction->line;
    memcpy(report->block, warp->block->index, sizeof report->block);
    place_of(warp, lane, report->thread);
    error_set(&warp->block->error, STATUS_DEVICE,
              "kernel '%s', PTX line %u, '%.*s', block (%u,%u,%u), thread (%u,%u,%u): %s: %s",
              report->kernel, report->line, (int)instruction->text.length, instruction->text.bytes,
              report->block[0], report->block[1], report->block[2], report->thread[0],
              report->thread[1], report->thread[2], ptxsim_fault_name(kind), text);
    return false;
}
