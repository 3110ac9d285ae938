/* The kernel tests' device by the PTX simulator: the program's own images. */
#include <criterion/criterion.h>
#include <string.h>

#include "gpu/gpu_images.h"
#include "tests/gpu/simulated.h"
#include "tests/ptxsim/ptxsim.h"

_Static_assert((int)SIMULATED_DESCENDING == (int)PTXSIM_DESCENDING &&
                   (int)SIMULATED_RANDOM == (int)PTXSIM_RANDOM,
               "one order");

void simulated_create(struct simulated *device, int capability) {
    struct ptxsim_device description;
    struct error error = {0};
    *device = (struct simulated){.capability = capability};
    ptxsim_device_describe(capability, &description);
    cr_assert_eq(ptxsim_create(&description, &device->machine, &error), STATUS_OK, "%s",
                 error.text);
}

void simulated_destroy(struct simulated *device) {
    for (int i = 0; i < device->module_count; i++)
        ptxsim_module_unload(device->modules[i].module);
    ptxsim_destroy(device->machine);
}

uint64_t simulated_upload(struct simulated *device, const void *bytes, size_t count) {
    struct error error = {0};
    uint64_t address = 0;
    size_t some = count ? count : 1;
    cr_assert_eq(ptxsim_memory_alloc(device->machine, some, &address, &error), STATUS_OK, "%s",
                 error.text);
    if (bytes)
        memcpy(ptxsim_memory_host(device->machine, address, some), bytes, count);
    return address;
}

void *simulated_view(struct simulated *device, uint64_t address, size_t count) {
    void *view = ptxsim_memory_host(device->machine, address, count);
    cr_assert_not_null(view);
    return view;
}

static const struct gpu_image *find_image(const char *name, int capability) {
    const struct gpu_image *best = NULL;
    for (size_t i = 0; i < gpu_images_count; i++) {
        const struct gpu_image *image = &gpu_images[i];
        if (image->kind == GPU_IMAGE_PTX && strcmp(image->name, name) == 0 &&
            image->capability <= capability && (!best || image->capability > best->capability))
            best = image;
    }
    return best;
}

bool simulated_has(int capability) {
    return find_image("row_kernels", capability) != NULL;
}

static struct ptxsim_module *find_module(struct simulated *device, const char *name) {
    struct error error = {0};
    for (int i = 0; i < device->module_count; i++)
        if (strcmp(device->modules[i].image, name) == 0)
            return device->modules[i].module;
    const struct gpu_image *image = find_image(name, device->capability);
    cr_assert_not_null(image, "no image %s for %d", name, device->capability);
    struct ptxsim_module *module = NULL;
    cr_assert_eq(ptxsim_module_load(device->machine, (const char *)image->bytes, image->byte_count,
                                    &module, &error),
                 STATUS_OK, "%s: %s", name, error.text);
    cr_assert_lt(device->module_count, SIMULATED_MODULES_MAX);
    device->modules[device->module_count].image = name;
    device->modules[device->module_count++].module = module;
    return module;
}

void simulated_launch(struct simulated *device, const struct launch_config *config, int64_t grid,
                      const void *arguments, size_t argument_bytes) {
    cr_assert_not_null(config);
    const struct ptxsim_kernel *kernel =
        ptxsim_module_kernel(find_module(device, config->image), config->entry);
    cr_assert_not_null(kernel, "%s", config->entry);
    cr_assert_eq(kernel->param_bytes, argument_bytes, "%s takes %u bytes, not %zu", config->entry,
                 kernel->param_bytes, argument_bytes);
    if (grid == 0)
        return;
    struct ptxsim_launch launch = {.grid = {(uint32_t)grid, 1, 1},
                                   .block = {(uint32_t)config->threads, 1, 1},
                                   .shared_bytes = (uint32_t)config->shared_bytes,
                                   .shared_optin = true,
                                   .params = arguments,
                                   .order = (enum ptxsim_order)device->order,
                                   .seed = 1,
                                   .host_threads = 2};
    struct ptxsim_report report = {0};
    struct error error = {0};
    enum status status = ptxsim_launch(device->machine, kernel, &launch, &report, &error);
    cr_assert_eq(status, STATUS_OK, "%s on %d: %s", config->entry, device->capability, error.text);
}
