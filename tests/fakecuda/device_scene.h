/* Short ways to a device on the fake driver, for tests. */
#ifndef TESTS_FAKECUDA_DEVICE_SCENE_H
#define TESTS_FAKECUDA_DEVICE_SCENE_H

#include "gpu/device.h"
#include "tests/fakecuda/fakecuda.h"
#include "tests/fakecuda/small_images.h"

/* Options that lead to the fake: its library for both, the small images, no cap. */
struct device_options device_scene_options(void);

/* Configures the fake (NULL: all default) and opens a device; a failure fails the test. `options`
 * NULL: device_scene_options. */
struct device *device_scene_open(const struct fakecuda_settings *settings,
                                 const struct device_options *options);

/* Closes it. Nothing may be left, queued or gone wrong in the fake. */
void device_scene_close(struct device *device);

struct fakecuda_report device_scene_report(void);

#endif
