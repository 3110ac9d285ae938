/* Device memory: counted by tag, capped, refused in words; and pinned host memory. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device_copy.h"
#include "gpu/device_host.h"
#include "gpu/device_memory.h"
#include "tests/fakecuda/device_scene.h"

static struct error error;

static uint64_t allocated(struct device *device, enum device_memory_tag tag, uint64_t bytes) {
    uint64_t address = 0;
    cr_assert_eq(device_memory_alloc(device, tag, bytes, &address, &error), STATUS_OK, "%s",
                 error.text);
    return address;
}

Test(device_memory, is_counted_by_tag) {
    struct device *device = device_scene_open(NULL, NULL);
    const uint64_t weights = allocated(device, DEVICE_MEMORY_WEIGHTS, 1000);
    const uint64_t kv = allocated(device, DEVICE_MEMORY_KV, 300);
    allocated(device, DEVICE_MEMORY_KV, 7);
    cr_assert(weights != 0 && kv != 0 && weights != kv && weights % 256 == 0 && kv % 256 == 0);
    cr_assert_eq(device->used_bytes[DEVICE_MEMORY_WEIGHTS], 1000);
    cr_assert_eq(device->used_bytes[DEVICE_MEMORY_KV], 307);
    cr_assert_eq(device_memory_used(device), 1307);
    device_memory_free(device, kv);
    cr_assert_eq(device->used_bytes[DEVICE_MEMORY_KV], 7);
    cr_assert_eq(device_scene_report().allocations, 2);
    device_scene_close(device);
}

Test(device_memory, of_no_bytes_is_none) {
    struct device *device = device_scene_open(NULL, NULL);
    cr_assert_eq(allocated(device, DEVICE_MEMORY_KV, 0), 0);
    device_memory_free(device, 0);
    cr_assert_eq(device_scene_report().allocations, 0);
    device_scene_close(device);
}

Test(device_memory, every_tag_has_a_name) {
    for (int tag = 0; tag < DEVICE_MEMORY_TAG_COUNT; tag++)
        cr_assert_not_null(device_memory_tag_name((enum device_memory_tag)tag));
}

Test(device_memory, is_capped) {
    struct device_options options = device_scene_options();
    options.memory_max = 3 << 20;
    struct device *device = device_scene_open(NULL, &options);
    uint64_t address = 1, available = 0;
    const uint64_t first = allocated(device, DEVICE_MEMORY_KV, 2 << 20);
    cr_assert_eq(device_memory_available(device, &available, &error), STATUS_OK);
    cr_assert_eq(available, 1 << 20);
    cr_assert_eq(
        device_memory_alloc(device, DEVICE_MEMORY_SCRATCH, (1 << 20) + 1, &address, &error),
        STATUS_NO_MEMORY);
    cr_assert_str_eq(error.text, "out of device memory for scratch: 1.0 MiB asked for, 1.0 MiB "
                                 "left of the 3.0 MiB allowed");
    cr_assert_eq(address, 0);
    allocated(device, DEVICE_MEMORY_SCRATCH, 1 << 20);
    device_memory_free(device, first);
    allocated(device, DEVICE_MEMORY_SCRATCH, 2 << 20);
    device_scene_close(device);
}

Test(device_memory, runs_out_on_a_small_device) {
    struct device *device =
        device_scene_open(&(struct fakecuda_settings){.memory_bytes = 8 << 20}, NULL);
    uint64_t address = 0, available = 0;
    allocated(device, DEVICE_MEMORY_WEIGHTS, 5 << 20);
    cr_assert_eq(device_memory_alloc(device, DEVICE_MEMORY_KV, 4 << 20, &address, &error),
                 STATUS_NO_MEMORY);
    cr_assert_str_eq(error.text, "out of device memory for kv: 4.0 MiB asked for, 3.0 MiB free of "
                                 "8.0 MiB");
    cr_assert(!device_is_lost(device));
    cr_assert_eq(device_memory_available(device, &available, &error), STATUS_OK);
    cr_assert_eq(available, 3 << 20);
    allocated(device, DEVICE_MEMORY_KV, 3 << 20);
    device_scene_close(device);
}

Test(device_memory, is_poisoned_by_the_fake) {
    struct device *device = device_scene_open(NULL, NULL);
    const uint64_t address = allocated(device, DEVICE_MEMORY_KV, 4);
    float value = 0;
    cr_assert_eq(device_copy_download(device, DEVICE_COMPUTE, &value, address, 4, &error),
                 STATUS_OK);
    cr_assert(value != value);
    device_scene_close(device);
}

Test(device_host, is_pinned_where_it_can_be) {
    struct device *device = device_scene_open(NULL, NULL);
    struct device_host host;
    cr_assert_eq(device_host_alloc(device, 1000, &host, &error), STATUS_OK);
    cr_assert(host.pinned && host.bytes && host.byte_count == 1000);
    device_host_free(device, &host);
    device_host_free(device, &host);
    device_scene_close(device);
}

Test(device_host, is_ordinary_memory_else) {
    struct device *device = device_scene_open(&(struct fakecuda_settings){.no_pinned = true}, NULL);
    struct device_host host;
    const uint64_t address = allocated(device, DEVICE_MEMORY_KV, 4);
    cr_assert_eq(device_host_alloc(device, 4, &host, &error), STATUS_OK);
    cr_assert(!host.pinned && host.bytes);
    memcpy(host.bytes, "abc", 4);
    cr_assert_eq(device_copy_to_device(device, DEVICE_COPY, address, host.bytes, 4, &error),
                 STATUS_OK);
    memset(host.bytes, 0, 4);
    cr_assert_eq(device_copy_to_host(device, DEVICE_COPY, host.bytes, address, 4, &error),
                 STATUS_OK);
    cr_assert_str_eq(host.bytes, "abc");
    device_host_free(device, &host);
    device_scene_close(device);
}

Test(device_host, pins_in_place) {
    struct device *device = device_scene_open(NULL, NULL);
    static char bytes[4096];
    cr_assert(device_host_pin(device, bytes, sizeof bytes));
    cr_assert(!device_host_pin(device, bytes, sizeof bytes), "already pinned");
    device_host_unpin(device, bytes);
    cr_assert(device_host_pin(device, bytes, sizeof bytes));
    device_host_unpin(device, bytes);
    device_scene_close(device);
}

Test(device_host, pins_memory_that_is_only_read) {
    struct device *device =
        device_scene_open(&(struct fakecuda_settings){.only_read_only = true}, NULL);
    static const char bytes[4096];
    cr_assert(device_host_pin(device, bytes, sizeof bytes));
    device_host_unpin(device, bytes);
    device_scene_close(device);
}

Test(device_host, cannot_always_be_pinned) {
    struct device *device = device_scene_open(&(struct fakecuda_settings){.no_pinned = true}, NULL);
    static char bytes[4096];
    cr_assert(!device_host_pin(device, bytes, sizeof bytes));
    device_scene_close(device);
}
