/* Capture is thread-local, so that other threads may allocate and load meanwhile. */
#include "gpu/device_graph.h"

#include <assert.h>

enum status device_graph_begin(struct device *device, struct error *error) {
    assert(!device->capturing);
    TRY(DRIVER_CALL(&device->driver, error, cuStreamBeginCapture, device->streams[DEVICE_COMPUTE],
                    DRIVER_CAPTURE_THREAD_LOCAL));
    device->capturing = true;
    return STATUS_OK;
}

enum status device_graph_end(struct device *device, struct device_graph *graph,
                             struct error *error) {
    assert(device->capturing);
    device->capturing = false;
    *graph = (struct device_graph){0};
    TRY(DRIVER_CALL(&device->driver, error, cuStreamEndCapture, device->streams[DEVICE_COMPUTE],
                    &graph->graph));
    const enum status status =
        DRIVER_CALL(&device->driver, error, cuGraphInstantiate, &graph->exec, graph->graph, 0);
    if (status != STATUS_OK) {
        graph->exec = NULL;
        device_graph_destroy(device, graph);
    }
    return status;
}

enum status device_graph_launch(struct device *device, const struct device_graph *graph,
                                struct error *error) {
    return DRIVER_CALL(&device->driver, error, cuGraphLaunch, graph->exec,
                       device->streams[DEVICE_COMPUTE]);
}

void device_graph_destroy(struct device *device, struct device_graph *graph) {
    if (graph->exec)
        (void)device->driver.cuGraphExecDestroy(graph->exec);
    if (graph->graph)
        (void)device->driver.cuGraphDestroy(graph->graph);
    *graph = (struct device_graph){0};
}
