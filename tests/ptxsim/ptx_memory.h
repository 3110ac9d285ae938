/* The global address space: allocations and mapped host ranges, sorted by device address. */
#ifndef TESTS_PTXSIM_PTX_MEMORY_H
#define TESTS_PTXSIM_PTX_MEMORY_H

#include "tests/ptxsim/ptxsim.h"

struct ptx_region {
    uint64_t base, bytes;
    uint8_t *host;
    bool owned, writable;
};

struct ptx_memory {
    struct ptx_region *regions; /* by base */
    uint32_t count, capacity;
    uint64_t next; /* where the next allocation may begin */
    uint64_t used_bytes;
};

struct ptxsim {
    struct ptxsim_device device;
    struct ptx_memory memory;
};

/* The region that holds `address`, or NULL. */
const struct ptx_region *ptx_memory_find(const struct ptx_memory *memory, uint64_t address);

/* As ptxsim_memory_alloc, outside the device's budget and for read-only data: variables. */
enum status ptx_memory_add_variable(struct ptx_memory *memory, uint64_t bytes, bool writable,
                                    uint64_t *address, struct error *error);
void ptx_memory_remove(struct ptx_memory *memory, uint64_t address);
void ptx_memory_deinit(struct ptx_memory *memory);

/* For ptxsim_memory.c. */
enum status ptx_memory_add(struct ptx_memory *memory, struct ptx_region *region,
                           struct error *error);
enum status ptx_memory_host_pages(uint64_t bytes, uint8_t **host, struct error *error);

#endif
