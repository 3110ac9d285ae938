/* Finding cuBLAS, and matmuls against plain sums. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/weights/quant_type.h"
#include "gpu/blas.h"
#include "gpu/device_copy.h"
#include "gpu/device_memory.h"
#include "tests/fakecuda/device_scene.h"

static struct error error;

#define OK(call) cr_assert_eq(call, STATUS_OK, "%s", error.text)

Test(blas, opens_once_with_a_workspace) {
    struct device *device = device_scene_open(NULL, NULL);
    cr_assert_eq(blas_version(device), 0);
    OK(blas_open(device, &error));
    OK(blas_open(device, &error));
    cr_assert_eq(blas_version(device), 130000);
    cr_assert_eq(device->used_bytes[DEVICE_MEMORY_SCRATCH], blas_workspace_bytes(device));
    device_scene_close(device);
}

Test(blas, takes_the_first_library_that_works) {
    static const char *const paths[] = {"/nonexistent/libcublas.so.13", "libm.so.6", FAKECUDA_PATH,
                                        NULL};
    struct device_options options = device_scene_options();
    options.blas_paths = paths;
    struct device *device = device_scene_open(NULL, &options);
    OK(blas_open(device, &error));
    device_scene_close(device);
}

Test(blas, says_why_none_works) {
    static const char *const paths[] = {"/nonexistent/libcublas.so.13", "libm.so.6", FAKECUDA_PATH,
                                        NULL};
    struct device_options options = device_scene_options();
    options.blas_paths = paths;
    struct device *device =
        device_scene_open(&(struct fakecuda_settings){.no_blas = true}, &options);
    cr_assert_eq(blas_open(device, &error), STATUS_NOT_FOUND);
    cr_assert_eq(strncmp(error.text, "no cuBLAS: ", 11), 0, "%s", error.text);
    cr_assert_not_null(strstr(error.text, "/nonexistent/libcublas.so.13: cannot open"));
    cr_assert_not_null(strstr(error.text, "; libm.so.6: it has no 'cublasCreate_v2';"));
    cr_assert_not_null(strstr(error.text, "cublasCreate: CUBLAS_STATUS_NOT_INITIALIZED (1)"));
    cr_assert_eq(blas_version(device), 0);
    device_scene_close(device);
}

Test(blas, without_memory_for_its_workspace) {
    struct device *device =
        device_scene_open(&(struct fakecuda_settings){.memory_bytes = 1 << 20}, NULL);
    cr_assert_eq(blas_open(device, &error), STATUS_NO_MEMORY);
    cr_assert_not_null(strstr(error.text, "out of device memory for scratch: 4.0 MiB"));
    cr_assert_eq(device_memory_used(device), 0);
    device_scene_close(device);
}

/* ---- matmuls ---- */
enum { ROWS = 5, COLUMNS = 19, K = 24, STRIDE = 32 };

struct scene {
    struct device *device;
    float in[ROWS][K], weights[COLUMNS][K]; /* exact in every element type */
    struct blas_matmul matmul;
};

static float small_number(int i) {
    return (float)(i * 7 % 31 - 15) / 8;
}

/* `count` rows on the device, STRIDE elements apart; the gaps stay poisoned. */
static uint64_t upload(struct device *device, const float *rows, int count, enum element element) {
    const size_t size = element == ELEMENT_F32 ? 4 : 2;
    uint64_t address = 0;
    OK(device_memory_alloc(device, DEVICE_MEMORY_WEIGHTS, (uint64_t)count * STRIDE * size, &address,
                           &error));
    for (int i = 0; i < count; i++) {
        uint16_t narrow[K];
        for (int k = 0; k < K; k++)
            narrow[k] = element == ELEMENT_BF16 ? quant_type_f32_to_bf16(rows[i * K + k])
                                                : quant_type_f32_to_f16(rows[i * K + k]);
        OK(device_copy_upload(device, DEVICE_COMPUTE, address + (uint64_t)i * STRIDE * size,
                              element == ELEMENT_F32 ? (const void *)(rows + i * K) : narrow,
                              K * size, &error));
    }
    return address;
}

static struct scene open_scene(const struct fakecuda_settings *settings, enum element element) {
    struct scene scene = {.device = device_scene_open(settings, NULL)};
    for (int i = 0; i < ROWS * K; i++)
        scene.in[i / K][i % K] = small_number(i);
    for (int i = 0; i < COLUMNS * K; i++)
        scene.weights[i / K][i % K] = small_number(3 * i + 1);
    OK(blas_open(scene.device, &error));
    uint64_t out = 0;
    OK(device_memory_alloc(scene.device, DEVICE_MEMORY_ACTIVATIONS, ROWS * STRIDE * sizeof(float),
                           &out, &error));
    scene.matmul = (struct blas_matmul){
        .weights = upload(scene.device, scene.weights[0], COLUMNS, element),
        .in = upload(scene.device, scene.in[0], ROWS, element),
        .out = out,
        .element = element,
        .rows = ROWS,
        .columns = COLUMNS,
        .k = K,
        .weight_stride = STRIDE,
        .in_stride = STRIDE,
        .out_stride = STRIDE,
    };
    return scene;
}

static void expect_multiples(struct scene *scene, float times) {
    float out[ROWS][STRIDE];
    OK(device_copy_download(scene->device, DEVICE_COMPUTE, out, scene->matmul.out, sizeof out,
                            &error));
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += scene->in[row][k] * scene->weights[column][k];
            cr_assert_eq(out[row][column], times * sum, "row %d, column %d: %g, not %g", row,
                         column, (double)out[row][column], (double)(times * sum));
        }
        for (int column = COLUMNS; column < STRIDE; column++)
            cr_assert(isnan(out[row][column]), "the gap is written");
    }
}

static void multiplies(enum element element) {
    struct scene scene = open_scene(NULL, element);
    OK(blas_multiply(scene.device, &scene.matmul, &error));
    expect_multiples(&scene, 1);
    scene.matmul.accumulate = true;
    OK(blas_multiply(scene.device, &scene.matmul, &error));
    expect_multiples(&scene, 2);
    device_scene_close(scene.device);
}

Test(blas, multiplies_f32) {
    multiplies(ELEMENT_F32);
}

Test(blas, multiplies_f16) {
    multiplies(ELEMENT_F16);
}

Test(blas, multiplies_bf16) {
    multiplies(ELEMENT_BF16);
}

Test(blas, of_no_rows_is_nothing) {
    struct scene scene = open_scene(NULL, ELEMENT_F16);
    scene.matmul.rows = 0;
    OK(blas_multiply(scene.device, &scene.matmul, &error));
    scene.matmul.rows = 1;
    scene.matmul.columns = 0;
    OK(blas_multiply(scene.device, &scene.matmul, &error));
    OK(device_synchronize(scene.device, DEVICE_COMPUTE, &error));
    cr_assert_eq(device_scene_report().multiplies, 0);
    device_scene_close(scene.device);
}

static void misused(struct scene *scene, const char *name) {
    cr_assert_eq(blas_multiply(scene->device, &scene->matmul, &error), STATUS_DEVICE);
    cr_assert_not_null(strstr(error.text, name), "%s", error.text);
    device_close(scene->device);
    cr_assert_eq(device_scene_report().objects, 0);
}

Test(blas, strides_shorter_than_rows_are_refused) {
    struct scene scene = open_scene(NULL, ELEMENT_F16);
    scene.matmul.in_stride = K - 1;
    misused(&scene, "cublasGemmEx: CUBLAS_STATUS_INVALID_VALUE (7)");
}

Test(blas, misaligned_matrices_are_refused) {
    struct scene scene = open_scene(NULL, ELEMENT_F16);
    scene.matmul.weights += 1;
    misused(&scene, "CUBLAS_STATUS_INVALID_VALUE");
}

Test(blas, bf16_needs_8_0) {
    struct scene scene = open_scene(&(struct fakecuda_settings){.capability = 75}, ELEMENT_BF16);
    misused(&scene, "CUBLAS_STATUS_NOT_SUPPORTED");
}

Test(blas, a_matrix_longer_than_its_memory_loses_the_device) {
    struct scene scene = open_scene(NULL, ELEMENT_F16);
    scene.matmul.rows = ROWS + 1;
    OK(blas_multiply(scene.device, &scene.matmul, &error));
    cr_assert_eq(device_synchronize(scene.device, DEVICE_COMPUTE, &error), STATUS_DEVICE);
    cr_assert(device_is_lost(scene.device));
    device_close(scene.device);
    cr_assert_eq(device_scene_report().objects, 0);
}
