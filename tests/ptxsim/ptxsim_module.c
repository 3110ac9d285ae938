/* Modules: parsed text, variables in device memory, one program a kernel. */
#include <stdlib.h>
#include <string.h>

#include "tests/ptxsim/ptx_decode.h"
#include "tests/ptxsim/ptx_parser.h"

struct ptxsim_module {
    struct ptxsim *machine;
    struct arena arena;
    char *text;
    struct ptx_syntax syntax;
    struct ptx_program *programs;
    uint32_t program_count;
};

static bool in_memory(const struct ptx_variable *variable) {
    return variable->space == PTX_GLOBAL || variable->space == PTX_CONST;
}

static enum status place_variables(struct ptxsim_module *module, struct error *error) {
    for (struct ptx_variable *v = module->syntax.variables; v; v = v->next) {
        if (!in_memory(v) || v->bytes == 0)
            continue;
        TRY(ptx_memory_add_variable(&module->machine->memory, v->bytes, true, &v->value, error));
        v->is_placed = true;
        if (v->data)
            memcpy(ptxsim_memory_host(module->machine, v->value, v->bytes), v->data, v->bytes);
    }
    return STATUS_OK;
}

static struct ptx_variable *find_variable(const struct ptxsim_module *module, struct view name) {
    for (struct ptx_variable *v = module->syntax.variables; v; v = v->next)
        if (in_memory(v) && v->is_placed && view_equal(v->name, name))
            return v;
    return NULL;
}

static enum status relocate(struct ptxsim_module *module, struct error *error) {
    for (struct ptx_variable *v = module->syntax.variables; v; v = v->next) {
        for (const struct ptx_relocation *r = v->relocations; r; r = r->next) {
            const struct ptx_variable *target = find_variable(module, r->name);
            if (!target)
                return error_set(error, STATUS_UNSUPPORTED,
                                 "line %u: an initial value names '%.*s', which is no variable",
                                 v->line, (int)r->name.length, r->name.bytes);
            const uint64_t address = target->value + r->addend;
            memcpy(ptxsim_memory_host(module->machine, v->value + r->offset, 8), &address, 8);
        }
    }
    return STATUS_OK;
}

static enum status decode_kernels(struct ptxsim_module *module, struct error *error) {
    uint32_t count = 0;
    for (struct ptx_function *f = module->syntax.functions; f; f = f->next)
        count += f->is_kernel && f->has_body;
    module->programs = calloc(count + 1, sizeof *module->programs);
    if (!module->programs)
        return error_no_memory(error, "PTX programs");
    for (struct ptx_function *f = module->syntax.functions; f; f = f->next) {
        if (!f->is_kernel || !f->has_body)
            continue;
        struct ptx_program *program = &module->programs[module->program_count++];
        program->module = module;
        TRY(ptx_decode_kernel(&module->syntax, f, program, error));
    }
    return STATUS_OK;
}

static enum status load(struct ptxsim_module *module, const char *text, size_t length,
                        struct error *error) {
    module->text = malloc(length + 1);
    if (!module->text)
        return error_no_memory(error, "PTX text");
    memcpy(module->text, text, length);
    TRY(ptx_parser_read(module->text, length, &module->arena, &module->syntax, error));
    if (module->syntax.target > (uint32_t)module->machine->device.capability)
        return error_set(error, STATUS_NOT_FOUND,
                         "no image for this device: the module is for sm_%u, the device is sm_%d",
                         module->syntax.target, module->machine->device.capability);
    TRY(place_variables(module, error));
    TRY(relocate(module, error));
    return decode_kernels(module, error);
}

enum status ptxsim_module_load(struct ptxsim *machine, const char *text, size_t length,
                               struct ptxsim_module **loaded, struct error *error) {
    struct ptxsim_module *module = calloc(1, sizeof *module);
    if (!module)
        return error_no_memory(error, "PTX module");
    module->machine = machine;
    arena_init(&module->arena, 1 << 20, (size_t)1 << 32);
    const enum status status = load(module, text, length, error);
    if (status != STATUS_OK) {
        ptxsim_module_unload(module);
        return status;
    }
    *loaded = module;
    return STATUS_OK;
}

void ptxsim_module_unload(struct ptxsim_module *module) {
    if (!module)
        return;
    for (struct ptx_variable *v = module->syntax.variables; v; v = v->next)
        if (in_memory(v) && v->is_placed)
            ptx_memory_remove(&module->machine->memory, v->value);
    for (uint32_t i = 0; i < module->program_count; i++) {
        free(module->programs[i].code);
        free(module->programs[i].pool);
        free(module->programs[i].specials);
    }
    free(module->programs);
    free(module->text);
    arena_deinit(&module->arena);
    free(module);
}

const struct ptxsim_kernel *ptxsim_module_kernel(const struct ptxsim_module *module,
                                                 const char *name) {
    for (uint32_t i = 0; i < module->program_count; i++)
        if (strcmp(module->programs[i].kernel.name, name) == 0)
            return &module->programs[i].kernel;
    return NULL;
}

const struct ptxsim_kernel *ptxsim_module_kernel_at(const struct ptxsim_module *module,
                                                    uint32_t index) {
    return index < module->program_count ? &module->programs[index].kernel : NULL;
}

bool ptxsim_module_global(const struct ptxsim_module *module, const char *name, uint64_t *address,
                          uint64_t *bytes) {
    const struct ptx_variable *variable = find_variable(module, view_of(name));
    if (!variable)
        return false;
    *address = variable->value;
    *bytes = variable->bytes;
    return true;
}
