/* Opening and closing for tests, with the checks that every test wants. */
#include "tests/fakecuda/device_scene.h"

#include <criterion/criterion.h>

static const char *const blas_paths[] = {FAKECUDA_PATH, NULL};

struct device_options device_scene_options(void) {
    return (struct device_options){.driver_path = FAKECUDA_PATH,
                                   .blas_paths = blas_paths,
                                   .images = small_images,
                                   .image_count = SMALL_IMAGES_COUNT};
}

struct device *device_scene_open(const struct fakecuda_settings *settings,
                                 const struct device_options *options) {
    const struct device_options usual = device_scene_options();
    struct device *device = NULL;
    struct error error = {0};
    fakecuda_configure(settings);
    cr_assert_eq(device_open(options ? options : &usual, &device, &error), STATUS_OK, "%s",
                 error.text);
    return device;
}

void device_scene_close(struct device *device) {
    device_close(device);
    const struct fakecuda_report report = device_scene_report();
    cr_assert_eq(report.objects, 0, "%lld objects are left", (long long)report.objects);
    cr_assert_str_eq(report.fault, "");
}

struct fakecuda_report device_scene_report(void) {
    struct fakecuda_report report;
    fakecuda_report(&report);
    return report;
}
