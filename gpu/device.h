/* An opened CUDA device: what it is, its two streams and events between them.
 * Memory is in device_memory.h and device_host.h, copies in device_copy.h, launches in
 * device_launch.h and device_graph.h, cuBLAS in blas.h.
 *
 * Work is queued on a stream and runs later: what a call hands over must stay valid until the
 * stream is synchronised, unless its contract says otherwise. Errors of queued work surface in a
 * later call, at the latest in device_synchronize. The streams do not wait for each other except
 * through events.
 *
 * A device is used by one thread at a time. A thread other than the one that opened it calls
 * device_attach first.
 *
 * Once the device is lost (an illegal access, a hardware fault, a removed card) every call fails
 * with STATUS_DEVICE and device_is_lost is true; only device_close is of use then. */
#ifndef GPU_DEVICE_H
#define GPU_DEVICE_H

#include "gpu/driver.h"
#include "gpu/gpu_images.h"
#include "gpu/launch_config.h"

enum { DEVICE_NAME_MAX = 128 };

enum device_stream {
    DEVICE_COMPUTE, /* launches, matmuls, graphs */
    DEVICE_COPY,
    DEVICE_STREAM_COUNT
};

/* What device memory is for; used bytes are counted by it. */
enum device_memory_tag {
    DEVICE_MEMORY_WEIGHTS,
    DEVICE_MEMORY_KV,
    DEVICE_MEMORY_ACTIVATIONS,
    DEVICE_MEMORY_SCRATCH,
    DEVICE_MEMORY_STAGING,
    DEVICE_MEMORY_TAG_COUNT
};

struct device_options {
    int ordinal;                    /* which device, from 0 (CUDA_VISIBLE_DEVICES renumbers them) */
    uint64_t memory_max;            /* bytes of device memory that may be allocated; 0: no cap */
    const char *driver_path;        /* NULL: the system's libcuda */
    const char *const *blas_paths;  /* NULL-terminated, tried in order; NULL: the system's cuBLAS */
    const struct gpu_image *images; /* with image_count; NULL: the program's own */
    size_t image_count;
};

struct device {
    /* To read. */
    char name[DEVICE_NAME_MAX];
    int capability; /* 89 for 8.9 */
    enum matrix_path path;
    int multiprocessors;
    int shared_bytes_max;  /* dynamic shared memory that a block may opt in to */
    uint64_t memory_bytes; /* of the device */
    uint64_t memory_max;   /* the cap; UINT64_MAX: none */
    struct driver driver;
    struct driver_stream *streams[DEVICE_STREAM_COUNT];

    /* Owned by device.c and its neighbours. */
    int handle; /* CUdevice */
    struct driver_context *context;
    bool capturing;
    struct device_allocation *allocations; /* device_memory.c */
    size_t allocation_count, allocation_capacity;
    uint64_t used_bytes[DEVICE_MEMORY_TAG_COUNT];
    struct device_bounce *bounce;   /* device_copy.c */
    const struct gpu_image *images; /* device_launch.c */
    size_t image_count;
    struct device_module *modules;
    size_t module_count, module_capacity;
    struct device_function *functions;
    size_t function_count, function_capacity;
    const char *const *blas_paths; /* blas.c */
    struct blas *blas;
};

/* STATUS_NOT_FOUND and "no CUDA device: <reason>" where there is no usable driver or device;
 * STATUS_UNSUPPORTED and a text with the capability and those of the build where no image runs on
 * it. `options` may be NULL; its paths and images must outlive the device. */
enum status device_open(const struct device_options *options, struct device **device,
                        struct error *error);
/* Waits for queued work, frees everything that was allocated, created or loaded through the
 * device, except events, graphs and host buffers, which their owners destroy before. NULL is
 * allowed. */
void device_close(struct device *device);

/* Make the device current in the calling thread. */
enum status device_attach(struct device *device, struct error *error);
bool device_is_lost(const struct device *device);

/* Wait until everything queued on the stream is done. */
enum status device_synchronize(struct device *device, enum device_stream stream,
                               struct error *error);

/* ---- events: a place in a stream ---- */
enum status device_event_create(struct device *device, bool timed, struct driver_event **event,
                                struct error *error);
void device_event_destroy(struct device *device, struct driver_event *event); /* NULL: nothing */
enum status device_event_record(struct device *device, struct driver_event *event,
                                enum device_stream stream, struct error *error);
/* What is queued on `stream` from now on waits for the event's last recording; an event that was
 * never recorded is not waited for. */
enum status device_event_wait(struct device *device, struct driver_event *event,
                              enum device_stream stream, struct error *error);
/* The calling thread waits. */
enum status device_event_synchronize(struct device *device, struct driver_event *event,
                                     struct error *error);
/* Between two timed events that both have happened. */
enum status device_event_elapsed_ms(struct device *device, struct driver_event *from,
                                    struct driver_event *to, float *milliseconds,
                                    struct error *error);

#endif
