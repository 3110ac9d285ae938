/* Graphs: what is queued on the compute stream between begin and end is not run but recorded, with
 * argument structs and copied addresses as they are then, and can be run many times. Functions must
 * have been prepared (device_launch_prepare) and memory allocated before; synchronising and
 * pageable copies are errors meanwhile, and any error ends in device_graph_end failing. */
#ifndef GPU_DEVICE_GRAPH_H
#define GPU_DEVICE_GRAPH_H

#include "gpu/device.h"

struct device_graph {
    struct driver_graph *graph;
    struct driver_graph_exec *exec;
};

enum status device_graph_begin(struct device *device, struct error *error);
enum status device_graph_end(struct device *device, struct device_graph *graph,
                             struct error *error);
enum status device_graph_launch(struct device *device, const struct device_graph *graph,
                                struct error *error);
void device_graph_destroy(struct device *device, struct device_graph *graph); /* zeroed: nothing */

#endif
