/* The fake notices what a program must not do, where the real driver may crash or go on: here the
 * calls are made directly, past the layer that does not make them. */
#include <criterion/criterion.h>
#include <string.h>

#include "gpu/blas.h"
#include "tests/fakecuda/device_scene.h"
#include "tests/fakecuda/fakecuda.h"

struct scene {
    struct driver driver;
    struct driver_context *context;
    struct driver_stream *stream, *other;
    uint64_t address; /* 64 bytes */
};

static struct error error;

static struct scene opened(const struct fakecuda_settings *settings) {
    struct scene scene = {.context = NULL};
    fakecuda_configure(settings);
    cr_assert_eq(driver_open(&scene.driver, FAKECUDA_PATH, &error), STATUS_OK, "%s", error.text);
    cr_assert_eq(scene.driver.cuDevicePrimaryCtxRetain(&scene.context, 0), 0);
    cr_assert_eq(scene.driver.cuCtxSetCurrent(scene.context), 0);
    cr_assert_eq(scene.driver.cuStreamCreate(&scene.stream, DRIVER_STREAM_NON_BLOCKING), 0);
    cr_assert_eq(scene.driver.cuStreamCreate(&scene.other, DRIVER_STREAM_NON_BLOCKING), 0);
    cr_assert_eq(scene.driver.cuMemAlloc(&scene.address, 64), 0);
    cr_assert_str_eq(device_scene_report().fault, "");
    return scene;
}

static void noticed(int result, int wanted, const char *fault) {
    cr_assert_eq(result, wanted);
    cr_assert_not_null(strstr(device_scene_report().fault, fault), "'%s'",
                       device_scene_report().fault);
}

Test(fakecuda_misuse, calls_before_cuInit) {
    struct scene scene = opened(NULL);
    int count = 0;
    fakecuda_configure(NULL);
    noticed(scene.driver.cuDeviceGetCount(&count), 3, "cuDeviceGetCount before cuInit");
}

Test(fakecuda_misuse, memory_freed_twice) {
    struct scene scene = opened(NULL);
    cr_assert_eq(scene.driver.cuMemFree(scene.address), 0);
    noticed(scene.driver.cuMemFree(scene.address), 1, "is freed and no allocation");
}

Test(fakecuda_misuse, a_copy_over_the_end) {
    struct scene scene = opened(NULL);
    char bytes[64] = {0};
    noticed(scene.driver.cuMemcpyHtoDAsync(scene.address + 8, bytes, 64, scene.stream), 1,
            "not inside an allocation");
}

Test(fakecuda_misuse, a_copy_into_freed_memory) {
    struct scene scene = opened(NULL);
    cr_assert_eq(scene.driver.cuMemFree(scene.address), 0);
    noticed(scene.driver.cuMemsetD8Async(scene.address, 0, 64, scene.stream), 1,
            "not inside an allocation");
}

Test(fakecuda_misuse, a_destroyed_stream) {
    struct scene scene = opened(NULL);
    cr_assert_eq(scene.driver.cuStreamDestroy(scene.other), 0);
    noticed(scene.driver.cuStreamSynchronize(scene.other), 400, "a stream that is not alive");
}

Test(fakecuda_misuse, a_destroyed_event) {
    struct scene scene = opened(NULL);
    struct driver_event *event = NULL;
    cr_assert_eq(scene.driver.cuEventCreate(&event, 0), 0);
    cr_assert_eq(scene.driver.cuEventDestroy(event), 0);
    noticed(scene.driver.cuEventRecord(event, scene.stream), 400, "an event that is not alive");
}

/* Destroyed while it is waited for, an event still holds the wait. */
Test(fakecuda_misuse, an_event_destroyed_early_is_no_misuse) {
    struct scene scene = opened(NULL);
    struct driver_event *event = NULL;
    unsigned char byte = 0;
    cr_assert_eq(scene.driver.cuEventCreate(&event, 0), 0);
    cr_assert_eq(scene.driver.cuMemsetD8Async(scene.address, 7, 64, scene.other), 0);
    cr_assert_eq(scene.driver.cuEventRecord(event, scene.other), 0);
    cr_assert_eq(scene.driver.cuStreamWaitEvent(scene.stream, event, 0), 0);
    cr_assert_eq(scene.driver.cuEventDestroy(event), 0);
    cr_assert_eq(scene.driver.cuMemcpyDtoHAsync(&byte, scene.address, 1, scene.stream), 0);
    cr_assert_eq(byte, 7);
    cr_assert_str_eq(device_scene_report().fault, "");
}

Test(fakecuda_misuse, pinning_ended_while_a_copy_is_queued) {
    struct scene scene = opened(NULL);
    static char bytes[64];
    cr_assert_eq(scene.driver.cuMemHostRegister(bytes, sizeof bytes, 0), 0);
    cr_assert_eq(scene.driver.cuMemcpyHtoDAsync(scene.address, bytes, 64, scene.stream), 0);
    noticed(scene.driver.cuMemHostUnregister(bytes), 0, "unregistered while a copy is queued");
}

Test(fakecuda_misuse, a_launch_with_a_pointer_list) {
    struct scene scene = opened(NULL);
    struct driver_module *module = NULL;
    struct driver_function *function = NULL;
    void *parameters[] = {&scene};
    cr_assert_eq(scene.driver.cuModuleLoadDataEx(&module, small_images[1].bytes, 0, NULL, NULL), 0);
    cr_assert_eq(scene.driver.cuModuleGetFunction(&function, module, "add"), 0);
    noticed(
        scene.driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, scene.stream, parameters, NULL),
        1, "without packed parameters");
}

/* What launch limits the driver checks at the call. */
static void refused_launch(unsigned grid, unsigned threads, unsigned shared, const char *fault) {
    struct scene scene = opened(NULL);
    struct driver_module *module = NULL;
    struct driver_function *function = NULL;
    struct small_add_arguments arguments = {0};
    size_t bytes = sizeof arguments;
    void *extra[] = {(void *)1, &arguments, (void *)2, &bytes, NULL};
    cr_assert_eq(scene.driver.cuModuleLoadDataEx(&module, small_images[1].bytes, 0, NULL, NULL), 0);
    cr_assert_eq(scene.driver.cuModuleGetFunction(&function, module, "add"), 0);
    noticed(scene.driver.cuLaunchKernel(function, grid, 1, 1, threads, 1, 1, shared, scene.stream,
                                        NULL, extra),
            1, fault);
}

Test(fakecuda_misuse, launches_over_the_limits) {
    refused_launch(0, 32, 0, "add: a grid or block extent");
    refused_launch(1, 2048, 0, "add: 2048 threads");
    refused_launch(1, 32, 48 << 10 | 16, "add: 49168 bytes of shared memory, at most 49152");
}

Test(fakecuda_misuse, work_left_over_is_reported) {
    struct scene scene = opened(NULL);
    cr_assert_eq(scene.driver.cuMemsetD8Async(scene.address, 7, 64, scene.stream), 0);
    const struct fakecuda_report report = device_scene_report();
    cr_assert_eq(report.pending, 1);
    cr_assert_eq(report.objects, 4, "the context, two streams, an allocation");
    cr_assert_eq(report.allocations, 1);
}

Test(fakecuda_misuse, configuring_forgets_everything) {
    opened(&(struct fakecuda_settings){.capability = 75});
    fakecuda_configure(NULL);
    const struct fakecuda_report report = device_scene_report();
    cr_assert(report.objects == 0 && report.calls == 0 && report.memory_peak == 0);
}
