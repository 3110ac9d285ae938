/* Modules, functions and launches. Machine code cannot be run here: a fat binary has none for the
 * simulated device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fakecuda_state.h"

struct fake_function {
    struct fake_function *next;
    const struct ptxsim_kernel *kernel;
    uint32_t dynamic_shared_bytes; /* opted in to; 0: the default */
};

struct fake_module {
    struct fake_object object;
    struct ptxsim_module *module;
    struct fake_function *functions;
};

/* The newest PTX that a driver's compiler reads: ISA 7.x came with CUDA 11.x, 8.0 with 12.0 and so
 * on, with 12.6 staying at 8.5. Versions are 10 × major + minor. */
static int ptx_version_most(int driver_version) {
    const int major = driver_version / 1000, minor = driver_version % 1000 / 10;
    if (major == 12)
        return 80 + (minor < 6 ? minor : minor - 1);
    return (major - 4) * 10 + minor;
}

/* 10 × major + minor of the directive; 0: there is none. */
static int ptx_version(const char *text) {
    const char *found = strstr(text, ".version ");
    int major = 0, minor = 0;
    if (!found || sscanf(found, ".version %d.%d", &major, &minor) != 2)
        return 0;
    return 10 * major + minor;
}

static void write_log(unsigned count, const int *options, void **values, const char *text) {
    char *log = NULL;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == DRIVER_JIT_ERROR_LOG)
            log = values[i];
        if (options[i] == DRIVER_JIT_ERROR_LOG_BYTES)
            bytes = (size_t)(uintptr_t)values[i];
    }
    if (log && bytes)
        snprintf(log, bytes, "%s", text);
}

static int load(const char *text, struct fake_module *module, struct error *error) {
    static const unsigned char fat_magic[] = {0x50, 0xed, 0x55, 0xba};
    if (memcmp(text, fat_magic, sizeof fat_magic) == 0)
        return DRIVER_NO_BINARY_FOR_GPU;
    if (ptx_version(text) > ptx_version_most(fakecuda_state.settings.driver_version))
        return DRIVER_UNSUPPORTED_PTX_VERSION;
    const enum status status =
        ptxsim_module_load(fakecuda_state.machine, text, strlen(text), &module->module, error);
    return status == STATUS_OK          ? 0
           : status == STATUS_NO_MEMORY ? DRIVER_OUT_OF_MEMORY
                                        : DRIVER_INVALID_PTX;
}

int cuModuleLoadDataEx(struct driver_module **loaded, const void *image, unsigned option_count,
                       int *options, void **values) {
    int result = fakecuda_state_enter_current(__func__);
    if (result == 0)
        result = fakecuda_run_refuse_capture(__func__);
    if (result)
        return result;
    struct fake_module *module = fakecuda_state_add(FAKE_MODULE, sizeof *module);
    if (!module)
        return DRIVER_OUT_OF_MEMORY;
    struct error error = {0};
    result = load(image, module, &error);
    if (result) {
        write_log(option_count, options, values, error.text);
        fakecuda_state_remove(module);
        return result;
    }
    *loaded = (struct driver_module *)module;
    return 0;
}

void fakecuda_module_remove(void *removed) {
    struct fake_module *module = removed;
    while (module->functions) {
        struct fake_function *function = module->functions;
        module->functions = function->next;
        free(function);
    }
    ptxsim_module_unload(module->module);
    fakecuda_state_remove(module);
}

int cuModuleUnload(struct driver_module *module) {
    const int entered = fakecuda_state_enter_current(__func__);
    if (!fakecuda_state_alive(module, FAKE_MODULE))
        return fakecuda_state_misuse(FAKE_INVALID_HANDLE, "a module that is not alive");
    fakecuda_run_all();
    fakecuda_module_remove(module);
    return entered;
}

int cuModuleGetFunction(struct driver_function **found, struct driver_module *handle,
                        const char *name) {
    const int entered = fakecuda_state_enter_current(__func__);
    if (entered)
        return entered;
    if (!fakecuda_state_alive(handle, FAKE_MODULE))
        return fakecuda_state_misuse(FAKE_INVALID_HANDLE, "a module that is not alive");
    struct fake_module *module = (struct fake_module *)handle;
    const struct ptxsim_kernel *kernel = ptxsim_module_kernel(module->module, name);
    if (!kernel)
        return FAKE_NOT_FOUND;
    struct fake_function *function = calloc(1, sizeof *function);
    if (!function)
        return DRIVER_OUT_OF_MEMORY;
    function->kernel = kernel;
    function->next = module->functions;
    module->functions = function;
    *found = (struct driver_function *)function;
    return 0;
}

static bool is_function(const struct driver_function *handle) {
    for (struct fake_object *object = fakecuda_state.objects; object; object = object->next) {
        if (object->kind != FAKE_MODULE)
            continue;
        const struct fake_function *function = ((struct fake_module *)object)->functions;
        for (; function; function = function->next)
            if ((const void *)function == (const void *)handle)
                return true;
    }
    return false;
}

int cuFuncSetAttribute(struct driver_function *handle, int attribute, int value) {
    const int entered = fakecuda_state_enter_current(__func__);
    if (entered)
        return entered;
    if (!is_function(handle))
        return fakecuda_state_misuse(FAKE_INVALID_HANDLE, "a function that is not alive");
    struct fake_function *function = (struct fake_function *)handle;
    const struct ptxsim_device *device = ptxsim_device_of(fakecuda_state.machine);
    if (attribute != DRIVER_FUNCTION_DYNAMIC_SHARED_BYTES || value < 0 ||
        (uint32_t)value + function->kernel->shared_bytes > device->shared_optin_bytes)
        return FAKE_INVALID_VALUE;
    function->dynamic_shared_bytes = (uint32_t)value;
    return 0;
}

/* The packed parameters of `extra`. */
static const void *packed(void **extra, size_t *bytes) {
    const void *buffer = NULL;
    *bytes = 0;
    for (; extra && *extra != (void *)(uintptr_t)DRIVER_LAUNCH_END; extra += 2) {
        if (*extra == (void *)(uintptr_t)DRIVER_LAUNCH_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == (void *)(uintptr_t)DRIVER_LAUNCH_BUFFER_SIZE)
            *bytes = *(const size_t *)extra[1];
        else
            return NULL;
    }
    return buffer;
}

/* What the driver refuses at the call. */
static int check(const struct fake_operation *launch, const struct fake_function *function) {
    const struct ptxsim_device *device = ptxsim_device_of(fakecuda_state.machine);
    const struct ptxsim_kernel *kernel = launch->kernel;
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        threads *= launch->block[i];
        if (launch->grid[i] == 0 || launch->block[i] == 0 || launch->grid[i] > device->grid_max[i])
            return fakecuda_state_misuse(FAKE_INVALID_VALUE, "%s: a grid or block extent",
                                         kernel->name);
    }
    if (threads > device->block_threads_max ||
        (kernel->threads_max && threads > kernel->threads_max))
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "%s: %llu threads", kernel->name,
                                     (unsigned long long)threads);
    const uint32_t most = function->dynamic_shared_bytes
                              ? function->dynamic_shared_bytes
                              : device->shared_default_bytes - kernel->shared_bytes;
    if (launch->shared_bytes > most)
        return fakecuda_state_misuse(FAKE_INVALID_VALUE,
                                     "%s: %u bytes of shared memory, at most %u", kernel->name,
                                     launch->shared_bytes, most);
    if (launch->owned_bytes != kernel->param_bytes)
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "%s takes %u bytes of parameters, not %zu",
                                     kernel->name, kernel->param_bytes, launch->owned_bytes);
    return 0;
}

int cuLaunchKernel(struct driver_function *handle, unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared_bytes, struct driver_stream *stream, void **parameters,
                   void **extra) {
    int result = fakecuda_state_enter_current(__func__);
    if (result)
        return result;
    if (!is_function(handle) || !fakecuda_state_alive(stream, FAKE_STREAM))
        return fakecuda_state_misuse(FAKE_INVALID_HANDLE,
                                     "a launch of a function or on a stream that is not alive");
    const struct fake_function *function = (struct fake_function *)handle;
    struct fake_operation described = {.kind = FAKE_LAUNCH,
                                       .kernel = function->kernel,
                                       .grid = {grid_x, grid_y, grid_z},
                                       .block = {block_x, block_y, block_z},
                                       .shared_bytes = shared_bytes,
                                       .shared_optin = function->dynamic_shared_bytes > 0};
    const void *buffer = packed(extra, &described.owned_bytes);
    if (parameters || !buffer)
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "a launch without packed parameters");
    result = check(&described, function);
    if (result)
        return result;
    struct fake_operation *launch = fakecuda_run_operation(FAKE_LAUNCH);
    described.owned = malloc(described.owned_bytes ? described.owned_bytes : 1);
    if (!launch || !described.owned) {
        free(launch);
        free(described.owned);
        return DRIVER_OUT_OF_MEMORY;
    }
    memcpy(described.owned, buffer, described.owned_bytes);
    *launch = described;
    fakecuda_run_queue((struct fake_stream *)stream, launch);
    return 0;
}
