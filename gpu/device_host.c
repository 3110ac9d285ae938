/* Pinned memory is scarce on some systems (containers limit locked pages): not getting it makes
 * copies slower, and nothing fail. */
#include "gpu/device_host.h"

#include <stdlib.h>

enum { PAGE_BYTES = 4096 };

enum status device_host_alloc(struct device *device, uint64_t bytes, struct device_host *host,
                              struct error *error) {
    *host = (struct device_host){.byte_count = bytes};
    if (bytes == 0)
        return STATUS_OK;
    host->pinned = device->driver.cuMemAllocHost(&host->bytes, (size_t)bytes) == DRIVER_SUCCESS;
    if (!host->pinned && posix_memalign(&host->bytes, PAGE_BYTES, (size_t)bytes) != 0) {
        *host = (struct device_host){0};
        return error_no_memory(error, "copies to the device");
    }
    return STATUS_OK;
}

void device_host_free(struct device *device, struct device_host *host) {
    if (host->pinned)
        (void)device->driver.cuMemFreeHost(host->bytes);
    else
        free(host->bytes);
    *host = (struct device_host){0};
}

/* Pages that the process may not write, as a model file's, are pinned only when asked for so; not
 * every system can. */
bool device_host_pin(struct device *device, const void *bytes, uint64_t byte_count) {
    void *host = (void *)(uintptr_t)bytes;
    const struct driver *driver = &device->driver;
    return driver->cuMemHostRegister(host, (size_t)byte_count, 0) == DRIVER_SUCCESS ||
           driver->cuMemHostRegister(host, (size_t)byte_count, DRIVER_REGISTER_READ_ONLY) ==
               DRIVER_SUCCESS;
}

void device_host_unpin(struct device *device, const void *bytes) {
    (void)device->driver.cuMemHostUnregister((void *)(uintptr_t)bytes);
}
