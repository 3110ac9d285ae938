/* Modules and functions are found by walking short lists: a step uses some ten kernels. */
#include "gpu/device_launch.h"

#include <stdlib.h>
#include <string.h>

enum { JIT_LOG_BYTES = 512, MODULE_CAPACITY_FIRST = 8 };

struct device_module {
    const char *image;
    struct driver_module *module;
};

struct device_function {
    const struct launch_config *config;
    struct driver_function *function;
};

/* The best image of a kind; NULL: none. `name` NULL: of any name. */
static const struct gpu_image *find_image(const struct device *device, const char *name,
                                          enum gpu_image_kind kind) {
    const struct gpu_image *best = NULL;
    for (size_t i = 0; i < device->image_count; i++) {
        const struct gpu_image *image = &device->images[i];
        if (image->kind == kind && (!name || strcmp(image->name, name) == 0) &&
            image->capability <= device->capability &&
            (!best || image->capability > best->capability))
            best = image;
    }
    return best;
}

int device_launch_capability(const struct device *device, const char *image) {
    const struct gpu_image *found = find_image(device, image, GPU_IMAGE_PTX);
    return found ? found->capability : 0;
}

/* The least capability of the build's PTX for `name` (NULL: any); 0: there is none. */
static int least_capability(const struct device *device, const char *name) {
    int least = 0;
    for (size_t i = 0; i < device->image_count; i++) {
        const struct gpu_image *image = &device->images[i];
        if (image->kind == GPU_IMAGE_PTX && (!name || strcmp(image->name, name) == 0) &&
            (least == 0 || image->capability < least))
            least = image->capability;
    }
    return least;
}

static enum status no_image(const struct device *device, const char *name, struct error *error) {
    const int least = least_capability(device, name);
    if (least == 0)
        return error_set(error, STATUS_UNSUPPORTED, "this build has no CUDA kernels%s%s",
                         name ? " of " : "", name ? name : "");
    return error_set(
        error, STATUS_UNSUPPORTED,
        "the device '%s' has compute capability %d.%d: this build has CUDA kernels%s%s "
        "for %d.%d and later only",
        device->name, device->capability / 10, device->capability % 10, name ? " of " : "",
        name ? name : "", least / 10, least % 10);
}

enum status device_launch_check_images(const struct device *device, struct error *error) {
    return find_image(device, NULL, GPU_IMAGE_PTX) ? STATUS_OK : no_image(device, NULL, error);
}

/* "8.5" of ".version 8.5", the PTX language that the driver must know. */
static void ptx_version(const struct gpu_image *image, char *version, size_t size) {
    static const char mark[] = ".version ";
    const char *found = strstr((const char *)image->bytes, mark);
    size_t length = found ? strcspn(found + sizeof mark - 1, "\r\n") : 0;
    length = length < size ? length : size - 1;
    if (length)
        memcpy(version, found + sizeof mark - 1, length);
    version[length] = '\0';
}

static enum status load_failed(struct device *device, const struct gpu_image *image, int result,
                               const char *log, struct error *error) {
    if (result == DRIVER_UNSUPPORTED_PTX_VERSION) {
        char version[16];
        ptx_version(image, version, sizeof version);
        return error_set(
            error, STATUS_UNSUPPORTED,
            "the driver, for CUDA %d.%d, is too old for this build's kernels (PTX %s): "
            "update it",
            device->driver.version / 1000, device->driver.version % 1000 / 10, version);
    }
    const enum status status = driver_check(&device->driver, result, "cuModuleLoadDataEx", error);
    error_context(error, "loading the CUDA kernels '%s'", image->name);
    if (error && log[0] && status != STATUS_NO_MEMORY) {
        const struct error plain = *error;
        return error_set(error, status, "%s: %s", plain.text, log);
    }
    return status;
}

/* Returns the driver's result. */
static int load_image(struct device *device, const struct gpu_image *image, char *log,
                      struct driver_module **module) {
    int options[] = {DRIVER_JIT_ERROR_LOG, DRIVER_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)JIT_LOG_BYTES};
    log[0] = '\0';
    const int result = device->driver.cuModuleLoadDataEx(module, image->bytes, 2, options, values);
    log[JIT_LOG_BYTES - 1] = '\0';
    return result;
}

static enum status load_module(struct device *device, const char *name,
                               struct driver_module **module, struct error *error) {
    char log[JIT_LOG_BYTES];
    const struct gpu_image *fat = find_image(device, name, GPU_IMAGE_FAT_BINARY);
    if (fat) {
        const int result = load_image(device, fat, log, module);
        if (result == DRIVER_SUCCESS)
            return STATUS_OK;
        if (result != DRIVER_NO_BINARY_FOR_GPU)
            return load_failed(device, fat, result, log, error);
    }
    const struct gpu_image *ptx = find_image(device, name, GPU_IMAGE_PTX);
    if (!ptx)
        return no_image(device, name, error);
    const int result = load_image(device, ptx, log, module);
    return result == DRIVER_SUCCESS ? STATUS_OK : load_failed(device, ptx, result, log, error);
}

/* Room for one more of a list. */
static enum status make_room(void **list, size_t count, size_t *capacity, size_t entry_bytes,
                             struct error *error) {
    if (count < *capacity)
        return STATUS_OK;
    const size_t wanted = *capacity ? *capacity * 2 : MODULE_CAPACITY_FIRST;
    void *grown = realloc(*list, wanted * entry_bytes);
    if (!grown)
        return error_no_memory(error, "CUDA kernels");
    *list = grown;
    *capacity = wanted;
    return STATUS_OK;
}

static enum status find_module(struct device *device, const char *name,
                               struct driver_module **module, struct error *error) {
    for (size_t i = 0; i < device->module_count; i++) {
        if (strcmp(device->modules[i].image, name) == 0) {
            *module = device->modules[i].module;
            return STATUS_OK;
        }
    }
    void *list = device->modules;
    const enum status status = make_room(&list, device->module_count, &device->module_capacity,
                                         sizeof *device->modules, error);
    device->modules = list;
    TRY(status);
    TRY(load_module(device, name, module, error));
    device->modules[device->module_count++] =
        (struct device_module){.image = name, .module = *module};
    return STATUS_OK;
}

static enum status look_up(struct device *device, const struct launch_config *config,
                           struct driver_function **function, struct error *error) {
    struct driver *driver = &device->driver;
    struct driver_module *module = NULL;
    TRY(find_module(device, config->image, &module, error));
    TRY(DRIVER_CALL(driver, error, cuModuleGetFunction, function, module, config->entry));
    if (config->shared_bytes > device->shared_bytes_max)
        return error_set(error, STATUS_UNSUPPORTED,
                         "%d bytes of shared memory are needed, the device '%s' has %d",
                         config->shared_bytes, device->name, device->shared_bytes_max);
    if (config->shared_bytes == 0)
        return STATUS_OK;
    return DRIVER_CALL(driver, error, cuFuncSetAttribute, *function,
                       DRIVER_FUNCTION_DYNAMIC_SHARED_BYTES, config->shared_bytes);
}

static enum status find_function(struct device *device, const struct launch_config *config,
                                 struct driver_function **function, struct error *error) {
    for (size_t i = 0; i < device->function_count; i++) {
        if (device->functions[i].config == config) {
            *function = device->functions[i].function;
            return STATUS_OK;
        }
    }
    void *list = device->functions;
    enum status status = make_room(&list, device->function_count, &device->function_capacity,
                                   sizeof *device->functions, error);
    device->functions = list;
    if (status == STATUS_OK)
        status = look_up(device, config, function, error);
    if (status != STATUS_OK) {
        error_context(error, "CUDA kernel '%s'", config->entry);
        return status;
    }
    device->functions[device->function_count++] =
        (struct device_function){.config = config, .function = *function};
    return STATUS_OK;
}

enum status device_launch_prepare(struct device *device, const struct launch_config *config,
                                  struct error *error) {
    struct driver_function *function = NULL;
    return find_function(device, config, &function, error);
}

/* The parameters go as one packed buffer, whose size the driver then knows. */
static enum status queue(struct device *device, const struct launch_config *config, unsigned grid,
                         const void *arguments, size_t argument_bytes, struct error *error) {
    struct driver_function *function = NULL;
    TRY(find_function(device, config, &function, error));
    void *extra[] = {(void *)(uintptr_t)DRIVER_LAUNCH_BUFFER_POINTER, (void *)(uintptr_t)arguments,
                     (void *)(uintptr_t)DRIVER_LAUNCH_BUFFER_SIZE, &argument_bytes,
                     (void *)(uintptr_t)DRIVER_LAUNCH_END};
    const enum status status = DRIVER_CALL(
        &device->driver, error, cuLaunchKernel, function, grid, 1, 1, (unsigned)config->threads, 1,
        1, (unsigned)config->shared_bytes, device->streams[DEVICE_COMPUTE], NULL, extra);
    if (status != STATUS_OK)
        error_context(error, "CUDA kernel '%s'", config->entry);
    return status;
}

enum status device_launch(struct device *device, const struct launch_config *config, int64_t grid,
                          const void *arguments, size_t argument_bytes, struct error *error) {
    if (grid == 0)
        return STATUS_OK;
    if (grid < 0 || grid > INT32_MAX)
        return error_set(error, STATUS_OVER_LIMIT,
                         "CUDA kernel '%s': %lld blocks are more than a launch can have",
                         config->entry, (long long)grid);
    return queue(device, config, (unsigned)grid, arguments, argument_bytes, error);
}

void device_launch_release(struct device *device) {
    for (size_t i = 0; i < device->module_count; i++)
        (void)device->driver.cuModuleUnload(device->modules[i].module);
    free(device->modules);
    free(device->functions);
    device->modules = NULL;
    device->functions = NULL;
    device->module_count = device->module_capacity = 0;
    device->function_count = device->function_capacity = 0;
}
