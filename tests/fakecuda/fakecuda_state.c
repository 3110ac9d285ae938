/* The process-wide state, the count of calls and the list of living objects. */
#include "tests/fakecuda/fakecuda_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fakecuda_state;

static _Thread_local struct fake_object *current; /* the thread's context */

void fakecuda_state_set_current(struct fake_object *context) {
    current = context;
}

static void release_everything(void) {
    struct fake *fake = &fakecuda_state;
    for (struct fake_object *object = fake->objects; object; object = object->next) {
        if (object->kind == FAKE_STREAM)
            fakecuda_run_free_queue(&((struct fake_stream *)object)->queue);
    }
    while (fake->objects) {
        struct fake_object *object = fake->objects;
        if (object->kind == FAKE_GRAPH || object->kind == FAKE_EXEC)
            fakecuda_run_free_queue(&((struct fake_graph *)object)->queue);
        if (object->kind == FAKE_HOST && ((struct fake_host *)object)->owned)
            free(((struct fake_host *)object)->bytes);
        if (object->kind == FAKE_MODULE)
            fakecuda_module_remove(object);
        else
            fakecuda_state_remove(object);
    }
    ptxsim_destroy(fake->machine);
}

static void complete(struct fakecuda_settings *settings) {
    if (settings->capability == 0)
        settings->capability = 80;
    if (settings->driver_version == 0)
        settings->driver_version = FAKECUDA_DEFAULT_DRIVER_VERSION;
    if (settings->host_threads == 0)
        settings->host_threads = 1;
}

void fakecuda_configure(const struct fakecuda_settings *settings) {
    struct ptxsim_device device;
    release_everything();
    current = NULL;
    fakecuda_state =
        (struct fake){.settings = settings ? *settings : (struct fakecuda_settings){0}};
    complete(&fakecuda_state.settings);
    settings = &fakecuda_state.settings;
    fakecuda_state.random = settings->seed * 2 + 1;
    ptxsim_device_describe(settings->capability, &device);
    if (settings->multiprocessors)
        device.sm_count = settings->multiprocessors;
    if (settings->memory_bytes)
        device.memory_bytes = settings->memory_bytes;
    struct error error = {0};
    if (ptxsim_create(&device, &fakecuda_state.machine, &error) != STATUS_OK)
        fakecuda_state_misuse(0, "%s", error.text);
}

void fakecuda_report(struct fakecuda_report *report) {
    const struct fake *fake = &fakecuda_state;
    *report = fake->report;
    for (const struct fake_object *object = fake->objects; object; object = object->next) {
        report->objects++;
        report->allocations += object->kind == FAKE_ALLOCATION;
        if (object->kind != FAKE_STREAM)
            continue;
        const struct fake_operation *operation = ((const struct fake_stream *)object)->queue.first;
        for (; operation; operation = operation->next)
            report->pending++;
    }
}

int fakecuda_state_enter(const char *call) {
    struct fake *fake = &fakecuda_state;
    if (!fake->machine)
        fakecuda_configure(NULL);
    const int64_t number = ++fake->report.calls;
    const bool fails = number == fake->settings.fail_call;
    const bool lost = fake->settings.lost_call > 0 && number >= fake->settings.lost_call;
    if ((fails || lost) && !fake->report.failed)
        fake->report.failed = call;
    if (lost && fake->lost == 0)
        fake->lost = DRIVER_ILLEGAL_ADDRESS;
    return fake->lost ? fake->lost : fails ? fake->settings.fail_result : 0;
}

int fakecuda_state_enter_current(const char *call) {
    const int entered = fakecuda_state_enter(call);
    if (entered)
        return entered;
    if (!fakecuda_state.initialised)
        return fakecuda_state_misuse(FAKE_NOT_INITIALIZED, "%s before cuInit", call);
    if (!current || current != fakecuda_state.context)
        return fakecuda_state_misuse(FAKE_INVALID_CONTEXT, "%s in a thread without a context",
                                     call);
    return 0;
}

int fakecuda_state_misuse(int result, const char *format, ...) {
    char *fault = fakecuda_state.report.fault;
    va_list arguments;
    if (fault[0])
        return result;
    va_start(arguments, format);
    vsnprintf(fault, sizeof fakecuda_state.report.fault, format, arguments);
    va_end(arguments);
    return result;
}

void *fakecuda_state_add(enum fake_kind kind, size_t bytes) {
    struct fake_object *object = calloc(1, bytes);
    if (!object)
        return NULL;
    object->kind = kind;
    object->next = fakecuda_state.objects;
    fakecuda_state.objects = object;
    return object;
}

bool fakecuda_state_alive(const void *handle, enum fake_kind kind) {
    const struct fake_object *object = fakecuda_state.objects;
    while (object && object != handle)
        object = object->next;
    return object && object->kind == kind;
}

void fakecuda_state_unlink(void *object) {
    struct fake_object **link = &fakecuda_state.objects;
    while (*link && *link != object)
        link = &(*link)->next;
    if (*link)
        *link = (*link)->next;
}

void fakecuda_state_remove(void *object) {
    fakecuda_state_unlink(object);
    free(object);
}

uint64_t fakecuda_state_random(void) {
    uint64_t *state = &fakecuda_state.random;
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}
