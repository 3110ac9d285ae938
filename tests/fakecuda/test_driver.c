/* Machines without a usable driver: each says "no CUDA device" and why. */
#include <criterion/criterion.h>
#include <string.h>

#include "gpu/driver.h"
#include "tests/fakecuda/fakecuda.h"

static void refused(const char *path, const char *reason) {
    struct driver driver;
    struct error error = {0};
    cr_assert_eq(driver_open(&driver, path, &error), STATUS_NOT_FOUND, "%s", error.text);
    cr_assert_eq(error.status, STATUS_NOT_FOUND);
    cr_assert_eq(strncmp(error.text, "no CUDA device: ", 16), 0, "%s", error.text);
    cr_assert_not_null(strstr(error.text, reason), "%s", error.text);
    cr_assert_null(driver.library);
}

static struct driver opened(void) {
    struct driver driver;
    struct error error = {0};
    cr_assert_eq(driver_open(&driver, FAKECUDA_PATH, &error), STATUS_OK, "%s", error.text);
    return driver;
}

Test(driver, a_library_that_does_not_exist) {
    refused("/nonexistent/libcuda.so.1", "/nonexistent/libcuda.so.1: cannot open");
}

Test(driver, the_reason_is_optional) {
    struct driver driver;
    cr_assert_eq(driver_open(&driver, "/nonexistent/libcuda.so.1", NULL), STATUS_NOT_FOUND);
}

Test(driver, a_library_that_is_another) {
    refused("libm.so.6", "the driver is too old: 'libm.so.6' has no 'cuGetErrorName'; CUDA 11.4");
}

Test(driver, a_driver_too_old) {
    fakecuda_configure(&(struct fakecuda_settings){.driver_version = 10020});
    refused(FAKECUDA_PATH, "it is for CUDA 10.2, 11.4 or later is needed");
}

Test(driver, no_device) {
    fakecuda_configure(&(struct fakecuda_settings){.no_device = true});
    refused(FAKECUDA_PATH, "cuInit: CUDA_ERROR_NO_DEVICE (100)");
}

Test(driver, every_call_of_opening_can_fail) {
    static const char *const calls[] = {"cuDriverGetVersion", "cuInit", "cuDeviceGetCount"};
    for (int n = 0; n < 3; n++) {
        fakecuda_configure(&(struct fakecuda_settings){.fail_call = n + 1, .fail_result = 999});
        refused(FAKECUDA_PATH, calls[n]);
    }
}

Test(driver, opens) {
    fakecuda_configure(&(struct fakecuda_settings){.driver_version = 12040});
    struct driver driver = opened();
    cr_assert_eq(driver.version, 12040);
    cr_assert(!driver.lost);
    driver_close(&driver);
}

Test(driver, errors_name_the_call_and_the_reason) {
    struct driver driver = opened();
    struct error error = {0};
    cr_assert_eq(driver_check(&driver, DRIVER_SUCCESS, "cuMemAlloc", &error), STATUS_OK);
    cr_assert_eq(driver_check(&driver, DRIVER_OUT_OF_MEMORY, "cuMemAlloc", &error),
                 STATUS_NO_MEMORY);
    cr_assert_str_eq(error.text, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: simulated");
    cr_assert_eq(driver_check(&driver, 400, "cuEventRecord", &error), STATUS_DEVICE);
    cr_assert_str_eq(error.text, "cuEventRecord: CUDA_ERROR_INVALID_HANDLE (400): simulated");
    cr_assert_eq(driver_check(&driver, 12345, "cuEventRecord", &error), STATUS_DEVICE);
    cr_assert_str_eq(error.text, "cuEventRecord: unknown CUDA error (12345): no description");
    cr_assert(!driver.lost);
    driver_close(&driver);
}

Test(driver, a_lost_device_stays_lost) {
    struct driver driver = opened();
    struct error error = {0};
    cr_assert_eq(driver_check(&driver, DRIVER_ILLEGAL_ADDRESS, "cuStreamSynchronize", &error),
                 STATUS_DEVICE);
    cr_assert_str_eq(error.text, "the device is lost: cuStreamSynchronize: "
                                 "CUDA_ERROR_ILLEGAL_ADDRESS (700): simulated");
    cr_assert(driver.lost);
    driver_check(&driver, 1, "cuMemFree", &error);
    cr_assert_str_eq(error.text,
                     "the device is lost: cuMemFree: CUDA_ERROR_INVALID_VALUE (1): simulated");
    driver_close(&driver);
}

/* NVIDIA's toolkit has a library with every symbol of the driver's that does nothing: all that the
 * table asks for must be there. */
Test(driver, the_toolkit_has_every_symbol) {
#ifdef FAKECUDA_STUB
    refused(FAKECUDA_STUB, "cuDriverGetVersion: unknown CUDA error (34)");
#else
    cr_skip_test("no CUDA toolkit was found");
#endif
}
