/* Opening and closing, streams and events. The primary context is used, which the process shares
 * with cuBLAS. */
#include "gpu/device.h"

#include <stdlib.h>

#include "gpu/blas.h"
#include "gpu/device_copy.h"
#include "gpu/device_launch.h"
#include "gpu/device_memory.h"

static enum status attribute(struct device *device, int which, int *value, struct error *error) {
    return DRIVER_CALL(&device->driver, error, cuDeviceGetAttribute, value, which, device->handle);
}

static enum status find(struct device *device, int ordinal, struct error *error) {
    int count = 0;
    TRY(DRIVER_CALL(&device->driver, error, cuDeviceGetCount, &count));
    if (ordinal < 0 || ordinal >= count)
        return error_set(error, STATUS_NOT_FOUND,
                         "no CUDA device: there is no device %d, the driver sees %d", ordinal,
                         count);
    return DRIVER_CALL(&device->driver, error, cuDeviceGet, &device->handle, ordinal);
}

static enum status describe(struct device *device, struct error *error) {
    struct driver *driver = &device->driver;
    int major = 0, minor = 0;
    size_t bytes = 0;
    TRY(DRIVER_CALL(driver, error, cuDeviceGetName, device->name, DEVICE_NAME_MAX, device->handle));
    device->name[DEVICE_NAME_MAX - 1] = '\0';
    TRY(attribute(device, DRIVER_ATTRIBUTE_CAPABILITY_MAJOR, &major, error));
    TRY(attribute(device, DRIVER_ATTRIBUTE_CAPABILITY_MINOR, &minor, error));
    TRY(attribute(device, DRIVER_ATTRIBUTE_MULTIPROCESSORS, &device->multiprocessors, error));
    TRY(attribute(device, DRIVER_ATTRIBUTE_SHARED_BYTES_OPTIN, &device->shared_bytes_max, error));
    TRY(DRIVER_CALL(driver, error, cuDeviceTotalMem, &bytes, device->handle));
    device->capability = 10 * major + minor;
    device->path = launch_config_path(device->capability);
    device->memory_bytes = bytes;
    return STATUS_OK;
}

static enum status create_streams(struct device *device, struct error *error) {
    for (int i = 0; i < DEVICE_STREAM_COUNT; i++)
        TRY(DRIVER_CALL(&device->driver, error, cuStreamCreate, &device->streams[i],
                        DRIVER_STREAM_NON_BLOCKING));
    return STATUS_OK;
}

static enum status open_in(struct device *device, const struct device_options *options,
                           struct error *error) {
    struct driver *driver = &device->driver;
    device->memory_max = options->memory_max ? options->memory_max : UINT64_MAX;
    device->images = options->images ? options->images : gpu_images;
    device->image_count = options->images ? options->image_count : gpu_images_count;
    device->blas_paths = options->blas_paths;
    TRY(driver_open(driver, options->driver_path, error));
    TRY(find(device, options->ordinal, error));
    TRY(describe(device, error));
    TRY(device_launch_check_images(device, error));
    TRY(DRIVER_CALL(driver, error, cuDevicePrimaryCtxRetain, &device->context, device->handle));
    TRY(device_attach(device, error));
    return create_streams(device, error);
}

enum status device_open(const struct device_options *options, struct device **opened,
                        struct error *error) {
    static const struct device_options none = {0};
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return error_no_memory(error, "CUDA device");
    const enum status status = open_in(device, options ? options : &none, error);
    if (status != STATUS_OK) {
        device_close(device);
        return status;
    }
    *opened = device;
    return STATUS_OK;
}

/* Nothing can be done about a failure here: the context takes with it what is left. */
void device_close(struct device *device) {
    if (!device)
        return;
    struct driver *driver = &device->driver;
    if (device->context) {
        (void)driver->cuCtxSetCurrent(device->context);
        for (int i = 0; i < DEVICE_STREAM_COUNT; i++)
            if (device->streams[i])
                (void)driver->cuStreamSynchronize(device->streams[i]);
        device_copy_release(device);
        blas_release(device);
        device_launch_release(device);
        device_memory_release(device);
        for (int i = 0; i < DEVICE_STREAM_COUNT; i++)
            if (device->streams[i])
                (void)driver->cuStreamDestroy(device->streams[i]);
        (void)driver->cuCtxSetCurrent(NULL);
        (void)driver->cuDevicePrimaryCtxRelease(device->handle);
    }
    driver_close(driver);
    free(device);
}

enum status device_attach(struct device *device, struct error *error) {
    return DRIVER_CALL(&device->driver, error, cuCtxSetCurrent, device->context);
}

bool device_is_lost(const struct device *device) {
    return device->driver.lost;
}

enum status device_synchronize(struct device *device, enum device_stream stream,
                               struct error *error) {
    return DRIVER_CALL(&device->driver, error, cuStreamSynchronize, device->streams[stream]);
}

enum status device_event_create(struct device *device, bool timed, struct driver_event **event,
                                struct error *error) {
    return DRIVER_CALL(&device->driver, error, cuEventCreate, event,
                       timed ? 0 : DRIVER_EVENT_NO_TIMING);
}

void device_event_destroy(struct device *device, struct driver_event *event) {
    if (event)
        (void)device->driver.cuEventDestroy(event);
}

enum status device_event_record(struct device *device, struct driver_event *event,
                                enum device_stream stream, struct error *error) {
    return DRIVER_CALL(&device->driver, error, cuEventRecord, event, device->streams[stream]);
}

enum status device_event_wait(struct device *device, struct driver_event *event,
                              enum device_stream stream, struct error *error) {
    return DRIVER_CALL(&device->driver, error, cuStreamWaitEvent, device->streams[stream], event,
                       0);
}

enum status device_event_synchronize(struct device *device, struct driver_event *event,
                                     struct error *error) {
    return DRIVER_CALL(&device->driver, error, cuEventSynchronize, event);
}

enum status device_event_elapsed_ms(struct device *device, struct driver_event *from,
                                    struct driver_event *to, float *milliseconds,
                                    struct error *error) {
    return DRIVER_CALL(&device->driver, error, cuEventElapsedTime, milliseconds, from, to);
}
