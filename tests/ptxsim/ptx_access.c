/* Resolution and checks of addresses, and the counters of traffic. */
#include "tests/ptxsim/ptx_access.h"

#include <string.h>

static void narrow(struct ptx_place *place) {
    static const struct {
        uint64_t base;
        enum ptx_space space;
    } windows[] = {
        {PTX_WINDOW_SHARED, PTX_SHARED},
        {PTX_WINDOW_LOCAL, PTX_LOCAL},
        {PTX_WINDOW_PARAM, PTX_PARAM},
    };
    if (place->space != PTX_GENERIC)
        return;
    place->space = PTX_GLOBAL;
    for (int i = 0; i < 3; i++) {
        if (place->address - windows[i].base < PTX_WINDOW_BYTES) {
            place->space = windows[i].space;
            place->address -= windows[i].base;
        }
    }
}

static uint8_t *outside(struct ptx_warp *warp, const struct ptx_instruction *in,
                        const struct ptx_place *place, const char *space, uint64_t size) {
    warp->block->report.address = place->address;
    ptx_machine_fault(warp, in, place->lane & 31, PTXSIM_FAULT_BOUNDS,
                      "%u bytes at %s address 0x%llx, which has 0x%llx bytes", place->bytes, space,
                      (unsigned long long)place->address, (unsigned long long)size);
    return NULL;
}

static uint8_t *global_at(struct ptx_warp *warp, const struct ptx_instruction *in,
                          const struct ptx_place *place) {
    const struct ptx_region *region = warp->last_region;
    if (!region || place->address - region->base >= region->bytes)
        region = ptx_memory_find(&warp->block->machine->memory, place->address);
    if (!region || region->bytes - (place->address - region->base) < place->bytes) {
        warp->block->report.address = place->address;
        ptx_machine_fault(warp, in, place->lane, PTXSIM_FAULT_BOUNDS, "%u bytes at 0x%llx, %s",
                          place->bytes, (unsigned long long)place->address,
                          region ? "over the end of an allocation" : "in no allocation");
        return NULL;
    }
    warp->last_region = region;
    if (place->access != PTX_READ && !region->writable) {
        warp->block->report.address = place->address;
        ptx_machine_fault(warp, in, place->lane, PTXSIM_FAULT_READ_ONLY, "address 0x%llx",
                          (unsigned long long)place->address);
        return NULL;
    }
    return region->host + (place->address - region->base);
}

static uint8_t *shared_at(struct ptx_warp *warp, const struct ptx_instruction *in,
                          const struct ptx_place *place) {
    struct ptx_shared *shared = &warp->block->shared;
    if (place->address >= shared->size || shared->size - place->address < place->bytes)
        return outside(warp, in, place, "shared", shared->size);
    struct ptx_conflict conflict;
    const uint32_t thread = ptx_shared_thread(warp->index, (uint32_t)place->lane);
    if (!ptx_shared_access(shared, (uint32_t)place->address, place->bytes, place->access, thread,
                           &conflict)) {
        warp->block->report.address = place->address;
        ptx_machine_fault(
            warp, in, place->lane & 31, conflict.kind,
            "%u bytes at shared address 0x%llx, %s%s warp %u lane %u", place->bytes,
            (unsigned long long)place->address, conflict.what,
            conflict.kind == PTXSIM_FAULT_UNINITIALISED_SHARED ? "; first asked by" : " by",
            conflict.kind == PTXSIM_FAULT_UNINITIALISED_SHARED ? warp->index : conflict.warp,
            conflict.kind == PTXSIM_FAULT_UNINITIALISED_SHARED ? (uint32_t)place->lane
                                                               : conflict.lane);
        return NULL;
    }
    return shared->bytes + place->address;
}

static uint8_t *private_at(struct ptx_warp *warp, const struct ptx_instruction *in,
                           const struct ptx_place *place, uint8_t *bytes, uint64_t size) {
    if (place->address >= size || size - place->address < place->bytes)
        return outside(warp, in, place, "local", size);
    return bytes + (uint64_t)place->lane * size + place->address;
}

static uint8_t *param_at(struct ptx_warp *warp, const struct ptx_instruction *in,
                         struct ptx_place *place) {
    if (place->address >= PTX_CALL_PARAMS) {
        place->address -= PTX_CALL_PARAMS;
        return private_at(warp, in, place, warp->call_params, warp->program->call_param_bytes);
    }
    const uint32_t size = warp->program->kernel.param_bytes;
    if (place->address >= size || size - place->address < place->bytes)
        return outside(warp, in, place, "parameter", size);
    if (place->access != PTX_READ) {
        ptx_machine_fault(warp, in, place->lane, PTXSIM_FAULT_READ_ONLY, "a kernel parameter");
        return NULL;
    }
    /* Only read; the caller's const bytes and the other spaces share one type. */
    return (uint8_t *)(uintptr_t)(warp->block->params + place->address);
}

uint8_t *ptx_access_at(struct ptx_warp *warp, const struct ptx_instruction *in,
                       struct ptx_place *place) {
    narrow(place);
    if (place->address % place->bytes != 0) {
        warp->block->report.address = place->address;
        ptx_machine_fault(warp, in, place->lane & 31, PTXSIM_FAULT_ALIGNMENT, "%u bytes at 0x%llx",
                          place->bytes, (unsigned long long)place->address);
        return NULL;
    }
    switch ((int)place->space) {
    case PTX_SHARED:
        return shared_at(warp, in, place);
    case PTX_LOCAL:
        return private_at(warp, in, place, warp->local, warp->program->kernel.local_bytes);
    case PTX_PARAM:
        return param_at(warp, in, place);
    default:
        return global_at(warp, in, place);
    }
}

/* Count distinct values of address >> shift. */
static uint32_t distinct(const struct ptx_traffic *traffic, int shift) {
    uint64_t seen[PTX_LANES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < traffic->count; i++) {
        const uint64_t value = traffic->addresses[i] >> shift;
        uint32_t at = count;
        while (at > 0 && seen[at - 1] != value)
            at--;
        if (at == 0)
            seen[count++] = value;
    }
    return count;
}

void ptx_access_count_global(struct ptx_block *block, const struct ptx_traffic *traffic,
                             uint32_t bytes) {
    const uint32_t sectors = distinct(traffic, 5);
    block->counters.global_sectors += sectors;
    const uint32_t starts = sectors == traffic->count ? sectors : distinct(traffic, 0);
    block->counters.global_sectors_min += (starts * bytes + 31) / 32;
}

/* 32 banks of 4 bytes; 8 bytes a lane go in two halves of the warp, 16 in four quarters. */
void ptx_access_count_shared(struct ptx_block *block, const struct ptx_traffic *traffic,
                             uint32_t bytes) {
    const uint32_t words = bytes > 4 ? bytes / 4 : 1, group = PTX_LANES / words;
    for (uint32_t first = 0; first < traffic->count; first += group) {
        uint64_t seen[32][PTX_LANES];
        uint8_t counts[32] = {0};
        uint32_t worst = 1;
        for (uint32_t i = first; i < first + group && i < traffic->count; i++) {
            for (uint32_t part = 0; part < words; part++) {
                const uint64_t word = traffic->addresses[i] / 4 + part;
                const uint32_t bank = word & 31;
                uint32_t at = counts[bank];
                while (at > 0 && seen[bank][at - 1] != word)
                    at--;
                if (at == 0)
                    seen[bank][counts[bank]++] = word;
                worst = counts[bank] > worst ? counts[bank] : worst;
            }
        }
        block->counters.shared_wavefronts_min++;
        block->counters.shared_conflicts += worst - 1;
    }
}
