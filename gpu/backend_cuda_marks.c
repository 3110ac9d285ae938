/* Times of ops: an event behind each, created when a step first comes so far and then kept. What
 * the device has done between two of them is the op's, whatever the host did meanwhile. */
#include <stdlib.h>

#include "gpu/backend_cuda_state.h"

static enum status add_event(struct backend_cuda *cuda, struct error *error) {
    size_t count = (size_t)cuda->mark_capacity + 1;
    struct driver_event **marks = realloc(cuda->marks, count * sizeof(struct driver_event *));
    if (marks == NULL)
        return error_no_memory(error, "times of ops");
    cuda->marks = marks;
    TRY(device_event_create(cuda->device, true, &marks[cuda->mark_capacity], error));
    cuda->mark_capacity++;
    return STATUS_OK;
}

static enum status set(struct backend_cuda *cuda, struct error *error) {
    if (cuda->mark_count == cuda->mark_capacity)
        TRY(add_event(cuda, error));
    return device_event_record(cuda->device, cuda->marks[cuda->mark_count++], DEVICE_COMPUTE,
                               error);
}

void backend_cuda_marks_set(struct backend *backend) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    if (cuda->status == STATUS_OK)
        cuda->status = set(cuda, &cuda->error);
}

int64_t backend_cuda_marks_ns(const struct backend *backend, int number) {
    const struct backend_cuda *cuda = (const void *)backend;
    struct error ignored;
    float milliseconds = 0;
    if (number >= cuda->mark_count ||
        device_event_elapsed_ms(cuda->device, cuda->marks[0], cuda->marks[number], &milliseconds,
                                &ignored) != STATUS_OK)
        return 0;
    return (int64_t)((double)milliseconds * 1e6);
}

void backend_cuda_marks_release(struct backend_cuda *cuda) {
    for (int i = 0; i < cuda->mark_capacity; i++)
        device_event_destroy(cuda->device, cuda->marks[i]);
    free(cuda->marks);
}
