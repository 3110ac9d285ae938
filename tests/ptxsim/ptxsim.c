/* The machine itself, the limits of devices, the names of faults. */
#include "tests/ptxsim/ptxsim.h"

#include <stdlib.h>

#include "tests/ptxsim/ptx_memory.h"

void ptxsim_device_describe(int capability, struct ptxsim_device *device) {
    static const struct {
        int capability, sm_count;
        uint32_t shared_kilobytes;
    } known[] = {{60, 56, 48},    {61, 28, 48},   {70, 80, 96},  {75, 40, 64},   {80, 108, 163},
                 {86, 84, 99},    {87, 16, 163},  {89, 128, 99}, {90, 132, 227}, {100, 148, 227},
                 {103, 160, 227}, {120, 170, 99}, {121, 48, 99}};
    *device = (struct ptxsim_device){
        .capability = capability,
        .sm_count = 16,
        .memory_bytes = 16ull << 30,
        .shared_default_bytes = 48 << 10,
        .shared_optin_bytes = 48 << 10,
        .block_max = {1024, 1024, 64},
        .grid_max = {0x7fffffff, 65535, 65535},
        .block_threads_max = 1024,
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].capability == capability) {
            device->sm_count = known[i].sm_count;
            device->shared_optin_bytes = known[i].shared_kilobytes << 10;
        }
    }
}

enum status ptxsim_create(const struct ptxsim_device *device, struct ptxsim **created,
                          struct error *error) {
    struct ptxsim *machine = calloc(1, sizeof *machine);
    if (!machine)
        return error_no_memory(error, "simulated device");
    machine->device = *device;
    *created = machine;
    return STATUS_OK;
}

void ptxsim_destroy(struct ptxsim *machine) {
    if (!machine)
        return;
    ptx_memory_deinit(&machine->memory);
    free(machine);
}

const struct ptxsim_device *ptxsim_device_of(const struct ptxsim *machine) {
    return &machine->device;
}

const char *ptxsim_fault_name(enum ptxsim_fault_kind kind) {
    static const char *const names[PTXSIM_FAULT_COUNT] = {
        "no fault",
        "access out of bounds",
        "misaligned access",
        "write to read-only memory",
        "uninitialised register",
        "uninitialised shared memory",
        "access to the target of an unfinished cp.async",
        "race in shared memory",
        "divergent barrier",
        "partial warp",
        "deadlock",
        "trap",
        "call that cannot be made",
        "endless loop",
        "out of host memory",
    };
    return names[kind];
}
