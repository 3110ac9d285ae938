/* Streams' queues and the orders in which they are run. An operation runs only because something
 * waits; which others run before it is the setting's choice among what CUDA allows. */
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fakecuda_state.h"

struct fake_operation *fakecuda_run_operation(enum fake_operation_kind kind) {
    struct fake_operation *operation = calloc(1, sizeof *operation);
    if (operation)
        operation->kind = kind;
    return operation;
}

static void drop_event(struct fake_event *event) {
    if (event && --event->references == 0 && event->destroyed)
        free(event);
}

static void free_operation(struct fake_operation *operation) {
    drop_event(operation->event);
    free(operation->owned);
    free(operation);
}

void fakecuda_run_free_queue(struct fake_queue *queue) {
    while (queue->first) {
        struct fake_operation *operation = queue->first;
        queue->first = operation->next;
        free_operation(operation);
    }
    queue->last = NULL;
}

void fakecuda_run_append(struct fake_queue *queue, struct fake_operation *operation) {
    if (queue->last)
        queue->last->next = operation;
    else
        queue->first = operation;
    queue->last = operation;
}

void fakecuda_run_queue(struct fake_stream *stream, struct fake_operation *operation) {
    if (operation->event)
        operation->event->references++;
    operation->number = ++fakecuda_state.next_number;
    fakecuda_run_append(stream->capture ? &stream->capture->queue : &stream->queue, operation);
}

static bool is_runnable(const struct fake_stream *stream) {
    const struct fake_operation *first = stream->queue.first;
    return first && !(first->kind == FAKE_WAIT && first->event->completed < first->recording);
}

/* The stream after `after` in the list of objects; NULL: the first. */
static struct fake_stream *next_stream(const struct fake_stream *after) {
    struct fake_object *object = after ? after->object.next : fakecuda_state.objects;
    while (object && object->kind != FAKE_STREAM)
        object = object->next;
    return (struct fake_stream *)object;
}

/* The stream that holds the recording which `waiting` waits for. */
static struct fake_stream *recorder(const struct fake_operation *waiting) {
    for (struct fake_stream *stream = next_stream(NULL); stream; stream = next_stream(stream))
        for (struct fake_operation *o = stream->queue.first; o; o = o->next)
            if (o->kind == FAKE_RECORD && o->event == waiting->event &&
                o->recording >= waiting->recording)
                return stream;
    return NULL;
}

/* Follow what blocks the stream to one that can run. An event is recorded before it is waited for,
 * so that there is always one. */
static struct fake_stream *pick_needed(struct fake_stream *stream) {
    while (stream && !is_runnable(stream))
        stream = recorder(stream->queue.first);
    return stream;
}

static struct fake_stream *pick_other(struct fake_stream *wanted) {
    for (struct fake_stream *stream = next_stream(NULL); stream; stream = next_stream(stream))
        if (stream != wanted && is_runnable(stream))
            return stream;
    return wanted;
}

static struct fake_stream *pick_random(void) {
    uint64_t count = 0;
    struct fake_stream *picked = NULL;
    for (struct fake_stream *stream = next_stream(NULL); stream; stream = next_stream(stream))
        if (is_runnable(stream) && fakecuda_state_random() % ++count == 0)
            picked = stream;
    return picked;
}

static struct fake_stream *pick(struct fake_stream *wanted) {
    switch (fakecuda_state.settings.order) {
    case FAKECUDA_EAGER:
        return pick_other(wanted);
    case FAKECUDA_RANDOM:
        return pick_random();
    case FAKECUDA_LAZY:
    default:
        return pick_needed(wanted);
    }
}

/* A fault ends everything that is queued. */
static void lose(int result) {
    fakecuda_state.lost = result;
    for (struct fake_stream *stream = next_stream(NULL); stream; stream = next_stream(stream))
        fakecuda_run_free_queue(&stream->queue);
}

static void run_first(struct fake_stream *stream) {
    struct fake_operation *operation = stream->queue.first;
    stream->queue.first = operation->next;
    if (!stream->queue.first)
        stream->queue.last = NULL;
    fakecuda_state.report.operations++;
    const int result = fakecuda_execute(operation);
    free_operation(operation);
    if (result)
        lose(result);
}

void fakecuda_run_stream(struct fake_stream *stream) {
    const uint64_t end = fakecuda_state.next_number;
    while (stream->queue.first && stream->queue.first->number <= end)
        run_first(pick(stream));
}

void fakecuda_run_event(struct fake_event *event) {
    const struct fake_operation waiting = {
        .kind = FAKE_WAIT, .event = event, .recording = event->recorded};
    while (event->completed < waiting.recording && !fakecuda_state.lost)
        run_first(pick(recorder(&waiting)));
}

void fakecuda_run_all(void) {
    for (struct fake_stream *stream = next_stream(NULL); stream; stream = next_stream(stream))
        fakecuda_run_stream(stream);
}

int fakecuda_run_refuse_capture(const char *call) {
    for (struct fake_stream *stream = next_stream(NULL); stream; stream = next_stream(stream)) {
        if (!stream->capture)
            continue;
        stream->invalidated = true;
        return fakecuda_state_misuse(FAKE_CAPTURE_UNSUPPORTED, "%s while a stream captures", call);
    }
    return 0;
}
