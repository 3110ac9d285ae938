/* Device memory, pinned host memory and the queueing of copies. */
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fakecuda_state.h"

int cuMemGetInfo(size_t *unused, size_t *total) {
    const int entered = fakecuda_state_enter_current(__func__);
    if (entered)
        return entered;
    *unused = ptxsim_memory_free_bytes(fakecuda_state.machine);
    *total = ptxsim_device_of(fakecuda_state.machine)->memory_bytes;
    return 0;
}

int cuMemAlloc(uint64_t *address, size_t bytes) {
    int result = fakecuda_state_enter_current(__func__);
    if (result == 0)
        result = fakecuda_run_refuse_capture(__func__);
    if (result)
        return result;
    struct error error = {0};
    struct fake_allocation *allocation = fakecuda_state_add(FAKE_ALLOCATION, sizeof *allocation);
    if (!allocation)
        return DRIVER_OUT_OF_MEMORY;
    const enum status status =
        ptxsim_memory_alloc(fakecuda_state.machine, bytes, &allocation->address, &error);
    if (status != STATUS_OK) {
        fakecuda_state_remove(allocation);
        return status == STATUS_NO_MEMORY ? DRIVER_OUT_OF_MEMORY : FAKE_INVALID_VALUE;
    }
    const uint64_t used = ptxsim_device_of(fakecuda_state.machine)->memory_bytes -
                          ptxsim_memory_free_bytes(fakecuda_state.machine);
    if (used > fakecuda_state.report.memory_peak)
        fakecuda_state.report.memory_peak = used;
    *address = allocation->address;
    return 0;
}

/* As the driver: it waits for all work of the device. */
int cuMemFree(uint64_t address) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_object *object = fakecuda_state.objects;
    while (object && !(object->kind == FAKE_ALLOCATION &&
                       ((struct fake_allocation *)object)->address == address))
        object = object->next;
    if (!object)
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "0x%llx is freed and no allocation",
                                     (unsigned long long)address);
    fakecuda_run_all();
    struct error error = {0};
    ptxsim_memory_free(fakecuda_state.machine, address, &error);
    fakecuda_state_remove(object);
    return entered;
}

static struct fake_host *find_host(const void *bytes, size_t byte_count) {
    for (struct fake_object *object = fakecuda_state.objects; object; object = object->next) {
        struct fake_host *host = (struct fake_host *)object;
        if (object->kind == FAKE_HOST && (const char *)bytes >= host->bytes &&
            (const char *)bytes + byte_count <= host->bytes + host->byte_count)
            return host;
    }
    return NULL;
}

bool fakecuda_memory_pinned(const void *host, size_t bytes) {
    return find_host(host, bytes) != NULL;
}

static int pin(void *bytes, size_t byte_count, bool owned) {
    struct fake_host *host = fakecuda_state_add(FAKE_HOST, sizeof *host);
    if (!host)
        return DRIVER_OUT_OF_MEMORY;
    host->bytes = bytes;
    host->byte_count = byte_count;
    host->owned = owned;
    return 0;
}

/* Fresh pinned memory holds no zeroes that a program could rely on. */
int cuMemAllocHost(void **host, size_t bytes) {
    int result = fakecuda_state_enter_current(__func__);
    if (result == 0)
        result = fakecuda_run_refuse_capture(__func__);
    if (result)
        return result;
    void *memory = fakecuda_state.settings.no_pinned ? NULL : malloc(bytes);
    if (!memory)
        return DRIVER_OUT_OF_MEMORY;
    memset(memory, 0xff, bytes);
    result = pin(memory, bytes, true);
    if (result)
        free(memory);
    else
        *host = memory;
    return result;
}

/* It waits for all work of the device. */
int cuMemFreeHost(void *bytes) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_host *host = find_host(bytes, 0);
    if (!host || host->bytes != bytes || !host->owned)
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "host memory is freed and not pinned");
    fakecuda_run_all();
    free(host->bytes);
    fakecuda_state_remove(host);
    return entered;
}

int cuMemHostRegister(void *bytes, size_t byte_count, unsigned flags) {
    const int entered = fakecuda_state_enter_current(__func__);
    if (entered)
        return entered;
    if ((flags != 0 && flags != DRIVER_REGISTER_READ_ONLY) || byte_count == 0)
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "cuMemHostRegister of nothing, or flags");
    if (find_host(bytes, 0))
        return FAKE_ALREADY_REGISTERED;
    if (fakecuda_state.settings.only_read_only && flags != DRIVER_REGISTER_READ_ONLY)
        return FAKE_INVALID_VALUE;
    return fakecuda_state.settings.no_pinned ? DRIVER_OUT_OF_MEMORY : pin(bytes, byte_count, false);
}

/* A queued copy that reads or writes the range. */
static bool is_copied(const struct fake_host *host) {
    for (struct fake_object *object = fakecuda_state.objects; object; object = object->next) {
        if (object->kind != FAKE_STREAM)
            continue;
        const struct fake_operation *o = ((struct fake_stream *)object)->queue.first;
        for (; o; o = o->next) {
            const char *used = o->kind == FAKE_TO_HOST     ? o->host_to
                               : o->kind == FAKE_TO_DEVICE ? o->host_from
                                                           : NULL;
            if (used && !o->owned && used >= host->bytes && used < host->bytes + host->byte_count)
                return true;
        }
    }
    return false;
}

int cuMemHostUnregister(void *bytes) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_host *host = find_host(bytes, 0);
    if (!host || host->bytes != bytes || host->owned)
        return FAKE_NOT_REGISTERED;
    if (is_copied(host))
        fakecuda_state_misuse(0, "host memory is unregistered while a copy is queued");
    fakecuda_state_remove(host);
    return entered;
}

/* The checks that every copy begins with: a stream and device ranges that are alive. */
static int enter_copy(const char *call, const struct driver_stream *stream, uint64_t address,
                      size_t bytes) {
    const int entered = fakecuda_state_enter_current(call);
    if (entered)
        return entered;
    if (!fakecuda_state_alive(stream, FAKE_STREAM))
        return fakecuda_state_misuse(FAKE_INVALID_HANDLE, "%s: a stream that is not alive", call);
    if (bytes == 0 || !ptxsim_memory_host(fakecuda_state.machine, address, bytes))
        return fakecuda_state_misuse(FAKE_INVALID_VALUE,
                                     "%s: %zu bytes at 0x%llx are not inside an allocation", call,
                                     bytes, (unsigned long long)address);
    return 0;
}

static int queue(struct fake_stream *stream, const struct fake_operation *described) {
    struct fake_operation *operation = fakecuda_run_operation(described->kind);
    if (!operation) {
        free(described->owned);
        return DRIVER_OUT_OF_MEMORY;
    }
    *operation = *described;
    fakecuda_run_queue(stream, operation);
    return 0;
}

/* Ordinary memory is read at once; pinned memory when the copy's turn comes. */
int cuMemcpyHtoDAsync(uint64_t to, const void *from, size_t bytes, struct driver_stream *stream) {
    const int entered = enter_copy(__func__, stream, to, bytes);
    if (entered)
        return entered;
    struct fake_operation copy = {
        .kind = FAKE_TO_DEVICE, .to = to, .host_from = from, .bytes = bytes};
    if (fakecuda_memory_pinned(from, bytes))
        return queue((struct fake_stream *)stream, &copy);
    if (((struct fake_stream *)stream)->capture)
        return fakecuda_run_refuse_capture(__func__);
    copy.owned = malloc(bytes);
    if (!copy.owned)
        return DRIVER_OUT_OF_MEMORY;
    copy.owned_bytes = bytes;
    memcpy(copy.owned, from, bytes);
    return queue((struct fake_stream *)stream, &copy);
}

/* Into ordinary memory it is done on return. */
int cuMemcpyDtoHAsync(void *to, uint64_t from, size_t bytes, struct driver_stream *stream) {
    const int entered = enter_copy(__func__, stream, from, bytes);
    if (entered)
        return entered;
    const bool pinned = fakecuda_memory_pinned(to, bytes);
    if (!pinned && ((struct fake_stream *)stream)->capture)
        return fakecuda_run_refuse_capture(__func__);
    const int result =
        queue((struct fake_stream *)stream,
              &(struct fake_operation){
                  .kind = FAKE_TO_HOST, .from = from, .host_to = to, .bytes = bytes});
    if (result == 0 && !pinned)
        fakecuda_run_stream((struct fake_stream *)stream);
    return result ? result : fakecuda_state.lost;
}

int cuMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t bytes, struct driver_stream *stream) {
    const int entered = enter_copy(__func__, stream, to, bytes);
    if (entered)
        return entered;
    if (!ptxsim_memory_host(fakecuda_state.machine, from, bytes))
        return fakecuda_state_misuse(FAKE_INVALID_VALUE,
                                     "%s: the source is not inside an "
                                     "allocation",
                                     __func__);
    return queue(
        (struct fake_stream *)stream,
        &(struct fake_operation){.kind = FAKE_WITHIN, .to = to, .from = from, .bytes = bytes});
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, struct driver_stream *stream) {
    const int entered = enter_copy(__func__, stream, to, bytes);
    if (entered)
        return entered;
    return queue(
        (struct fake_stream *)stream,
        &(struct fake_operation){.kind = FAKE_FILL, .to = to, .value = value, .bytes = bytes});
}
