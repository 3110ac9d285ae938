/* Streams and events. A wait is for the event's recording as it is when the wait is queued. */
#include <stdlib.h>

#include "tests/fakecuda/fakecuda_state.h"

static int dead(const char *call, const char *what) {
    return fakecuda_state_misuse(FAKE_INVALID_HANDLE, "%s: %s that is not alive", call, what);
}

int cuStreamCreate(struct driver_stream **stream, unsigned flags) {
    const int entered = fakecuda_state_enter_current(__func__);
    if (entered)
        return entered;
    if (flags != DRIVER_STREAM_NON_BLOCKING)
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "a stream that waits for the default one");
    struct fake_stream *created = fakecuda_state_add(FAKE_STREAM, sizeof *created);
    *stream = (struct driver_stream *)created;
    return created ? 0 : DRIVER_OUT_OF_MEMORY;
}

int cuStreamDestroy(struct driver_stream *handle) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_stream *stream = (struct fake_stream *)handle;
    if (!fakecuda_state_alive(stream, FAKE_STREAM))
        return dead(__func__, "a stream");
    fakecuda_run_stream(stream);
    if (stream->capture) {
        fakecuda_run_free_queue(&stream->capture->queue);
        fakecuda_state_remove(stream->capture);
    }
    fakecuda_state_remove(stream);
    return entered;
}

int cuStreamSynchronize(struct driver_stream *handle) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_stream *stream = (struct fake_stream *)handle;
    if (entered)
        return entered;
    if (!fakecuda_state_alive(stream, FAKE_STREAM))
        return dead(__func__, "a stream");
    if (stream->capture)
        return fakecuda_run_refuse_capture(__func__);
    fakecuda_run_stream(stream);
    return fakecuda_state.lost;
}

static int queue_event(struct fake_stream *stream, enum fake_operation_kind kind,
                       struct fake_event *event) {
    struct fake_operation *operation = fakecuda_run_operation(kind);
    if (!operation)
        return DRIVER_OUT_OF_MEMORY;
    operation->event = event;
    operation->recording = event->recorded;
    fakecuda_run_queue(stream, operation);
    return 0;
}

/* Between the streams of a capture nothing is followed: the program does not do it. */
static int wait_captured(struct fake_stream *stream, const struct fake_event *event) {
    if (stream->capture && event->captured)
        return 0; /* recorded before, in the one stream that captures */
    if (stream->capture)
        stream->invalidated = true;
    return fakecuda_state_misuse(FAKE_CAPTURE_ISOLATION,
                                 "a wait between a capture and what is outside of it");
}

int cuStreamWaitEvent(struct driver_stream *stream_handle, struct driver_event *event_handle,
                      unsigned flags) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_stream *stream = (struct fake_stream *)stream_handle;
    struct fake_event *event = (struct fake_event *)event_handle;
    if (entered)
        return entered;
    if (!fakecuda_state_alive(stream, FAKE_STREAM))
        return dead(__func__, "a stream");
    if (!fakecuda_state_alive(event, FAKE_EVENT))
        return dead(__func__, "an event");
    if (flags != 0)
        return FAKE_INVALID_VALUE;
    if (stream->capture || event->captured)
        return wait_captured(stream, event);
    return event->recorded > event->completed ? queue_event(stream, FAKE_WAIT, event) : 0;
}

int cuEventCreate(struct driver_event **event, unsigned flags) {
    const int entered = fakecuda_state_enter_current(__func__);
    if (entered)
        return entered;
    struct fake_event *created = fakecuda_state_add(FAKE_EVENT, sizeof *created);
    if (!created)
        return DRIVER_OUT_OF_MEMORY;
    created->timed = !(flags & DRIVER_EVENT_NO_TIMING);
    *event = (struct driver_event *)created;
    return 0;
}

int cuEventRecord(struct driver_event *event_handle, struct driver_stream *stream_handle) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_stream *stream = (struct fake_stream *)stream_handle;
    struct fake_event *event = (struct fake_event *)event_handle;
    if (entered)
        return entered;
    if (!fakecuda_state_alive(stream, FAKE_STREAM))
        return dead(__func__, "a stream");
    if (!fakecuda_state_alive(event, FAKE_EVENT))
        return dead(__func__, "an event");
    event->captured = stream->capture != NULL;
    if (event->captured)
        return 0;
    event->recorded++;
    return queue_event(stream, FAKE_RECORD, event);
}

int cuEventSynchronize(struct driver_event *handle) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_event *event = (struct fake_event *)handle;
    if (entered)
        return entered;
    if (!fakecuda_state_alive(event, FAKE_EVENT))
        return dead(__func__, "an event");
    if (event->captured)
        return fakecuda_state_misuse(FAKE_CAPTURED_EVENT, "waiting for an event of a capture");
    fakecuda_run_event(event);
    return fakecuda_state.lost;
}

int cuEventElapsedTime(float *milliseconds, struct driver_event *start, struct driver_event *end) {
    const int entered = fakecuda_state_enter_current(__func__);
    const struct fake_event *from = (struct fake_event *)start, *to = (struct fake_event *)end;
    if (entered)
        return entered;
    if (!fakecuda_state_alive(from, FAKE_EVENT) || !fakecuda_state_alive(to, FAKE_EVENT))
        return dead(__func__, "an event");
    if (!from->timed || !to->timed || from->recorded == 0 || to->recorded == 0)
        return FAKE_INVALID_HANDLE;
    if (from->completed < from->recorded || to->completed < to->recorded)
        return FAKE_NOT_READY;
    *milliseconds = (float)(to->time_ms - from->time_ms);
    return 0;
}

/* Queued operations keep it until they are done. */
int cuEventDestroy(struct driver_event *handle) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_event *event = (struct fake_event *)handle;
    if (!fakecuda_state_alive(event, FAKE_EVENT))
        return dead(__func__, "an event");
    fakecuda_state_unlink(event);
    event->destroyed = true;
    if (event->references == 0)
        free(event);
    return entered;
}
