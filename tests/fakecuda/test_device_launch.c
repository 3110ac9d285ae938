/* Which image is loaded, what is refused and in which words, and launches of small kernels. */
#include <criterion/criterion.h>
#include <string.h>

#include "gpu/device_copy.h"
#include "gpu/device_launch.h"
#include "gpu/device_memory.h"
#include "tests/fakecuda/device_scene.h"

static struct error error;

#define OK(call) cr_assert_eq(call, STATUS_OK, "%s", error.text)

static uint64_t zeros(struct device *device, uint64_t bytes) {
    uint64_t address = 0;
    OK(device_memory_alloc(device, DEVICE_MEMORY_ACTIVATIONS, bytes, &address, &error));
    OK(device_copy_fill(device, DEVICE_COMPUTE, address, 0, bytes, &error));
    return address;
}

/* What `add` makes of 0 + 1. */
static float add_one(struct device *device) {
    const uint64_t address = zeros(device, sizeof(float));
    const struct small_add_arguments arguments = {
        .in = address, .out = address, .count = 1, .addend = 1};
    float result = 0;
    OK(device_launch(device, &small_images_add, 1, &arguments, sizeof arguments, &error));
    OK(device_copy_download(device, DEVICE_COMPUTE, &result, address, sizeof result, &error));
    return result;
}

static float add_one_on(int capability) {
    struct device *device =
        device_scene_open(&(struct fakecuda_settings){.capability = capability}, NULL);
    const float result = add_one(device);
    cr_assert_eq(device_launch_capability(device, "small"), capability < 80 ? 60 : 80);
    device_scene_close(device);
    return result;
}

Test(device_launch, takes_the_largest_image_that_runs) {
    cr_assert_eq(add_one_on(60), 1);
    cr_assert_eq(add_one_on(75), 1);
    cr_assert_eq(add_one_on(80), 1001);
    cr_assert_eq(add_one_on(120), 1001);
}

Test(device_launch, knows_which_images_there_are) {
    struct device *device = device_scene_open(NULL, NULL);
    cr_assert_eq(device_launch_capability(device, "unknown"), 0);
    device_scene_close(device);
}

Test(device_launch, loads_a_module_and_a_function_once) {
    struct device *device = device_scene_open(NULL, NULL);
    OK(device_launch_prepare(device, &small_images_add, &error));
    const int64_t calls = device_scene_report().calls;
    OK(device_launch_prepare(device, &small_images_add, &error));
    cr_assert_eq(device_scene_report().calls, calls);
    OK(device_launch_prepare(device, &small_images_shared, &error));
    cr_assert_eq(device_scene_report().calls, calls + 2, "a look-up and an opt-in");
    cr_assert_eq(device->module_count, 1);
    device_scene_close(device);
}

Test(device_launch, opts_in_to_shared_memory) {
    struct device *device = device_scene_open(NULL, NULL);
    uint32_t result[32];
    const struct small_shared_arguments arguments = {.out = zeros(device, sizeof result)};
    OK(device_launch(device, &small_images_shared, 1, &arguments, sizeof arguments, &error));
    OK(device_copy_download(device, DEVICE_COMPUTE, result, arguments.out, sizeof result, &error));
    for (uint32_t i = 0; i < 32; i++)
        cr_assert_eq(result[i], i);
    device_scene_close(device);
}

Test(device_launch, of_no_blocks_is_nothing) {
    struct device *device = device_scene_open(NULL, NULL);
    OK(device_launch(device, &small_images_absent, 0, NULL, 0, &error));
    device_scene_close(device);
}

/* The largest grid.x; with a count of 0 no thread touches memory. */
Test(device_launch, of_more_blocks_than_65535) {
    struct device *device = device_scene_open(NULL, NULL);
    const struct small_add_arguments arguments = {0};
    OK(device_launch(device, &small_images_add, 70000, &arguments, sizeof arguments, &error));
    OK(device_synchronize(device, DEVICE_COMPUTE, &error));
    cr_assert_eq(device_launch(device, &small_images_add, INT64_C(1) << 31, &arguments,
                               sizeof arguments, &error),
                 STATUS_OVER_LIMIT);
    cr_assert_str_eq(error.text,
                     "CUDA kernel 'add': 2147483648 blocks are more than a launch can have");
    device_scene_close(device);
}

static void refused(struct device *device, const struct launch_config *config, enum status status,
                    const char *text) {
    cr_assert_eq(device_launch_prepare(device, config, &error), status, "%s", error.text);
    cr_assert_not_null(strstr(error.text, text), "%s", error.text);
    cr_assert_not_null(strstr(error.text, "CUDA kernel '"), "%s", error.text);
}

Test(device_launch, refuses_in_words) {
    struct device *device = device_scene_open(&(struct fakecuda_settings){.capability = 61}, NULL);
    refused(device, &small_images_absent, STATUS_DEVICE,
            "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND");
    refused(device, &small_images_unknown, STATUS_UNSUPPORTED,
            "this build has no CUDA kernels of unknown");
    refused(device, &small_images_huge, STATUS_UNSUPPORTED,
            "1048576 bytes of shared memory are needed, the device 'Simulated 6.1' has 49152");
    refused(device, &small_images_shared, STATUS_UNSUPPORTED, "61440 bytes of shared memory");
    cr_assert_eq(add_one(device), 1, "the device still works");
    device_scene_close(device);
}

Test(device_launch, the_compilers_log_is_in_the_error) {
    struct device *device = device_scene_open(NULL, NULL);
    refused(device, &small_images_broken, STATUS_DEVICE,
            "loading the CUDA kernels 'broken': cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218)");
    cr_assert_not_null(strstr(error.text, "frobnicate"), "%s", error.text);
    device_scene_close(device);
}

Test(device_launch, a_driver_older_than_the_ptx_is_said_to_be) {
    static const char text[] = ".version 9.0\n.target sm_75\n.address_size 64\n";
    const struct gpu_image image = {"small", GPU_IMAGE_PTX, 75, (const unsigned char *)text,
                                    sizeof text - 1};
    struct device_options options = device_scene_options();
    options.images = &image;
    options.image_count = 1;
    struct device *device =
        device_scene_open(&(struct fakecuda_settings){.driver_version = 12080}, &options);
    refused(device, &small_images_add, STATUS_UNSUPPORTED,
            "the driver, for CUDA 12.8, is too old for this build's kernels (PTX 9.0): update it");
    device_scene_close(device);
}

/* An image for newer devices only: the device opens for the others, this kernel is refused. */
Test(device_launch, a_kernel_without_an_image_for_the_device) {
    const struct gpu_image images[] = {
        small_images[2],
        {"newer", GPU_IMAGE_PTX, 80, small_images[1].bytes, small_images[1].byte_count}};
    static const struct launch_config newer = {"newer", "add", 32, 1, 0, 0};
    struct device_options options = device_scene_options();
    options.images = images;
    options.image_count = 2;
    struct device *device =
        device_scene_open(&(struct fakecuda_settings){.capability = 75}, &options);
    refused(device, &newer, STATUS_UNSUPPORTED,
            "the device 'Simulated 7.5' has compute capability 7.5: this build has CUDA kernels of "
            "newer for 8.0 and later only");
    cr_assert_eq(add_one(device), 1);
    device_scene_close(device);
}

Test(device_launch, arguments_of_another_size_are_seen) {
    struct device *device = device_scene_open(NULL, NULL);
    const struct small_add_arguments arguments = {0};
    cr_assert_eq(
        device_launch(device, &small_images_add, 1, &arguments, sizeof arguments - 8, &error),
        STATUS_DEVICE);
    device_close(device);
    cr_assert_str_eq(device_scene_report().fault, "add takes 24 bytes of parameters, not 16");
}
