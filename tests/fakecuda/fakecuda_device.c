/* Calls about the device and its context. */
#include <stdio.h>
#include <string.h>

#include "tests/fakecuda/fakecuda_state.h"

int cuGetErrorName(int result, const char **name) {
    static const struct {
        int result;
        const char *name;
    } names[] = {
        {DRIVER_SUCCESS, "CUDA_SUCCESS"},
        {FAKE_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {DRIVER_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {FAKE_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
        {DRIVER_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {FAKE_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
        {FAKE_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {DRIVER_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {DRIVER_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
        {DRIVER_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
        {FAKE_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
        {FAKE_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
        {FAKE_NOT_READY, "CUDA_ERROR_NOT_READY"},
        {DRIVER_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {FAKE_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
        {FAKE_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
        {DRIVER_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"},
        {DRIVER_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
        {FAKE_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
        {FAKE_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
        {FAKE_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
        {FAKE_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT"},
    };
    *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].result == result)
            *name = names[i].name;
    return *name ? 0 : FAKE_INVALID_VALUE;
}

int cuGetErrorString(int result, const char **text) {
    const int found = cuGetErrorName(result, text);
    if (found == 0)
        *text = fakecuda_state.report.fault[0] ? fakecuda_state.report.fault : "simulated";
    return found;
}

int cuInit(unsigned flags) {
    const int entered = fakecuda_state_enter(__func__);
    if (entered)
        return entered;
    if (flags != 0)
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "cuInit with flags");
    if (fakecuda_state.settings.no_device)
        return DRIVER_NO_DEVICE;
    fakecuda_state.initialised = true;
    return 0;
}

int cuDriverGetVersion(int *version) {
    const int entered = fakecuda_state_enter(__func__);
    if (entered == 0)
        *version = fakecuda_state.settings.driver_version;
    return entered;
}

static int enter_device(const char *call, int device) {
    const int entered = fakecuda_state_enter(call);
    if (entered)
        return entered;
    if (!fakecuda_state.initialised)
        return fakecuda_state_misuse(FAKE_NOT_INITIALIZED, "%s before cuInit", call);
    return device == 0 ? 0 : FAKE_INVALID_DEVICE;
}

int cuDeviceGetCount(int *count) {
    const int entered = enter_device(__func__, 0);
    if (entered == 0)
        *count = 1;
    return entered;
}

int cuDeviceGet(int *device, int ordinal) {
    const int entered = enter_device(__func__, ordinal);
    if (entered == 0)
        *device = 0;
    return entered;
}

int cuDeviceGetName(char *name, int length, int device) {
    const int entered = enter_device(__func__, device);
    const int capability = fakecuda_state.settings.capability;
    if (entered == 0)
        snprintf(name, (size_t)length, "Simulated %d.%d", capability / 10, capability % 10);
    return entered;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    const int entered = enter_device(__func__, device);
    if (entered)
        return entered;
    const struct ptxsim_device *description = ptxsim_device_of(fakecuda_state.machine);
    switch (attribute) {
    case DRIVER_ATTRIBUTE_MULTIPROCESSORS:
        *value = description->sm_count;
        return 0;
    case DRIVER_ATTRIBUTE_CAPABILITY_MAJOR:
        *value = description->capability / 10;
        return 0;
    case DRIVER_ATTRIBUTE_CAPABILITY_MINOR:
        *value = description->capability % 10;
        return 0;
    case DRIVER_ATTRIBUTE_SHARED_BYTES_OPTIN:
        *value = (int)description->shared_optin_bytes;
        return 0;
    default:
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "attribute %d is not known", attribute);
    }
}

int cuDeviceTotalMem(size_t *bytes, int device) {
    const int entered = enter_device(__func__, device);
    if (entered == 0)
        *bytes = ptxsim_device_of(fakecuda_state.machine)->memory_bytes;
    return entered;
}

int cuDevicePrimaryCtxRetain(struct driver_context **context, int device) {
    const int entered = enter_device(__func__, device);
    if (entered)
        return entered;
    if (!fakecuda_state.context)
        fakecuda_state.context = fakecuda_state_add(FAKE_CONTEXT, sizeof *fakecuda_state.context);
    if (!fakecuda_state.context)
        return DRIVER_OUT_OF_MEMORY;
    fakecuda_state.contexts_retained++;
    *context = (struct driver_context *)fakecuda_state.context;
    return 0;
}

/* What lives in the context is not freed with it here: what is left over shall show. */
int cuDevicePrimaryCtxRelease(int device) {
    const int entered = fakecuda_state_enter(__func__);
    if (device != 0 || fakecuda_state.contexts_retained == 0)
        return fakecuda_state_misuse(FAKE_INVALID_CONTEXT, "a context is released too often");
    if (--fakecuda_state.contexts_retained == 0) {
        fakecuda_run_all();
        fakecuda_state_remove(fakecuda_state.context);
        fakecuda_state.context = NULL;
    }
    return entered;
}

int cuCtxSetCurrent(struct driver_context *context) {
    const int entered = fakecuda_state_enter(__func__);
    if (entered)
        return entered;
    if (context && !fakecuda_state_alive(context, FAKE_CONTEXT))
        return fakecuda_state_misuse(FAKE_INVALID_CONTEXT, "a context that is not alive");
    fakecuda_state_set_current((struct fake_object *)context);
    return 0;
}
