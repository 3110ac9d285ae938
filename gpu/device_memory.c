/* Every allocation has a row with its size and tag, so that freeing and closing count right. There
 * are few: weights, pools and workspaces are taken once. */
#include "gpu/device_memory.h"

#include <stdlib.h>

struct device_allocation {
    uint64_t address;
    uint64_t bytes;
    enum device_memory_tag tag;
};

const char *device_memory_tag_name(enum device_memory_tag tag) {
    static const char *const names[DEVICE_MEMORY_TAG_COUNT] = {
        [DEVICE_MEMORY_WEIGHTS] = "weights",         [DEVICE_MEMORY_KV] = "kv",
        [DEVICE_MEMORY_ACTIVATIONS] = "activations", [DEVICE_MEMORY_SCRATCH] = "scratch",
        [DEVICE_MEMORY_STAGING] = "staging",
    };
    return names[tag];
}

uint64_t device_memory_used(const struct device *device) {
    uint64_t used = 0;
    for (int i = 0; i < DEVICE_MEMORY_TAG_COUNT; i++)
        used += device->used_bytes[i];
    return used;
}

static uint64_t left_under_cap(const struct device *device) {
    const uint64_t used = device_memory_used(device);
    return device->memory_max > used ? device->memory_max - used : 0;
}

enum status device_memory_available(struct device *device, uint64_t *bytes, struct error *error) {
    size_t unused = 0, total = 0;
    TRY(DRIVER_CALL(&device->driver, error, cuMemGetInfo, &unused, &total));
    const uint64_t left = left_under_cap(device);
    *bytes = left < unused ? left : unused;
    return STATUS_OK;
}

static double mebibytes(uint64_t bytes) {
    return (double)bytes / (1 << 20);
}

static enum status over_cap(const struct device *device, enum device_memory_tag tag, uint64_t bytes,
                            struct error *error) {
    return error_set(error, STATUS_NO_MEMORY,
                     "out of device memory for %s: %.1f MiB asked for, %.1f MiB left of the %.1f "
                     "MiB allowed",
                     device_memory_tag_name(tag), mebibytes(bytes),
                     mebibytes(left_under_cap(device)), mebibytes(device->memory_max));
}

/* A full device gets a message with what is free. */
static enum status refused(struct device *device, enum device_memory_tag tag, uint64_t bytes,
                           struct error *error) {
    size_t unused = 0, total = 0;
    (void)device->driver.cuMemGetInfo(&unused, &total);
    return error_set(error, STATUS_NO_MEMORY,
                     "out of device memory for %s: %.1f MiB asked for, %.1f MiB free of %.1f MiB",
                     device_memory_tag_name(tag), mebibytes(bytes), mebibytes(unused),
                     mebibytes(total));
}

static enum status make_room(struct device *device, struct error *error) {
    if (device->allocation_count < device->allocation_capacity)
        return STATUS_OK;
    const size_t capacity = device->allocation_capacity ? device->allocation_capacity * 2 : 64;
    struct device_allocation *grown =
        realloc(device->allocations, capacity * sizeof *device->allocations);
    if (!grown)
        return error_no_memory(error, "table of device memory");
    device->allocations = grown;
    device->allocation_capacity = capacity;
    return STATUS_OK;
}

enum status device_memory_alloc(struct device *device, enum device_memory_tag tag, uint64_t bytes,
                                uint64_t *address, struct error *error) {
    *address = 0;
    if (bytes == 0)
        return STATUS_OK;
    if (bytes > left_under_cap(device))
        return over_cap(device, tag, bytes, error);
    TRY(make_room(device, error));
    const enum status status =
        DRIVER_CALL(&device->driver, error, cuMemAlloc, address, (size_t)bytes);
    if (status == STATUS_NO_MEMORY)
        return refused(device, tag, bytes, error);
    TRY(status);
    device->allocations[device->allocation_count++] =
        (struct device_allocation){.address = *address, .bytes = bytes, .tag = tag};
    device->used_bytes[tag] += bytes;
    return STATUS_OK;
}

void device_memory_free(struct device *device, uint64_t address) {
    for (size_t i = device->allocation_count; address && i-- > 0;) {
        struct device_allocation *allocation = &device->allocations[i];
        if (allocation->address != address)
            continue;
        (void)device->driver.cuMemFree(address);
        device->used_bytes[allocation->tag] -= allocation->bytes;
        *allocation = device->allocations[--device->allocation_count];
        return;
    }
}

void device_memory_release(struct device *device) {
    while (device->allocation_count > 0)
        device_memory_free(device, device->allocations[device->allocation_count - 1].address);
    free(device->allocations);
    device->allocations = NULL;
    device->allocation_capacity = 0;
}
