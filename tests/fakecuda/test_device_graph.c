/* Graphs: what was recorded runs as often as it is launched; what cannot be recorded is an error.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "gpu/blas.h"
#include "gpu/device_copy.h"
#include "gpu/device_graph.h"
#include "gpu/device_launch.h"
#include "gpu/device_memory.h"
#include "tests/fakecuda/device_scene.h"

static struct error error;

#define OK(call) cr_assert_eq(call, STATUS_OK, "%s", error.text)

static uint64_t zeros(struct device *device) {
    uint64_t address = 0;
    OK(device_memory_alloc(device, DEVICE_MEMORY_ACTIVATIONS, 4, &address, &error));
    OK(device_copy_fill(device, DEVICE_COMPUTE, address, 0, 4, &error));
    return address;
}

static enum status add(struct device *device, uint64_t address, float addend) {
    const struct small_add_arguments arguments = {
        .in = address, .out = address, .count = 1, .addend = addend};
    return device_launch(device, &small_images_add, 1, &arguments, sizeof arguments, &error);
}

static float value_at(struct device *device, uint64_t address) {
    float value = 0;
    OK(device_copy_download(device, DEVICE_COMPUTE, &value, address, 4, &error));
    return value;
}

Test(device_graph, runs_what_was_recorded_and_only_then) {
    struct device *device = device_scene_open(NULL, NULL);
    const uint64_t address = zeros(device);
    struct device_graph graph;
    OK(device_launch_prepare(device, &small_images_add, &error));
    OK(device_graph_begin(device, &error));
    OK(add(device, address, 1));
    OK(add(device, address, 10));
    OK(device_graph_end(device, &graph, &error));
    cr_assert_eq(value_at(device, address), 0);
    for (int i = 1; i <= 3; i++) {
        OK(device_graph_launch(device, &graph, &error));
        cr_assert_eq(value_at(device, address), (float)i * 2011);
    }
    cr_assert_eq(device_scene_report().launches, 6);
    device_graph_destroy(device, &graph);
    device_graph_destroy(device, &graph);
    device_scene_close(device);
}

Test(device_graph, holds_matmuls_and_copies) {
    struct device *device = device_scene_open(NULL, NULL);
    const uint64_t in = zeros(device), out = zeros(device);
    const struct blas_matmul matmul = {.weights = in,
                                       .in = in,
                                       .out = out,
                                       .element = ELEMENT_F32,
                                       .rows = 1,
                                       .columns = 1,
                                       .k = 1,
                                       .weight_stride = 1,
                                       .in_stride = 1,
                                       .out_stride = 1};
    struct device_graph graph;
    OK(blas_open(device, &error));
    OK(device_launch_prepare(device, &small_images_add, &error));
    OK(device_graph_begin(device, &error));
    OK(add(device, in, -998));
    OK(blas_multiply(device, &matmul, &error));
    OK(device_copy_within(device, DEVICE_COMPUTE, in, out, 4, &error));
    OK(device_graph_end(device, &graph, &error));
    OK(device_graph_launch(device, &graph, &error));
    OK(device_graph_launch(device, &graph, &error));
    cr_assert_eq(value_at(device, out), 36); /* (0 + 2)² + 2, squared */
    device_graph_destroy(device, &graph);
    device_scene_close(device);
}

Test(device_graph, of_nothing_is_allowed) {
    struct device *device = device_scene_open(NULL, NULL);
    struct device_graph graph;
    OK(device_graph_begin(device, &error));
    OK(device_graph_end(device, &graph, &error));
    OK(device_graph_launch(device, &graph, &error));
    OK(device_synchronize(device, DEVICE_COMPUTE, &error));
    device_graph_destroy(device, &graph);
    device_scene_close(device);
}

/* What must not be done meanwhile fails, and so does the end; then all is well again. */
static void spoilt_by(enum status (*spoil)(struct device *device, uint64_t address)) {
    struct device *device = device_scene_open(NULL, NULL);
    const uint64_t address = zeros(device);
    struct device_graph graph;
    OK(device_graph_begin(device, &error));
    cr_assert_eq(spoil(device, address), STATUS_DEVICE);
    cr_assert_not_null(strstr(error.text, "CUDA_ERROR_STREAM_CAPTURE"), "%s", error.text);
    cr_assert_eq(device_graph_end(device, &graph, &error), STATUS_DEVICE);
    cr_assert_not_null(strstr(error.text, "STREAM_CAPTURE_INVALIDATED"), "%s", error.text);
    cr_assert(!graph.graph && !graph.exec);
    cr_assert_eq(add(device, address, 1), STATUS_OK);
    cr_assert_eq(value_at(device, address), 1001);
    device_close(device);
    cr_assert_eq(device_scene_report().objects, 0);
}

static enum status by_loading(struct device *device, uint64_t address) {
    return add(device, address, 1);
}

static enum status by_allocating(struct device *device, uint64_t address) {
    return device_memory_alloc(device, DEVICE_MEMORY_KV, 4, &address, &error);
}

static enum status by_waiting(struct device *device, uint64_t address) {
    (void)address;
    return device_synchronize(device, DEVICE_COMPUTE, &error);
}

static enum status by_a_pageable_copy(struct device *device, uint64_t address) {
    const float value = 1;
    return device_copy_to_device(device, DEVICE_COMPUTE, address, &value, 4, &error);
}

static enum status by_a_foreign_event(struct device *device, uint64_t address) {
    struct driver_event *event = NULL;
    OK(device_event_create(device, false, &event, &error));
    OK(device_copy_fill(device, DEVICE_COPY, address, 0, 4, &error));
    OK(device_event_record(device, event, DEVICE_COPY, &error));
    const enum status status = device_event_wait(device, event, DEVICE_COMPUTE, &error);
    device_event_destroy(device, event);
    return status;
}

Test(device_graph, is_spoilt_by_loading) {
    spoilt_by(by_loading);
}

Test(device_graph, is_spoilt_by_allocating) {
    spoilt_by(by_allocating);
}

Test(device_graph, is_spoilt_by_waiting) {
    spoilt_by(by_waiting);
}

Test(device_graph, is_spoilt_by_a_pageable_copy) {
    spoilt_by(by_a_pageable_copy);
}

Test(device_graph, is_spoilt_by_a_foreign_event) {
    spoilt_by(by_a_foreign_event);
}
