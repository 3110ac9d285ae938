/* Regions of ptx_memory.h. Device addresses are never used twice, so a dangling pointer faults. */
#include "tests/ptxsim/ptx_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 512, GAP = 1 << 20 };
#define FIRST_ADDRESS 0x0000100000000000ull

/* Index of the first region above `address`. */
static uint32_t upper(const struct ptx_memory *memory, uint64_t address) {
    uint32_t low = 0, high = memory->count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (memory->regions[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct ptx_region *ptx_memory_find(const struct ptx_memory *memory, uint64_t address) {
    const uint32_t above = upper(memory, address);
    if (above == 0)
        return NULL;
    const struct ptx_region *region = &memory->regions[above - 1];
    return address - region->base < region->bytes ? region : NULL;
}

enum status ptx_memory_host_pages(uint64_t bytes, uint8_t **host, struct error *error) {
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return error_set_errno(error, STATUS_NO_MEMORY, errno, "%llu bytes of device memory",
                               (unsigned long long)bytes);
    *host = pages;
    return STATUS_OK;
}

enum status ptx_memory_add(struct ptx_memory *memory, struct ptx_region *region,
                           struct error *error) {
    if (memory->count == memory->capacity) {
        const uint32_t capacity = memory->capacity ? memory->capacity * 2 : 64;
        struct ptx_region *grown = realloc(memory->regions, capacity * sizeof *grown);
        if (!grown)
            return error_no_memory(error, "device memory table");
        memory->regions = grown;
        memory->capacity = capacity;
    }
    if (region->base == 0) {
        if (memory->next == 0)
            memory->next = FIRST_ADDRESS;
        region->base = memory->next;
    }
    const uint32_t at = upper(memory, region->base);
    const uint64_t end = region->base + region->bytes;
    const bool below =
        at > 0 && memory->regions[at - 1].base + memory->regions[at - 1].bytes > region->base;
    const bool above = at < memory->count && memory->regions[at].base < end;
    if (below || above || end < region->base)
        return error_set(error, STATUS_BAD_INPUT, "device address 0x%llx is taken",
                         (unsigned long long)region->base);
    if (end + GAP > memory->next)
        memory->next = (end + GAP + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memmove(memory->regions + at + 1, memory->regions + at,
            (memory->count - at) * sizeof *memory->regions);
    memory->regions[at] = *region;
    memory->count++;
    return STATUS_OK;
}

enum status ptx_memory_add_variable(struct ptx_memory *memory, uint64_t bytes, bool writable,
                                    uint64_t *address, struct error *error) {
    struct ptx_region region = {.bytes = bytes, .owned = true, .writable = writable};
    TRY(ptx_memory_host_pages(bytes, &region.host, error));
    enum status status = ptx_memory_add(memory, &region, error);
    if (status != STATUS_OK)
        munmap(region.host, bytes);
    *address = region.base;
    return status;
}

void ptx_memory_remove(struct ptx_memory *memory, uint64_t address) {
    const uint32_t at = upper(memory, address) - 1;
    if (memory->regions[at].owned)
        munmap(memory->regions[at].host, memory->regions[at].bytes);
    memory->count--;
    memmove(memory->regions + at, memory->regions + at + 1,
            (memory->count - at) * sizeof *memory->regions);
}

void ptx_memory_deinit(struct ptx_memory *memory) {
    while (memory->count > 0)
        ptx_memory_remove(memory, memory->regions[memory->count - 1].base);
    free(memory->regions);
}
