/* Copies between host and device. All are ordered on their stream with everything queued there. */
#ifndef GPU_DEVICE_COPY_H
#define GPU_DEVICE_COPY_H

#include "gpu/device.h"

/* From any host memory, of any size: `from` may be reused or freed on return. Goes through a ring
 * of pinned buffers, so that the next part is prepared while the last one travels; the program
 * waits for at most all but the last parts. Not while a graph is captured. */
enum status device_copy_upload(struct device *device, enum device_stream stream, uint64_t to,
                               const void *from, uint64_t bytes, struct error *error);
/* To any host memory, complete on return: waits for the stream. */
enum status device_copy_download(struct device *device, enum device_stream stream, void *to,
                                 uint64_t from, uint64_t bytes, struct error *error);

/* Queued copies: the host range must lie in a device_host or pinned memory (else they may wait) and
 * must be neither written (to device) nor read (to host) until the stream has come past them. */
enum status device_copy_to_device(struct device *device, enum device_stream stream, uint64_t to,
                                  const void *from, uint64_t bytes, struct error *error);
enum status device_copy_to_host(struct device *device, enum device_stream stream, void *to,
                                uint64_t from, uint64_t bytes, struct error *error);
enum status device_copy_within(struct device *device, enum device_stream stream, uint64_t to,
                               uint64_t from, uint64_t bytes, struct error *error);
enum status device_copy_fill(struct device *device, enum device_stream stream, uint64_t to,
                             unsigned char byte, uint64_t bytes, struct error *error);

void device_copy_release(struct device *device); /* the ring; for device_close */

#endif
