/* Capture: operations go to a graph instead of the stream. A launch of the graph queues copies of
 * them. */
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fakecuda_state.h"

int cuStreamBeginCapture(struct driver_stream *handle, int mode) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_stream *stream = (struct fake_stream *)handle;
    if (entered)
        return entered;
    if (!fakecuda_state_alive(stream, FAKE_STREAM))
        return fakecuda_state_misuse(FAKE_INVALID_HANDLE, "a stream that is not alive");
    if (mode != DRIVER_CAPTURE_THREAD_LOCAL || stream->capture)
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "a capture in a capture, or its mode");
    stream->capture = fakecuda_state_add(FAKE_GRAPH, sizeof *stream->capture);
    stream->invalidated = false;
    return stream->capture ? 0 : DRIVER_OUT_OF_MEMORY;
}

int cuStreamEndCapture(struct driver_stream *handle, struct driver_graph **graph) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_stream *stream = (struct fake_stream *)handle;
    *graph = NULL;
    if (!fakecuda_state_alive(stream, FAKE_STREAM) || !stream->capture)
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "the end of no capture");
    struct fake_graph *captured = stream->capture;
    stream->capture = NULL;
    if (!entered && !stream->invalidated) {
        *graph = (struct driver_graph *)captured;
        return 0;
    }
    fakecuda_run_free_queue(&captured->queue);
    fakecuda_state_remove(captured);
    return entered ? entered : FAKE_CAPTURE_INVALIDATED;
}

static struct fake_operation *copy_operation(const struct fake_operation *operation) {
    struct fake_operation *copy = fakecuda_run_operation(operation->kind);
    if (!copy)
        return NULL;
    *copy = *operation;
    copy->next = NULL;
    if (!operation->owned)
        return copy;
    copy->owned = malloc(operation->owned_bytes ? operation->owned_bytes : 1);
    if (!copy->owned) {
        free(copy);
        return NULL;
    }
    memcpy(copy->owned, operation->owned, operation->owned_bytes);
    return copy;
}

static bool copy_queue(const struct fake_queue *from, struct fake_queue *to) {
    for (const struct fake_operation *operation = from->first; operation;
         operation = operation->next) {
        struct fake_operation *copy = copy_operation(operation);
        if (!copy) {
            fakecuda_run_free_queue(to);
            return false;
        }
        fakecuda_run_append(to, copy);
    }
    return true;
}

int cuGraphInstantiate(struct driver_graph_exec **exec, struct driver_graph *graph,
                       unsigned long long flags) {
    const int entered = fakecuda_state_enter_current(__func__);
    if (entered)
        return entered;
    if (!fakecuda_state_alive(graph, FAKE_GRAPH) || flags != 0)
        return fakecuda_state_misuse(FAKE_INVALID_VALUE, "a graph that is not alive, or flags");
    struct fake_graph *created = fakecuda_state_add(FAKE_EXEC, sizeof *created);
    if (!created)
        return DRIVER_OUT_OF_MEMORY;
    if (!copy_queue(&((struct fake_graph *)graph)->queue, &created->queue)) {
        fakecuda_state_remove(created);
        return DRIVER_OUT_OF_MEMORY;
    }
    *exec = (struct driver_graph_exec *)created;
    return 0;
}

int cuGraphLaunch(struct driver_graph_exec *exec, struct driver_stream *handle) {
    const int entered = fakecuda_state_enter_current(__func__);
    struct fake_stream *stream = (struct fake_stream *)handle;
    struct fake_queue copies = {0};
    if (entered)
        return entered;
    if (!fakecuda_state_alive(exec, FAKE_EXEC) || !fakecuda_state_alive(stream, FAKE_STREAM))
        return fakecuda_state_misuse(FAKE_INVALID_HANDLE, "a graph or stream that is not alive");
    if (stream->capture)
        return fakecuda_run_refuse_capture(__func__);
    if (!copy_queue(&((struct fake_graph *)exec)->queue, &copies))
        return DRIVER_OUT_OF_MEMORY;
    while (copies.first) {
        struct fake_operation *operation = copies.first;
        copies.first = operation->next;
        operation->next = NULL;
        fakecuda_run_queue(stream, operation);
    }
    return 0;
}

static int destroy(const char *call, void *handle, enum fake_kind kind) {
    const int entered = fakecuda_state_enter_current(call);
    if (!fakecuda_state_alive(handle, kind))
        return fakecuda_state_misuse(FAKE_INVALID_HANDLE, "%s: not alive", call);
    fakecuda_run_free_queue(&((struct fake_graph *)handle)->queue);
    fakecuda_state_remove(handle);
    return entered;
}

int cuGraphExecDestroy(struct driver_graph_exec *exec) {
    return destroy(__func__, exec, FAKE_EXEC);
}

int cuGraphDestroy(struct driver_graph *graph) {
    return destroy(__func__, graph, FAKE_GRAPH);
}
