/* Opening a device: what it says of itself, what it refuses, and that nothing is left over whatever
 * call fails. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "gpu/blas.h"
#include "gpu/device_copy.h"
#include "gpu/device_graph.h"
#include "gpu/device_host.h"
#include "gpu/device_launch.h"
#include "gpu/device_memory.h"
#include "tests/fakecuda/device_scene.h"
#include "tests/support/failing_malloc.h"

static void refused(const struct fakecuda_settings *settings, const struct device_options *options,
                    enum status status, const char *text) {
    struct device *device = NULL;
    struct error error = {0};
    fakecuda_configure(settings);
    cr_assert_eq(device_open(options, &device, &error), status, "%s", error.text);
    cr_assert_not_null(strstr(error.text, text), "%s", error.text);
    cr_assert_null(device);
    cr_assert_eq(device_scene_report().objects, 0);
}

Test(device, describes_itself) {
    struct device *device = device_scene_open(&(struct fakecuda_settings){.capability = 89,
                                                                          .multiprocessors = 76,
                                                                          .memory_bytes = 1 << 20},
                                              NULL);
    cr_assert_str_eq(device->name, "Simulated 8.9");
    cr_assert_eq(device->capability, 89);
    cr_assert_eq(device->path, MATRIX_AMPERE);
    cr_assert_eq(device->multiprocessors, 76);
    cr_assert_eq(device->memory_bytes, 1 << 20);
    cr_assert_eq(device->shared_bytes_max, 99 << 10);
    cr_assert(!device_is_lost(device));
    device_scene_close(device);
}

Test(device, there_is_no_driver) {
    struct device_options options = device_scene_options();
    options.driver_path = "/nonexistent/libcuda.so.1";
    refused(NULL, &options, STATUS_NOT_FOUND, "no CUDA device: /nonexistent/libcuda.so.1");
}

Test(device, there_is_no_such_device) {
    struct device_options options = device_scene_options();
    options.ordinal = 3;
    refused(NULL, &options, STATUS_NOT_FOUND,
            "no CUDA device: there is no device 3, the driver sees 1");
    options.ordinal = -1;
    refused(NULL, &options, STATUS_NOT_FOUND, "there is no device -1");
}

Test(device, older_than_every_image) {
    const struct device_options options = device_scene_options();
    refused(&(struct fakecuda_settings){.capability = 52}, &options, STATUS_UNSUPPORTED,
            "the device 'Simulated 5.2' has compute capability 5.2: this build has CUDA kernels "
            "for 6.0 and later only");
}

Test(device, a_build_without_images) {
    struct device_options options = device_scene_options();
    options.image_count = 0;
    refused(NULL, &options, STATUS_UNSUPPORTED, "this build has no CUDA kernels");
}

Test(device, closing_nothing_is_allowed) {
    device_close(NULL);
}

static void *attach_and_use(void *context) {
    struct device *device = context;
    struct error error = {0};
    uint64_t address = 0;
    const bool refused =
        device_memory_alloc(device, DEVICE_MEMORY_KV, 16, &address, &error) == STATUS_DEVICE;
    const bool works =
        device_attach(device, &error) == STATUS_OK &&
        device_memory_alloc(device, DEVICE_MEMORY_KV, 16, &address, &error) == STATUS_OK;
    return refused && works ? device : NULL;
}

Test(device, another_thread_attaches_first) {
    struct device *device = device_scene_open(NULL, NULL);
    pthread_t thread;
    void *result = NULL;
    cr_assert_eq(pthread_create(&thread, NULL, attach_and_use, device), 0);
    cr_assert_eq(pthread_join(thread, &result), 0);
    cr_assert_eq(result, device);
    device_close(device);
    const struct fakecuda_report report = device_scene_report();
    cr_assert_eq(report.objects, 0);
    cr_assert_str_eq(report.fault, "cuMemAlloc in a thread without a context");
}

/* ---- everything that a run does, in short ---- */
struct everything {
    struct device *device;
    uint64_t in, out, weights;
    struct device_host host;
    struct driver_event *event;
    struct device_graph graph;
};

enum { COUNT = 64 };

static enum status launch(struct everything *all, struct error *error) {
    const struct small_add_arguments arguments = {
        .in = all->in, .out = all->out, .count = COUNT, .addend = 1};
    return device_launch(all->device, &small_images_add, 2, &arguments, sizeof arguments, error);
}

static enum status take(struct everything *all, struct error *error) {
    struct device *device = all->device;
    const uint64_t bytes = COUNT * sizeof(float);
    TRY(device_memory_alloc(device, DEVICE_MEMORY_ACTIVATIONS, bytes, &all->in, error));
    TRY(device_memory_alloc(device, DEVICE_MEMORY_ACTIVATIONS, bytes, &all->out, error));
    TRY(device_memory_alloc(device, DEVICE_MEMORY_WEIGHTS, 2 * bytes, &all->weights, error));
    TRY(device_host_alloc(device, bytes, &all->host, error));
    TRY(device_event_create(device, true, &all->event, error));
    TRY(device_launch_prepare(device, &small_images_add, error));
    return blas_open(device, error);
}

static enum status record_graph(struct everything *all, struct error *error) {
    TRY(device_graph_begin(all->device, error));
    const enum status status = launch(all, error);
    struct error ignored;
    TRY(device_graph_end(all->device, &all->graph, status == STATUS_OK ? error : &ignored));
    return status;
}

static enum status multiply(struct everything *all, struct error *error) {
    const struct blas_matmul matmul = {.weights = all->weights,
                                       .in = all->in,
                                       .out = all->out,
                                       .element = ELEMENT_F32,
                                       .rows = 1,
                                       .columns = 2,
                                       .k = COUNT,
                                       .weight_stride = COUNT,
                                       .in_stride = COUNT,
                                       .out_stride = 2};
    return blas_multiply(all->device, &matmul, error);
}

static enum status run(struct everything *all, float result[2], struct error *error) {
    struct device *device = all->device;
    float ones[2 * COUNT];
    float milliseconds = 0;
    uint64_t available = 0;
    for (int i = 0; i < 2 * COUNT; i++)
        ones[i] = 1;
    TRY(device_memory_available(device, &available, error));
    TRY(device_copy_upload(device, DEVICE_COPY, all->weights, ones, sizeof ones, error));
    TRY(device_copy_fill(device, DEVICE_COPY, all->in, 0, COUNT * sizeof(float), error));
    TRY(device_event_record(device, all->event, DEVICE_COPY, error));
    TRY(device_event_wait(device, all->event, DEVICE_COMPUTE, error));
    TRY(launch(all, error));
    TRY(record_graph(all, error));
    TRY(device_graph_launch(device, &all->graph, error));
    TRY(device_copy_within(device, DEVICE_COMPUTE, all->in, all->out, COUNT * sizeof(float),
                           error));
    TRY(multiply(all, error));
    TRY(device_copy_to_host(device, DEVICE_COMPUTE, all->host.bytes, all->out, 2 * sizeof(float),
                            error));
    TRY(device_event_record(device, all->event, DEVICE_COMPUTE, error));
    TRY(device_event_synchronize(device, all->event, error));
    TRY(device_event_elapsed_ms(device, all->event, all->event, &milliseconds, error));
    memcpy(result, all->host.bytes, 2 * sizeof(float));
    return device_synchronize(device, DEVICE_COPY, error);
}

static enum status everything(float result[2], struct error *error) {
    const struct device_options options = device_scene_options();
    struct everything all = {0};
    enum status status = device_open(&options, &all.device, error);
    if (status == STATUS_OK)
        status = take(&all, error);
    if (status == STATUS_OK)
        status = run(&all, result, error);
    if (all.device) {
        device_graph_destroy(all.device, &all.graph);
        device_event_destroy(all.device, all.event);
        device_host_free(all.device, &all.host);
    }
    device_close(all.device);
    return status;
}

/* The number of calls of a run without failures. */
static int64_t count_calls(void) {
    float result[2] = {0};
    struct error error = {0};
    fakecuda_configure(NULL);
    cr_assert_eq(everything(result, &error), STATUS_OK, "%s", error.text);
    cr_assert_eq(result[0], 64 * 1001);
    cr_assert_eq(result[1], 64 * 1001);
    cr_assert_eq(device_scene_report().objects, 0);
    return device_scene_report().calls;
}

/* Where a failure has no consequence: pinned memory, and what only frees. */
static bool may_succeed(const char *call) {
    static const char *const calls[] = {
        "cuMemAllocHost",
        "cuMemFree",
        "cuMemFreeHost",
        "cuEventDestroy",
        "cuStreamDestroy",
        "cuModuleUnload",
        "cuGraphDestroy",
        "cuGraphExecDestroy",
        "cublasDestroy",
        "cuCtxSetCurrent",
        "cuDevicePrimaryCtxRelease",
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(calls[i], call) == 0)
            return true;
    return false;
}

static void check_failure(const struct fakecuda_settings *settings, int64_t n) {
    struct error error = {0};
    float result[2] = {0};
    fakecuda_configure(settings);
    const enum status status = everything(result, &error);
    const struct fakecuda_report report = device_scene_report();
    cr_assert_not_null(report.failed, "call %lld was not reached", (long long)n);
    cr_assert_eq(report.objects, 0, "%lld objects are left after %s (call %lld) failed",
                 (long long)report.objects, report.failed, (long long)n);
    if (status == STATUS_OK)
        cr_assert(result[0] == 64 * 1001, "%s (call %lld) failed unseen", report.failed,
                  (long long)n);
    else
        cr_assert(error.status == status && error.text[0], "%s (call %lld): no reason",
                  report.failed, (long long)n);
    /* The last calls are those of closing, where nothing is reported. */
    if (status == STATUS_OK && settings->fail_call > 0)
        cr_assert(may_succeed(report.failed) || strcmp(report.failed, "cuStreamSynchronize") == 0,
                  "%s (call %lld) failed unseen", report.failed, (long long)n);
}

Test(device, any_call_may_fail) {
    static const int results[] = {DRIVER_OUT_OF_MEMORY, 1, DRIVER_LAUNCH_FAILED};
    const int64_t calls = count_calls();
    cr_assert_gt(calls, 60);
    for (int64_t n = 1; n <= calls; n++)
        for (int i = 0; i < 3; i++)
            check_failure(&(struct fakecuda_settings){.fail_call = n, .fail_result = results[i]},
                          n);
}

Test(device, it_may_be_lost_at_any_call) {
    const int64_t calls = count_calls();
    for (int64_t n = 1; n <= calls; n++)
        check_failure(&(struct fakecuda_settings){.lost_call = n}, n);
}

Test(device, the_host_may_run_out_of_memory) {
    float result[2] = {0};
    int n = 1;
    for (bool reached = true; reached; n++) {
        struct error error = {0};
        fakecuda_configure(NULL);
        failing_malloc_arm(n);
        const enum status status = everything(result, &error);
        reached = failing_malloc_disarm();
        cr_assert_eq(status, reached ? STATUS_NO_MEMORY : STATUS_OK, "allocation %d: %s", n,
                     error.text);
        cr_assert_eq(device_scene_report().objects, 0);
    }
    cr_assert_gt(n, 5);
}

Test(device, a_lost_device_is_told_from_a_failed_call) {
    struct error error = {0};
    struct device *device = device_scene_open(NULL, NULL);
    uint64_t address = 0;
    cr_assert_eq(device_memory_alloc(device, DEVICE_MEMORY_KV, 256, &address, &error), STATUS_OK);
    /* Reads behind the allocation: the kernel's fault shows when it is waited for. */
    const struct small_add_arguments arguments = {.in = address, .out = address, .count = 65};
    cr_assert_eq(device_launch(device, &small_images_add, 3, &arguments, sizeof arguments, &error),
                 STATUS_OK, "%s", error.text);
    cr_assert(!device_is_lost(device));
    cr_assert_eq(device_synchronize(device, DEVICE_COMPUTE, &error), STATUS_DEVICE);
    cr_assert(device_is_lost(device));
    cr_assert_not_null(strstr(error.text, "the device is lost: cuStreamSynchronize: "
                                          "CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
                       "%s", error.text);
    cr_assert_eq(device_memory_alloc(device, DEVICE_MEMORY_KV, 256, &address, &error),
                 STATUS_DEVICE);
    device_close(device);
    cr_assert_eq(device_scene_report().objects, 0);
    cr_assert_not_null(strstr(device_scene_report().fault, "add: "));
}
