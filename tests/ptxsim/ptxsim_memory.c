/* Global memory as the caller sees it: the device's budget, poison, host views. */
#include <string.h>
#include <sys/mman.h>

#include "tests/ptxsim/ptx_memory.h"

uint64_t ptxsim_memory_free_bytes(const struct ptxsim *machine) {
    return machine->device.memory_bytes - machine->memory.used_bytes;
}

enum status ptxsim_memory_alloc(struct ptxsim *machine, uint64_t bytes, uint64_t *address,
                                struct error *error) {
    if (bytes == 0)
        return error_set(error, STATUS_BAD_INPUT, "an allocation of 0 bytes");
    if (bytes > ptxsim_memory_free_bytes(machine))
        return error_set(error, STATUS_NO_MEMORY, "%llu bytes asked for, %llu free",
                         (unsigned long long)bytes,
                         (unsigned long long)ptxsim_memory_free_bytes(machine));
    TRY(ptx_memory_add_variable(&machine->memory, bytes, true, address, error));
    machine->memory.used_bytes += bytes;
    if (bytes <= PTXSIM_POISON_BYTES)
        memset(ptxsim_memory_host(machine, *address, bytes), 0xff, bytes);
    return STATUS_OK;
}

enum status ptxsim_memory_free(struct ptxsim *machine, uint64_t address, struct error *error) {
    const struct ptx_region *region = ptx_memory_find(&machine->memory, address);
    if (!region || region->base != address)
        return error_set(error, STATUS_BAD_INPUT, "0x%llx is no allocation",
                         (unsigned long long)address);
    if (region->owned)
        machine->memory.used_bytes -= region->bytes;
    ptx_memory_remove(&machine->memory, address);
    return STATUS_OK;
}

enum status ptxsim_memory_map(struct ptxsim *machine, void *host, uint64_t bytes, bool writable,
                              uint64_t *address, struct error *error) {
    struct ptx_region region = {
        .base = *address, .bytes = bytes, .host = host, .writable = writable};
    if (bytes == 0)
        return error_set(error, STATUS_BAD_INPUT, "a mapping of 0 bytes");
    TRY(ptx_memory_add(&machine->memory, &region, error));
    *address = region.base;
    return STATUS_OK;
}

void *ptxsim_memory_host(const struct ptxsim *machine, uint64_t address, uint64_t bytes) {
    const struct ptx_region *region = ptx_memory_find(&machine->memory, address);
    if (!region || bytes > region->bytes - (address - region->base))
        return NULL;
    return region->host + (address - region->base);
}
