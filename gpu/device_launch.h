/* Kernels of the program's images on a device: modules are loaded when the first of their functions
 * is asked for (a fat binary with machine code for the device where the build has one, else PTX of
 * the largest capability that is not above the device's, which the driver compiles), functions once
 * and kept. */
#ifndef GPU_DEVICE_LAUNCH_H
#define GPU_DEVICE_LAUNCH_H

#include "gpu/device.h"

/* The capability of the PTX that would be loaded for `image` on this device; 0: the build has none.
 * Tells before device_launch_prepare which kernels there are (clang-19 was not found: none below
 * 75). */
int device_launch_capability(const struct device *device, const char *image);

/* Load what the row needs, now instead of at its first launch: compiling PTX can take seconds, and
 * nothing may be loaded while a graph is captured. STATUS_UNSUPPORTED when the build has no image
 * for the device, the driver is too old for it, or the device's shared memory is too small. */
enum status device_launch_prepare(struct device *device, const struct launch_config *config,
                                  struct error *error);

/* Queue `grid` blocks on the compute stream; 0 blocks: nothing. The argument struct is copied. */
enum status device_launch(struct device *device, const struct launch_config *config, int64_t grid,
                          const void *arguments, size_t argument_bytes, struct error *error);

/* For device_open: STATUS_UNSUPPORTED when no image of the build runs on the device. */
enum status device_launch_check_images(const struct device *device, struct error *error);
void device_launch_release(struct device *device); /* all modules; for device_close */

#endif
