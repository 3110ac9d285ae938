/* Host memory that copies quickly: pinned where the driver gives it, so that copies run beside the
 * program; else ordinary memory, with which copies work but wait. */
#ifndef GPU_DEVICE_HOST_H
#define GPU_DEVICE_HOST_H

#include "gpu/device.h"

struct device_host {
    void *bytes;
    uint64_t byte_count;
    bool pinned;
};

enum status device_host_alloc(struct device *device, uint64_t bytes, struct device_host *host,
                              struct error *error);
void device_host_free(struct device *device, struct device_host *host); /* zeroed: nothing */

/* Pin memory of the caller's (a file map) in place. false: it could not be, copy as from ordinary
 * memory. Unpin before it is unmapped, when no copy is queued. */
bool device_host_pin(struct device *device, const void *bytes, uint64_t byte_count);
void device_host_unpin(struct device *device, const void *bytes);

#endif
