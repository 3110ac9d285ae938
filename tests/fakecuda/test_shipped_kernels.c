/* The program's own images through the whole host layer: every row of the launch table loads on
 * every kind of device, and what a kernel computes comes back right. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "gpu/device_copy.h"
#include "gpu/device_host.h"
#include "gpu/device_launch.h"
#include "gpu/device_memory.h"
#include "tests/fakecuda/device_scene.h"

static struct error error;

#define OK(call) cr_assert_eq(call, STATUS_OK, "%s", error.text)

/* NULL when the build has no kernels for the capability. */
static struct device *open_shipped(const struct fakecuda_settings *settings) {
    struct device_options options = device_scene_options();
    int least = 0;
    for (size_t i = 0; i < gpu_images_count; i++)
        if (gpu_images[i].kind == GPU_IMAGE_PTX && (!least || gpu_images[i].capability < least))
            least = gpu_images[i].capability;
    if (least == 0 || settings->capability < least)
        return NULL;
    options.images = NULL;
    return device_scene_open(settings, &options);
}

static void prepare(struct device *device, const struct launch_config *config) {
    if (config)
        OK(device_launch_prepare(device, config, &error));
}

static void prepare_all(int capability) {
    static const int head_dims[] = {64, 80, 96, 128, 256};
    struct device *device = open_shipped(&(struct fakecuda_settings){.capability = capability});
    if (!device)
        cr_skip_test("this build has no kernels for the capability");
    for (int kernel = 0; kernel < KERNEL_ID_COUNT; kernel++)
        prepare(device, launch_config_find((enum kernel_id)kernel));
    for (int element = KV_ELEMENT_F16; element <= KV_ELEMENT_E4M3; element++)
        for (int dim = 0; dim < ATTENTION_HEAD_DIM_COUNT; dim++)
            for (int decode = 0; decode < 2; decode++)
                prepare(device, launch_config_attention(device->path, decode,
                                                        (enum kv_element)element, head_dims[dim]));
    for (int type = WEIGHT_F32; type <= WEIGHT_BF16; type++)
        for (int many = 0; many < 2; many++)
            if (type != WEIGHT_BF16 || device->path == MATRIX_AMPERE)
                prepare(device, launch_config_linear((enum weight_type)type, many));
    cr_assert_gt(device->function_count, KERNEL_ID_COUNT + 50);
    device_scene_close(device);
}

Test(shipped_kernels, all_load_on_6_0) {
    prepare_all(60);
}

Test(shipped_kernels, all_load_on_7_5) {
    prepare_all(75);
}

Test(shipped_kernels, all_load_on_8_9) {
    prepare_all(89);
}

Test(shipped_kernels, all_load_on_12_0) {
    prepare_all(120);
}

/* ---- rows uploaded on one stream, normed and searched on the other, twice over one buffer ---- */
enum { ROWS = 3, WIDTH = 300, ROUNDS = 2 };

struct scene {
    struct device *device;
    uint64_t in, weight, normed, ids, finite;
    struct device_host host; /* float [ROUNDS][ROWS][WIDTH], int32 [ROUNDS][ROWS] */
    struct driver_event *full, *empty;
};

static uint64_t allocated(struct device *device, uint64_t bytes) {
    uint64_t address = 0;
    OK(device_memory_alloc(device, DEVICE_MEMORY_ACTIVATIONS, bytes, &address, &error));
    return address;
}

static float value(int round, int row, int column) {
    return (float)((column * (17 + row) + 5 * round) % 101) / 16 - 3;
}

static float *host_rows(struct scene *scene, int round) {
    return (float *)scene->host.bytes + round * ROWS * WIDTH;
}

static int32_t *host_ids(struct scene *scene, int round) {
    return (int32_t *)((float *)scene->host.bytes + ROUNDS * ROWS * WIDTH) + round * ROWS;
}

static void prepare_scene(struct scene *scene, struct device *device) {
    const uint64_t bytes = ROWS * WIDTH * sizeof(float);
    float ones[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        ones[i] = 1;
    *scene = (struct scene){.device = device,
                            .in = allocated(device, bytes),
                            .weight = allocated(device, sizeof ones),
                            .normed = allocated(device, bytes),
                            .ids = allocated(device, ROWS * sizeof(int32_t)),
                            .finite = allocated(device, ROWS * sizeof(int32_t))};
    OK(device_host_alloc(device, ROUNDS * (bytes + ROWS * sizeof(int32_t)), &scene->host, &error));
    OK(device_event_create(device, false, &scene->full, &error));
    OK(device_event_create(device, false, &scene->empty, &error));
    OK(device_copy_upload(device, DEVICE_COMPUTE, scene->weight, ones, sizeof ones, &error));
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < ROWS * WIDTH; i++)
            host_rows(scene, round)[i] = value(round, i / WIDTH, i % WIDTH);
}

static void queue_round(struct scene *scene, int round) {
    struct device *device = scene->device;
    const struct rms_norm_arguments norm = {.in = scene->in,
                                            .weight = scene->weight,
                                            .out = scene->normed,
                                            .rows = ROWS,
                                            .width = WIDTH,
                                            .epsilon = 1e-6f,
                                            .out_element = ELEMENT_F32};
    const struct argmax_arguments argmax = {.values = scene->normed,
                                            .ids = scene->ids,
                                            .finite = scene->finite,
                                            .stride = WIDTH,
                                            .rows = ROWS,
                                            .count = WIDTH};
    OK(device_event_wait(device, scene->empty, DEVICE_COPY, &error));
    OK(device_copy_to_device(device, DEVICE_COPY, scene->in, host_rows(scene, round),
                             ROWS * WIDTH * sizeof(float), &error));
    OK(device_event_record(device, scene->full, DEVICE_COPY, &error));
    OK(device_event_wait(device, scene->full, DEVICE_COMPUTE, &error));
    OK(device_launch(device, launch_config_find(KERNEL_RMS_NORM), ROWS, &norm, sizeof norm,
                     &error));
    OK(device_event_record(device, scene->empty, DEVICE_COMPUTE, &error));
    OK(device_launch(device, launch_config_find(KERNEL_ARGMAX), ROWS, &argmax, sizeof argmax,
                     &error));
    OK(device_copy_to_host(device, DEVICE_COMPUTE, host_ids(scene, round), scene->ids,
                           ROWS * sizeof(int32_t), &error));
}

static int32_t wanted_id(int round, int row) {
    int32_t best = 0;
    for (int column = 1; column < WIDTH; column++)
        if (value(round, row, column) > value(round, row, best))
            best = column;
    return best;
}

static void check_normed(struct scene *scene) {
    float normed[ROWS][WIDTH];
    OK(device_copy_download(scene->device, DEVICE_COMPUTE, normed, scene->normed, sizeof normed,
                            &error));
    for (int row = 0; row < ROWS; row++) {
        double squares = 0;
        for (int column = 0; column < WIDTH; column++)
            squares += pow((double)value(ROUNDS - 1, row, column), 2);
        for (int column = 0; column < WIDTH; column++)
            cr_assert_float_eq((double)normed[row][column],
                               (double)value(ROUNDS - 1, row, column) / sqrt(squares / WIDTH),
                               1e-5);
    }
}

static void norm_and_search(int capability, enum fakecuda_order order) {
    struct device *device = open_shipped(
        &(struct fakecuda_settings){.capability = capability, .order = order, .seed = 7});
    if (!device)
        cr_skip_test("this build has no kernels for the capability");
    struct scene scene;
    prepare_scene(&scene, device);
    for (int round = 0; round < ROUNDS; round++)
        queue_round(&scene, round);
    OK(device_synchronize(device, DEVICE_COMPUTE, &error));
    for (int round = 0; round < ROUNDS; round++)
        for (int row = 0; row < ROWS; row++)
            cr_assert_eq(host_ids(&scene, round)[row], wanted_id(round, row));
    check_normed(&scene);
    device_event_destroy(device, scene.full);
    device_event_destroy(device, scene.empty);
    device_host_free(device, &scene.host);
    device_scene_close(device);
}

static void norm_and_search_in_every_order(int capability) {
    norm_and_search(capability, FAKECUDA_LAZY);
    norm_and_search(capability, FAKECUDA_EAGER);
    norm_and_search(capability, FAKECUDA_RANDOM);
}

Test(shipped_kernels, compute_on_6_1) {
    norm_and_search_in_every_order(61);
}

Test(shipped_kernels, compute_on_7_0) {
    norm_and_search_in_every_order(70);
}

Test(shipped_kernels, compute_on_7_5) {
    norm_and_search_in_every_order(75);
}

Test(shipped_kernels, compute_on_8_0) {
    norm_and_search_in_every_order(80);
}

Test(shipped_kernels, compute_on_9_0) {
    norm_and_search_in_every_order(90);
}
