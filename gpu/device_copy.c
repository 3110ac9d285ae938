/* Uploads of ordinary memory pass a pinned ring of two halves. A half is filled from its beginning,
 * by as many uploads as fit, each queued at once; before it is filled again the streams must have
 * come past what was queued from it. Without pinned memory the driver's own path for ordinary
 * memory is taken, which has read the source when it returns. */
#include "gpu/device_copy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device_host.h"

enum { HALF_COUNT = 2, HALF_BYTES = 8 << 20 };

struct device_bounce {
    struct device_host host; /* [HALF_COUNT][HALF_BYTES]; empty when it cannot be pinned */
    int half;                /* being filled */
    size_t used;             /* bytes of it */
    bool queued[HALF_COUNT][DEVICE_STREAM_COUNT]; /* from a half on a stream, not yet waited for */
    struct driver_event *passed[HALF_COUNT][DEVICE_STREAM_COUNT];
};

static enum status create_events(struct device *device, struct device_bounce *bounce,
                                 struct error *error) {
    for (int half = 0; half < HALF_COUNT; half++)
        for (int stream = 0; stream < DEVICE_STREAM_COUNT; stream++)
            TRY(device_event_create(device, false, &bounce->passed[half][stream], error));
    return STATUS_OK;
}

void device_copy_release(struct device *device) {
    struct device_bounce *bounce = device->bounce;
    if (!bounce)
        return;
    for (int half = 0; half < HALF_COUNT; half++)
        for (int stream = 0; stream < DEVICE_STREAM_COUNT; stream++)
            device_event_destroy(device, bounce->passed[half][stream]);
    device_host_free(device, &bounce->host);
    free(bounce);
    device->bounce = NULL;
}

/* At the first upload. */
static enum status create_bounce(struct device *device, struct error *error) {
    if (device->bounce)
        return STATUS_OK;
    device->bounce = calloc(1, sizeof *device->bounce);
    if (!device->bounce)
        return error_no_memory(error, "copies to the device");
    enum status status =
        device_host_alloc(device, HALF_COUNT * HALF_BYTES, &device->bounce->host, error);
    if (status == STATUS_OK && !device->bounce->host.pinned)
        device_host_free(device, &device->bounce->host);
    else if (status == STATUS_OK)
        status = create_events(device, device->bounce, error);
    if (status != STATUS_OK)
        device_copy_release(device);
    return status;
}

/* The half is full: take the other, when nothing is read from it any more. */
static enum status turn(struct device *device, struct device_bounce *bounce, struct error *error) {
    for (int stream = 0; stream < DEVICE_STREAM_COUNT; stream++)
        if (bounce->queued[bounce->half][stream])
            TRY(device_event_record(device, bounce->passed[bounce->half][stream],
                                    (enum device_stream)stream, error));
    bounce->half = (bounce->half + 1) % HALF_COUNT;
    bounce->used = 0;
    for (int stream = 0; stream < DEVICE_STREAM_COUNT; stream++) {
        if (bounce->queued[bounce->half][stream])
            TRY(device_event_synchronize(device, bounce->passed[bounce->half][stream], error));
        bounce->queued[bounce->half][stream] = false;
    }
    return STATUS_OK;
}

static enum status upload_part(struct device *device, enum device_stream stream, uint64_t to,
                               const void *from, size_t bytes, struct error *error) {
    struct device_bounce *bounce = device->bounce;
    char *place = (char *)bounce->host.bytes + (size_t)bounce->half * HALF_BYTES + bounce->used;
    memcpy(place, from, bytes);
    TRY(device_copy_to_device(device, stream, to, place, bytes, error));
    bounce->used += bytes;
    bounce->queued[bounce->half][stream] = true;
    return STATUS_OK;
}

enum status device_copy_upload(struct device *device, enum device_stream stream, uint64_t to,
                               const void *from, uint64_t bytes, struct error *error) {
    assert(!device->capturing);
    TRY(create_bounce(device, error));
    struct device_bounce *bounce = device->bounce;
    if (!bounce->host.pinned)
        return device_copy_to_device(device, stream, to, from, bytes, error);
    for (uint64_t done = 0; done < bytes;) {
        if (bounce->used == HALF_BYTES)
            TRY(turn(device, bounce, error));
        const uint64_t room = HALF_BYTES - bounce->used, rest = bytes - done;
        const size_t part = (size_t)(rest < room ? rest : room);
        TRY(upload_part(device, stream, to + done, (const char *)from + done, part, error));
        done += part;
    }
    return STATUS_OK;
}

enum status device_copy_download(struct device *device, enum device_stream stream, void *to,
                                 uint64_t from, uint64_t bytes, struct error *error) {
    assert(!device->capturing);
    TRY(device_copy_to_host(device, stream, to, from, bytes, error));
    return device_synchronize(device, stream, error);
}

enum status device_copy_to_device(struct device *device, enum device_stream stream, uint64_t to,
                                  const void *from, uint64_t bytes, struct error *error) {
    if (bytes == 0)
        return STATUS_OK;
    return DRIVER_CALL(&device->driver, error, cuMemcpyHtoDAsync, to, from, (size_t)bytes,
                       device->streams[stream]);
}

enum status device_copy_to_host(struct device *device, enum device_stream stream, void *to,
                                uint64_t from, uint64_t bytes, struct error *error) {
    if (bytes == 0)
        return STATUS_OK;
    return DRIVER_CALL(&device->driver, error, cuMemcpyDtoHAsync, to, from, (size_t)bytes,
                       device->streams[stream]);
}

enum status device_copy_within(struct device *device, enum device_stream stream, uint64_t to,
                               uint64_t from, uint64_t bytes, struct error *error) {
    if (bytes == 0)
        return STATUS_OK;
    return DRIVER_CALL(&device->driver, error, cuMemcpyDtoDAsync, to, from, (size_t)bytes,
                       device->streams[stream]);
}

enum status device_copy_fill(struct device *device, enum device_stream stream, uint64_t to,
                             unsigned char byte, uint64_t bytes, struct error *error) {
    if (bytes == 0)
        return STATUS_OK;
    return DRIVER_CALL(&device->driver, error, cuMemsetD8Async, to, byte, (size_t)bytes,
                       device->streams[stream]);
}
