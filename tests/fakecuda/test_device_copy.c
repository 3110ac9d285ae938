/* Copies and events in every order that CUDA allows: right programs give the same bytes in all of
 * them, and the mistakes that hardware hides most of the time show. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device_copy.h"
#include "gpu/device_host.h"
#include "gpu/device_launch.h"
#include "gpu/device_memory.h"
#include "tests/fakecuda/device_scene.h"

static struct error error;

#define OK(call) cr_assert_eq(call, STATUS_OK, "%s", error.text)

static void in_every_order(void (*test)(struct device *device)) {
    for (int order = FAKECUDA_LAZY; order <= FAKECUDA_RANDOM; order++) {
        for (uint64_t seed = 0; seed < (order == FAKECUDA_RANDOM ? 8 : 1); seed++) {
            struct device *device = device_scene_open(
                &(struct fakecuda_settings){.order = (enum fakecuda_order)order, .seed = seed},
                NULL);
            test(device);
            device_scene_close(device);
        }
    }
}

static uint64_t allocated(struct device *device, uint64_t bytes) {
    uint64_t address = 0;
    OK(device_memory_alloc(device, DEVICE_MEMORY_WEIGHTS, bytes, &address, &error));
    return address;
}

static unsigned char *pattern(size_t bytes, unsigned seed) {
    unsigned char *made = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        made[i] = (unsigned char)((i * 2654435761u >> 13) + seed);
    return made;
}

static void expect(struct device *device, uint64_t address, const void *wanted, size_t bytes) {
    unsigned char *got = malloc(bytes);
    OK(device_copy_download(device, DEVICE_COMPUTE, got, address, bytes, &error));
    cr_assert_eq(memcmp(got, wanted, bytes), 0);
    free(got);
}

static void join(struct device *device, enum device_stream from, enum device_stream to) {
    struct driver_event *event = NULL;
    OK(device_event_create(device, false, &event, &error));
    OK(device_event_record(device, event, from, &error));
    OK(device_event_wait(device, event, to, &error));
    device_event_destroy(device, event);
}

/* ---- uploads through the ring ---- */
static void upload_large(struct device *device) {
    const size_t bytes = (37 << 20) + 11; /* over both halves several times */
    const uint64_t address = allocated(device, bytes);
    unsigned char *source = pattern(bytes, 1), *wanted = pattern(bytes, 1);
    OK(device_copy_upload(device, DEVICE_COMPUTE, address, source, bytes, &error));
    memset(source, 0, bytes);
    expect(device, address, wanted, bytes);
    free(source);
    free(wanted);
}

Test(device_copy, a_large_upload_leaves_the_source_free) {
    in_every_order(upload_large);
}

static void upload_many(struct device *device) {
    enum { COUNT = 96, BYTES = 301 << 10 };
    const uint64_t address = allocated(device, (uint64_t)COUNT * BYTES);
    unsigned char *wanted = pattern((size_t)COUNT * BYTES, 2), *source = malloc(BYTES);
    for (int i = 0; i < COUNT; i++) {
        memcpy(source, wanted + (size_t)i * BYTES, BYTES);
        OK(device_copy_upload(device, i % 3 ? DEVICE_COPY : DEVICE_COMPUTE,
                              address + (uint64_t)i * BYTES, source, BYTES, &error));
    }
    join(device, DEVICE_COPY, DEVICE_COMPUTE);
    expect(device, address, wanted, (size_t)COUNT * BYTES);
    free(source);
    free(wanted);
}

Test(device_copy, many_uploads_on_both_streams_share_the_ring) {
    in_every_order(upload_many);
}

Test(device_copy, small_uploads_do_not_wait) {
    struct device *device = device_scene_open(NULL, NULL);
    const uint64_t address = allocated(device, 1000);
    for (int i = 0; i < 1000; i++) {
        const unsigned char byte = (unsigned char)i;
        OK(device_copy_upload(device, DEVICE_COPY, address + (uint64_t)i, &byte, 1, &error));
    }
    cr_assert_eq(device_scene_report().operations, 0);
    cr_assert_eq(device_scene_report().pending, 1000);
    device_scene_close(device);
}

Test(device_copy, uploads_work_without_pinned_memory) {
    struct device *device = device_scene_open(&(struct fakecuda_settings){.no_pinned = true}, NULL);
    const size_t bytes = 20 << 20;
    const uint64_t address = allocated(device, bytes);
    unsigned char *source = pattern(bytes, 3), *wanted = pattern(bytes, 3);
    OK(device_copy_upload(device, DEVICE_COMPUTE, address, source, bytes, &error));
    memset(source, 0, bytes);
    expect(device, address, wanted, bytes);
    free(source);
    free(wanted);
    device_scene_close(device);
}

Test(device_copy, of_no_bytes_is_nothing) {
    struct device *device = device_scene_open(NULL, NULL);
    OK(device_copy_upload(device, DEVICE_COPY, 0, NULL, 0, &error));
    OK(device_copy_to_device(device, DEVICE_COPY, 0, NULL, 0, &error));
    OK(device_copy_to_host(device, DEVICE_COPY, NULL, 0, 0, &error));
    OK(device_copy_within(device, DEVICE_COPY, 0, 0, 0, &error));
    OK(device_copy_fill(device, DEVICE_COPY, 0, 0, 0, &error));
    OK(device_copy_download(device, DEVICE_COPY, NULL, 0, 0, &error));
    device_scene_close(device);
}

Test(device_copy, outside_of_an_allocation_is_an_error) {
    struct device *device = device_scene_open(NULL, NULL);
    const uint64_t address = allocated(device, 100);
    char bytes[101] = {0};
    cr_assert_eq(device_copy_upload(device, DEVICE_COPY, address, bytes, 101, &error),
                 STATUS_DEVICE);
    cr_assert_not_null(strstr(error.text, "cuMemcpyHtoDAsync: CUDA_ERROR_INVALID_VALUE"));
    cr_assert(!device_is_lost(device));
    device_close(device);
}

/* ---- between the streams ---- */
enum { FLOATS = 32, ROUNDS = 5 };

/* A ring of one buffer: each round is copied in and used, `wait_full` and `wait_empty` say whether
 * the streams wait for each other. Sum of what came out. */
static float rounds(struct device *device, bool wait_full, bool wait_empty) {
    const uint64_t in = allocated(device, FLOATS * sizeof(float));
    const uint64_t out = allocated(device, ROUNDS * FLOATS * sizeof(float));
    struct device_host host;
    OK(device_host_alloc(device, ROUNDS * FLOATS * sizeof(float), &host, &error));
    float *values = host.bytes, sum = 0;
    for (int i = 0; i < ROUNDS * FLOATS; i++)
        values[i] = (float)(1 + i / FLOATS);
    for (int i = 0; i < ROUNDS; i++) {
        const struct small_add_arguments arguments = {
            .in = in, .out = out + (uint64_t)i * FLOATS * sizeof(float), .count = FLOATS};
        OK(device_copy_to_device(device, DEVICE_COPY, in, values + i * FLOATS,
                                 FLOATS * sizeof(float), &error));
        if (wait_full)
            join(device, DEVICE_COPY, DEVICE_COMPUTE);
        OK(device_launch(device, &small_images_add, 1, &arguments, sizeof arguments, &error));
        if (wait_empty)
            join(device, DEVICE_COMPUTE, DEVICE_COPY);
    }
    OK(device_synchronize(device, DEVICE_COMPUTE, &error));
    OK(device_synchronize(device, DEVICE_COPY, &error));
    OK(device_copy_download(device, DEVICE_COMPUTE, values, out, ROUNDS * FLOATS * sizeof(float),
                            &error));
    for (int i = 0; i < ROUNDS * FLOATS; i++)
        sum += values[i] - 1000;
    device_host_free(device, &host);
    return sum;
}

static const float right = FLOATS * (1 + 2 + 3 + 4 + 5);

static void waits_both_ways(struct device *device) {
    cr_assert_eq(rounds(device, true, true), right);
}

Test(device_copy, events_both_ways_give_the_right_result) {
    in_every_order(waits_both_ways);
}

static float rounds_in(enum fakecuda_order order, bool wait_full, bool wait_empty) {
    struct device *device = device_scene_open(&(struct fakecuda_settings){.order = order}, NULL);
    const float sum = rounds(device, wait_full, wait_empty);
    device_scene_close(device);
    return sum;
}

/* The fake shows what it is for: each missing event is wrong in one of the orders. */
Test(device_copy, a_use_that_does_not_wait_for_its_copy_is_seen) {
    cr_assert_neq(rounds_in(FAKECUDA_LAZY, false, true), right);
}

Test(device_copy, a_copy_that_does_not_wait_for_the_last_use_is_seen) {
    cr_assert_neq(rounds_in(FAKECUDA_EAGER, true, false), right);
}

Test(device_copy, pinned_memory_changed_too_early_is_seen) {
    struct device *device = device_scene_open(NULL, NULL);
    const uint64_t address = allocated(device, 4);
    struct device_host host;
    OK(device_host_alloc(device, 4, &host, &error));
    memcpy(host.bytes, "old", 4);
    OK(device_copy_to_device(device, DEVICE_COMPUTE, address, host.bytes, 4, &error));
    memcpy(host.bytes, "new", 4);
    expect(device, address, "new", 4);
    device_host_free(device, &host);
    device_scene_close(device);
}

Test(device_copy, results_read_too_early_are_seen) {
    struct device *device = device_scene_open(NULL, NULL);
    const uint64_t address = allocated(device, 4);
    struct device_host host;
    OK(device_host_alloc(device, 4, &host, &error));
    memcpy(host.bytes, "old", 4);
    OK(device_copy_fill(device, DEVICE_COMPUTE, address, 'x', 4, &error));
    OK(device_copy_to_host(device, DEVICE_COMPUTE, host.bytes, address, 4, &error));
    cr_assert_eq(memcmp(host.bytes, "old", 4), 0);
    OK(device_synchronize(device, DEVICE_COMPUTE, &error));
    cr_assert_eq(memcmp(host.bytes, "xxxx", 4), 0);
    device_host_free(device, &host);
    device_scene_close(device);
}

/* ---- events ---- */
Test(device_copy, an_event_never_recorded_is_not_waited_for) {
    struct device *device = device_scene_open(NULL, NULL);
    struct driver_event *event = NULL;
    OK(device_event_create(device, false, &event, &error));
    OK(device_event_wait(device, event, DEVICE_COMPUTE, &error));
    OK(device_event_synchronize(device, event, &error));
    OK(device_synchronize(device, DEVICE_COMPUTE, &error));
    device_event_destroy(device, event);
    device_event_destroy(device, NULL);
    device_scene_close(device);
}

Test(device_copy, a_wait_is_for_the_recording_before_it) {
    struct device *device = device_scene_open(NULL, NULL);
    const uint64_t address = allocated(device, 8);
    struct driver_event *event = NULL;
    OK(device_event_create(device, false, &event, &error));
    OK(device_copy_fill(device, DEVICE_COPY, address, 1, 8, &error));
    OK(device_event_record(device, event, DEVICE_COPY, &error));
    OK(device_event_wait(device, event, DEVICE_COMPUTE, &error));
    OK(device_copy_fill(device, DEVICE_COPY, address, 2, 8, &error));
    OK(device_event_record(device, event, DEVICE_COPY, &error));
    expect(device, address, "\1\1\1\1\1\1\1\1", 8);
    OK(device_event_synchronize(device, event, &error));
    expect(device, address, "\2\2\2\2\2\2\2\2", 8);
    device_event_destroy(device, event);
    device_scene_close(device);
}

Test(device_copy, timed_events_measure) {
    struct device *device = device_scene_open(NULL, NULL);
    const uint64_t address = allocated(device, 8);
    struct driver_event *from = NULL, *to = NULL, *untimed = NULL;
    float milliseconds = 0;
    OK(device_event_create(device, true, &from, &error));
    OK(device_event_create(device, true, &to, &error));
    OK(device_event_create(device, false, &untimed, &error));
    OK(device_event_record(device, from, DEVICE_COMPUTE, &error));
    OK(device_copy_fill(device, DEVICE_COMPUTE, address, 1, 8, &error));
    OK(device_event_record(device, to, DEVICE_COMPUTE, &error));
    OK(device_event_record(device, untimed, DEVICE_COMPUTE, &error));
    cr_assert_eq(device_event_elapsed_ms(device, from, to, &milliseconds, &error), STATUS_DEVICE);
    cr_assert_not_null(strstr(error.text, "CUDA_ERROR_NOT_READY"));
    OK(device_synchronize(device, DEVICE_COMPUTE, &error));
    OK(device_event_elapsed_ms(device, from, to, &milliseconds, &error));
    cr_assert_float_eq(milliseconds, 0.002f, 1e-6);
    cr_assert_eq(device_event_elapsed_ms(device, from, untimed, &milliseconds, &error),
                 STATUS_DEVICE);
    device_event_destroy(device, from);
    device_event_destroy(device, to);
    device_event_destroy(device, untimed);
    device_scene_close(device);
}
