/* Loading libcuda, and CUDA's errors in our words. */
#include "gpu/driver.h"

#include <dlfcn.h>
#include <string.h>

#define DEFAULT_PATH "libcuda.so.1"

/* Where each pointer of the table lies, and what it is called in the library. */
#define DRIVER_ENTRY(field, symbol, parameters) {offsetof(struct driver, field), symbol},
static const struct entry {
    size_t offset;
    const char *symbol;
} entries[] = {DRIVER_FUNCTIONS(DRIVER_ENTRY)};

/* Errors that a context does not survive: every later call of it fails. */
static const int lost_results[] = {
    DRIVER_DEINITIALIZED,
    DRIVER_ECC_UNCORRECTABLE,
    DRIVER_NVLINK_UNCORRECTABLE,
    DRIVER_CONTAINED,
    DRIVER_ILLEGAL_ADDRESS,
    DRIVER_LAUNCH_TIMEOUT,
    DRIVER_CONTEXT_IS_DESTROYED,
    DRIVER_ASSERT,
    DRIVER_HARDWARE_STACK_ERROR,
    DRIVER_ILLEGAL_INSTRUCTION,
    DRIVER_MISALIGNED_ADDRESS,
    DRIVER_INVALID_ADDRESS_SPACE,
    DRIVER_INVALID_PC,
    DRIVER_LAUNCH_FAILED,
    DRIVER_UNKNOWN,
};

static bool is_lost(int result) {
    for (size_t i = 0; i < sizeof lost_results / sizeof lost_results[0]; i++)
        if (lost_results[i] == result)
            return true;
    return false;
}

enum status driver_check(struct driver *driver, int result, const char *call, struct error *error) {
    if (result == DRIVER_SUCCESS)
        return STATUS_OK;
    const char *name = NULL, *text = NULL;
    if (driver->cuGetErrorName(result, &name) != DRIVER_SUCCESS || !name)
        name = "unknown CUDA error";
    if (driver->cuGetErrorString(result, &text) != DRIVER_SUCCESS || !text)
        text = "no description";
    if (result == DRIVER_OUT_OF_MEMORY)
        return error_set(error, STATUS_NO_MEMORY, "%s: %s: %s", call, name, text);
    driver->lost = driver->lost || is_lost(result);
    return error_set(error, STATUS_DEVICE, "%s%s: %s (%d): %s",
                     driver->lost ? "the device is lost: " : "", call, name, result, text);
}

/* dlsym gives data pointers; the bits of a function pointer are the same on every system that has
 * dlopen. */
static enum status fill_table(struct driver *driver, const char *path, struct error *error) {
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *symbol = dlsym(driver->library, entries[i].symbol);
        if (!symbol)
            return error_set(error, STATUS_NOT_FOUND,
                             "no CUDA device: the driver is too old: '%s' has no '%s'; CUDA %d.%d "
                             "or later is needed",
                             path, entries[i].symbol, DRIVER_VERSION_LEAST / 1000,
                             DRIVER_VERSION_LEAST % 1000 / 10);
        memcpy((char *)driver + entries[i].offset, &symbol, sizeof symbol);
    }
    return STATUS_OK;
}

/* The statuses of calls before a device is open all mean that there is none. */
static enum status none(struct error *error) {
    error_context(error, "no CUDA device");
    if (error)
        error->status = STATUS_NOT_FOUND;
    return STATUS_NOT_FOUND;
}

static enum status start(struct driver *driver, struct error *error) {
    if (DRIVER_CALL(driver, error, cuDriverGetVersion, &driver->version) != STATUS_OK)
        return none(error);
    if (driver->version < DRIVER_VERSION_LEAST)
        return error_set(error, STATUS_NOT_FOUND,
                         "no CUDA device: the driver is too old: it is for CUDA %d.%d, %d.%d or "
                         "later is needed",
                         driver->version / 1000, driver->version % 1000 / 10,
                         DRIVER_VERSION_LEAST / 1000, DRIVER_VERSION_LEAST % 1000 / 10);
    int count = 0;
    if (DRIVER_CALL(driver, error, cuInit, 0) != STATUS_OK ||
        DRIVER_CALL(driver, error, cuDeviceGetCount, &count) != STATUS_OK)
        return none(error);
    if (count == 0)
        return error_set(error, STATUS_NOT_FOUND, "no CUDA device: the driver sees none");
    return STATUS_OK;
}

enum status driver_open(struct driver *driver, const char *path, struct error *error) {
    *driver = (struct driver){0};
    path = path ? path : DEFAULT_PATH;
    /* It stays: threads of the driver may run in it for as long as the process lives. */
    driver->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!driver->library)
        return error_set(error, STATUS_NOT_FOUND, "no CUDA device: %s", dlerror());
    enum status status = fill_table(driver, path, error);
    if (status == STATUS_OK)
        status = start(driver, error);
    if (status != STATUS_OK)
        driver_close(driver);
    return status;
}

void driver_close(struct driver *driver) {
    if (driver->library)
        dlclose(driver->library);
    *driver = (struct driver){0};
}
