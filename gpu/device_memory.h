/* Memory of an opened device, counted by what it is for. */
#ifndef GPU_DEVICE_MEMORY_H
#define GPU_DEVICE_MEMORY_H

#include "gpu/device.h"

/* 256-byte aligned at least, contents undefined. 0 bytes give address 0. STATUS_NO_MEMORY, with
 * what was asked for and what is left, when the cap or the device has not enough: nothing changed,
 * go on with less. */
enum status device_memory_alloc(struct device *device, enum device_memory_tag tag, uint64_t bytes,
                                uint64_t *address, struct error *error);
/* Waits for queued work of both streams first, as the driver does. 0: nothing. */
void device_memory_free(struct device *device, uint64_t address);

const char *device_memory_tag_name(enum device_memory_tag tag); /* "kv" */
uint64_t device_memory_used(const struct device *device);       /* of all tags */
/* Bytes that can still be allocated: under the cap, and free on the device now (other programs and
 * fragmentation may still make an allocation of so many fail). */
enum status device_memory_available(struct device *device, uint64_t *bytes, struct error *error);

void device_memory_release(struct device *device); /* everything; for device_close */

#endif
