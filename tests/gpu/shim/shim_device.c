/* The kernel tests' device by fibers: tests/gpu/simulated.h over shared objects that a C++ compiler
 * made of the same .cu files. It needs no CUDA compiler and shows mistakes by line, but neither
 * races nor accesses out of bounds: those are the PTX simulator's. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/shim/shim_fibers.h"
#include "tests/gpu/simulated.h"

enum { ALIGNMENT = 512, ZEROED_FROM = 64 << 20 }; /* larger ones are touched by few tests */

bool simulated_has(int capability) {
    return capability == 61 || capability == 75 || capability == 80;
}

void simulated_create(struct simulated *device, int capability) {
    char path[512];
    *device = (struct simulated){.capability = capability};
    snprintf(path, sizeof path, SHIM_FOLDER "/kernels_%d.so", capability);
    device->kernels = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(device->kernels, "%s", dlerror());
}

void simulated_destroy(struct simulated *device) {
    for (int i = 0; i < device->allocation_count; i++)
        free(device->allocations[i]);
    dlclose(device->kernels);
}

uint64_t simulated_upload(struct simulated *device, const void *bytes, size_t count) {
    size_t size = (count / ALIGNMENT + 1) * ALIGNMENT;
    void *memory = size < ZEROED_FROM ? aligned_alloc(ALIGNMENT, size) : calloc(size, 1);
    cr_assert_not_null(memory);
    cr_assert_lt(device->allocation_count, SIMULATED_ALLOCATIONS_MAX);
    if (size < ZEROED_FROM)
        memset(memory, 0xff, size);
    if (bytes)
        memcpy(memory, bytes, count);
    device->allocations[device->allocation_count++] = memory;
    return (uint64_t)(uintptr_t)memory;
}

void *simulated_view(struct simulated *device, uint64_t address, size_t count) {
    (void)device, (void)count;
    return (void *)(uintptr_t)address;
}

void simulated_launch(struct simulated *device, const struct launch_config *config, int64_t grid,
                      const void *arguments, size_t argument_bytes) {
    struct shim_arguments copy = {{0}};
    shim_kernel *kernel = NULL;
    void *symbol = dlsym(device->kernels, config->entry);
    cr_assert_not_null(symbol, "%s", config->entry);
    cr_assert_leq(argument_bytes, sizeof copy);
    memcpy(&kernel, &symbol, sizeof kernel);
    memset(dlsym(device->kernels, "attention_memory"), 0xff, (size_t)config->shared_bytes);
    memcpy(&copy, arguments, argument_bytes);
    shim_fibers_run(kernel, &copy, (unsigned)grid, (unsigned)config->threads);
}
