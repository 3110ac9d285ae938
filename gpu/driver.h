/* libcuda by dlopen: one table of function pointers, filled at run time, so that nothing links
 * against CUDA and a machine without a driver still runs. The few types and numbers of the driver
 * API that are used are declared here (its ABI never changes a symbol; a newer signature gets a
 * newer suffix), since the build need not have CUDA's headers.
 *
 * One row of DRIVER_FUNCTIONS is one function: the field, the message and the look-up come from it.
 * Only the files gpu/device*.c and gpu/blas.c call through the table. */
#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* CUDA's handles: CUcontext, CUstream, CUevent, CUmodule, CUfunction, CUgraph, CUgraphExec. */
struct driver_context;
struct driver_stream;
struct driver_event;
struct driver_module;
struct driver_function;
struct driver_graph;
struct driver_graph_exec;

/* CUresult, as far as it is told apart. */
enum driver_result {
    DRIVER_SUCCESS = 0,
    DRIVER_OUT_OF_MEMORY = 2,
    DRIVER_DEINITIALIZED = 4,
    DRIVER_NO_DEVICE = 100,
    DRIVER_NO_BINARY_FOR_GPU = 209,
    DRIVER_ECC_UNCORRECTABLE = 214,
    DRIVER_INVALID_PTX = 218,
    DRIVER_NVLINK_UNCORRECTABLE = 220,
    DRIVER_UNSUPPORTED_PTX_VERSION = 222,
    DRIVER_CONTAINED = 226,
    DRIVER_ILLEGAL_ADDRESS = 700,
    DRIVER_LAUNCH_TIMEOUT = 702,
    DRIVER_CONTEXT_IS_DESTROYED = 709,
    DRIVER_ASSERT = 710,
    DRIVER_HARDWARE_STACK_ERROR = 714,
    DRIVER_ILLEGAL_INSTRUCTION = 715,
    DRIVER_MISALIGNED_ADDRESS = 716,
    DRIVER_INVALID_ADDRESS_SPACE = 717,
    DRIVER_INVALID_PC = 718,
    DRIVER_LAUNCH_FAILED = 719,
    DRIVER_UNKNOWN = 999,
};

/* Arguments of the calls below: CUdevice_attribute, CUfunction_attribute, CUjit_option and flags.
 */
enum {
    DRIVER_ATTRIBUTE_MULTIPROCESSORS = 16,
    DRIVER_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    DRIVER_ATTRIBUTE_CAPABILITY_MINOR = 76,
    DRIVER_ATTRIBUTE_SHARED_BYTES_OPTIN = 97,
    DRIVER_FUNCTION_DYNAMIC_SHARED_BYTES = 8,
    DRIVER_JIT_ERROR_LOG = 5,
    DRIVER_JIT_ERROR_LOG_BYTES = 6,
    DRIVER_STREAM_NON_BLOCKING = 1,
    DRIVER_EVENT_NO_TIMING = 2,
    DRIVER_CAPTURE_THREAD_LOCAL = 1,
    DRIVER_REGISTER_READ_ONLY = 8,
    DRIVER_LAUNCH_END = 0,            /* ends cuLaunchKernel's `extra` */
    DRIVER_LAUNCH_BUFFER_POINTER = 1, /* next: the packed parameters */
    DRIVER_LAUNCH_BUFFER_SIZE = 2,    /* next: a size_t * */
    DRIVER_VERSION_LEAST = 11040,     /* CUDA 11.4: cuGraphInstantiateWithFlags */
};

/* X(field, symbol in libcuda, parameters); each returns a CUresult. clang-format takes the
 * parameters for products. */
/* clang-format off */
#define DRIVER_FUNCTIONS(X)                                                                       \
    X(cuGetErrorName, "cuGetErrorName", (int result, const char **name))                          \
    X(cuGetErrorString, "cuGetErrorString", (int result, const char **text))                      \
    X(cuInit, "cuInit", (unsigned flags))                                                         \
    X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                   \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                         \
    X(cuDeviceGet, "cuDeviceGet", (int *device, int ordinal))                                     \
    X(cuDeviceGetName, "cuDeviceGetName", (char *name, int length, int device))                   \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))      \
    X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *bytes, int device))                       \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                                       \
      (struct driver_context **context, int device))                                              \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int device))                    \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (struct driver_context *context))                       \
    X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))                             \
    X(cuMemAlloc, "cuMemAlloc_v2", (uint64_t *address, size_t bytes))                             \
    X(cuMemFree, "cuMemFree_v2", (uint64_t address))                                              \
    X(cuMemAllocHost, "cuMemAllocHost_v2", (void **host, size_t bytes))                           \
    X(cuMemFreeHost, "cuMemFreeHost", (void *host))                                               \
    X(cuMemHostRegister, "cuMemHostRegister_v2", (void *host, size_t bytes, unsigned flags))      \
    X(cuMemHostUnregister, "cuMemHostUnregister", (void *host))                                   \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                  \
      (uint64_t to, const void *from, size_t bytes, struct driver_stream *stream))                \
    X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                  \
      (void *to, uint64_t from, size_t bytes, struct driver_stream *stream))                      \
    X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                  \
      (uint64_t to, uint64_t from, size_t bytes, struct driver_stream *stream))                   \
    X(cuMemsetD8Async, "cuMemsetD8Async",                                                         \
      (uint64_t to, unsigned char value, size_t bytes, struct driver_stream *stream))             \
    X(cuStreamCreate, "cuStreamCreate", (struct driver_stream **stream, unsigned flags))          \
    X(cuStreamDestroy, "cuStreamDestroy_v2", (struct driver_stream *stream))                      \
    X(cuStreamSynchronize, "cuStreamSynchronize", (struct driver_stream *stream))                 \
    X(cuStreamWaitEvent, "cuStreamWaitEvent",                                                     \
      (struct driver_stream *stream, struct driver_event *event, unsigned flags))                 \
    X(cuEventCreate, "cuEventCreate", (struct driver_event **event, unsigned flags))              \
    X(cuEventRecord, "cuEventRecord",                                                             \
      (struct driver_event *event, struct driver_stream *stream))                                 \
    X(cuEventSynchronize, "cuEventSynchronize", (struct driver_event *event))                     \
    X(cuEventElapsedTime, "cuEventElapsedTime",                                                   \
      (float *milliseconds, struct driver_event *start, struct driver_event *end))                \
    X(cuEventDestroy, "cuEventDestroy_v2", (struct driver_event *event))                          \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                   \
      (struct driver_module **module, const void *image, unsigned option_count, int *options,     \
       void **values))                                                                            \
    X(cuModuleUnload, "cuModuleUnload", (struct driver_module *module))                           \
    X(cuModuleGetFunction, "cuModuleGetFunction",                                                 \
      (struct driver_function **function, struct driver_module *module, const char *name))        \
    X(cuFuncSetAttribute, "cuFuncSetAttribute",                                                   \
      (struct driver_function *function, int attribute, int value))                               \
    X(cuLaunchKernel, "cuLaunchKernel",                                                           \
      (struct driver_function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,       \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,               \
       struct driver_stream *stream, void **parameters, void **extra))                            \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (struct driver_stream *stream, int mode))  \
    X(cuStreamEndCapture, "cuStreamEndCapture",                                                   \
      (struct driver_stream *stream, struct driver_graph **graph))                                \
    X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                                          \
      (struct driver_graph_exec **exec, struct driver_graph *graph, unsigned long long flags))    \
    X(cuGraphLaunch, "cuGraphLaunch",                                                             \
      (struct driver_graph_exec *exec, struct driver_stream *stream))                             \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", (struct driver_graph_exec *exec))                 \
    X(cuGraphDestroy, "cuGraphDestroy", (struct driver_graph *graph))
/* clang-format on */

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define DRIVER_FIELD(field, symbol, parameters) int(*field) parameters;

struct driver {
    void *library;
    int version; /* of the driver: 12040 for CUDA 12.4 */
    bool lost;   /* a call gave an error after which the context is of no more use */
    DRIVER_FUNCTIONS(DRIVER_FIELD)
};

/* Loads `path` (NULL: libcuda.so.1), fills the table, calls cuInit. Every failure has
 * STATUS_NOT_FOUND and a text "no CUDA device: <reason>": no such library, a driver too old, no
 * device. On failure there is nothing to close. */
enum status driver_open(struct driver *driver, const char *path, struct error *error);
void driver_close(struct driver *driver); /* after a failed open too; not twice */

/* A call's result as a status: STATUS_NO_MEMORY for CUDA's "out of memory", else STATUS_DEVICE; the
 * text names the call and CUDA's name and words for the error, and says so when the device is lost
 * (driver->lost is set then, and stays). `call` is the API's name. */
enum status driver_check(struct driver *driver, int result, const char *call, struct error *error);

/* driver_check around a call: DRIVER_CALL(driver, error, cuMemAlloc, &address, bytes). */
#define DRIVER_CALL(driver, error, call, ...) \
    driver_check(driver, (driver)->call(__VA_ARGS__), #call, error)

#endif
