/* Streamed weights: every use sees its own piece, in every order that CUDA allows, through rings of
 * every size; the device always has the piece before to work on; what stays is spread evenly. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device_copy.h"
#include "gpu/device_host.h"
#include "gpu/device_memory.h"
#include "gpu/weight_ring.h"
#include "tests/fakecuda/device_scene.h"

static struct error error;

#define OK(call) cr_assert_eq(call, STATUS_OK, "%s", error.text)

enum { PIECES = 11, OPTIONAL_FROM = 9, LARGEST = 6000 };

/* Pieces of two parts of different sizes with a gap between them. */
struct scene {
    struct device *device;
    bool pinned;
    struct device_host host; /* of all parts, one behind another */
    struct weight_ring_part parts[PIECES][2];
    struct weight_ring_piece pieces[PIECES];
    struct weight_ring *ring;
    uint64_t out; /* [PIECES][LARGEST]: what each use saw */
};

static uint64_t part_bytes(int piece, int part) {
    return piece == 4 ? 2900 : (uint64_t)(400 + 317 * ((piece * 5 + part * 3) % 7));
}

static void make_pieces(struct scene *scene) {
    uint64_t used = 0;
    OK(device_host_alloc(scene->device, PIECES * LARGEST, &scene->host, &error));
    for (int i = 0; i < PIECES; i++) {
        const uint64_t bytes[2] = {part_bytes(i, 0), part_bytes(i, 1)};
        const uint64_t second = (bytes[0] + 63) / 64 * 64 + 64;
        for (int part = 0; part < 2; part++) {
            char *at = (char *)scene->host.bytes + used;
            for (uint64_t j = 0; j < bytes[part]; j++)
                at[j] = (char)(i * 31 + part * 7 + (int)j);
            scene->parts[i][part] =
                (struct weight_ring_part){at, bytes[part], part == 0 ? 0 : second};
            used += bytes[part];
        }
        scene->pieces[i] = (struct weight_ring_piece){scene->parts[i], 2, second + bytes[1]};
        cr_assert_leq(scene->pieces[i].byte_count, LARGEST);
    }
}

static struct weight_ring_options options_of(const struct scene *scene, uint64_t ring_bytes) {
    return (struct weight_ring_options){.pieces = scene->pieces,
                                        .piece_count = PIECES,
                                        .optional_from = OPTIONAL_FROM,
                                        .ring_bytes = ring_bytes,
                                        .pinned = scene->pinned};
}

static void open_scene(struct scene *scene, const struct fakecuda_settings *settings,
                       uint64_t ring_bytes) {
    *scene =
        (struct scene){.device = device_scene_open(settings, NULL), .pinned = !settings->no_pinned};
    make_pieces(scene);
    OK(device_memory_alloc(scene->device, DEVICE_MEMORY_ACTIVATIONS, PIECES * LARGEST, &scene->out,
                           &error));
    const struct weight_ring_options options = options_of(scene, ring_bytes);
    OK(weight_ring_create(scene->device, &options, &scene->ring, &error));
}

static void close_scene(struct scene *scene) {
    weight_ring_destroy(scene->ring);
    device_host_free(scene->device, &scene->host);
    device_scene_close(scene->device);
}

/* A use: the piece's parts are copied out on the compute stream. */
static enum status use(struct scene *scene, int piece) {
    uint64_t address = 0;
    TRY(weight_ring_take(scene->ring, piece, &address, &error));
    cr_assert_eq(address % WEIGHT_RING_ALIGNMENT, 0);
    uint64_t to = scene->out + (uint64_t)piece * LARGEST;
    for (int part = 0; part < 2; part++) {
        const struct weight_ring_part *from = &scene->parts[piece][part];
        TRY(device_copy_within(scene->device, DEVICE_COMPUTE, to + from->offset,
                               address + from->offset, from->byte_count, &error));
    }
    return weight_ring_give_back(scene->ring, &error);
}

static enum status step(struct scene *scene, bool with_optional) {
    TRY(device_copy_fill(scene->device, DEVICE_COMPUTE, scene->out, 0xee, PIECES * LARGEST,
                         &error));
    TRY(weight_ring_begin(scene->ring, with_optional, &error));
    for (int piece = 0; piece < (with_optional ? PIECES : OPTIONAL_FROM); piece++)
        TRY(use(scene, piece));
    return STATUS_OK;
}

static void expect_step(struct scene *scene, bool with_optional) {
    char *out = malloc(PIECES * LARGEST);
    OK(step(scene, with_optional));
    OK(device_copy_download(scene->device, DEVICE_COMPUTE, out, scene->out, PIECES * LARGEST,
                            &error));
    for (int piece = 0; piece < (with_optional ? PIECES : OPTIONAL_FROM); piece++) {
        for (int part = 0; part < 2; part++) {
            const struct weight_ring_part *wanted = &scene->parts[piece][part];
            cr_assert_eq(
                memcmp(out + piece * LARGEST + wanted->offset, wanted->bytes, wanted->byte_count),
                0, "piece %d, part %d", piece, part);
        }
    }
    free(out);
}

static void every_ring(const struct fakecuda_settings *settings) {
    for (uint64_t ring_bytes = 6144; ring_bytes <= 40 * 1024; ring_bytes += 1792) {
        struct scene scene;
        open_scene(&scene, settings, ring_bytes);
        for (int i = 0; i < 5; i++)
            expect_step(&scene, i != 1 && i != 2);
        close_scene(&scene);
    }
}

static void every_order(bool no_pinned) {
    every_ring(&(struct fakecuda_settings){.no_pinned = no_pinned, .order = FAKECUDA_LAZY});
    every_ring(&(struct fakecuda_settings){.no_pinned = no_pinned, .order = FAKECUDA_EAGER});
    for (uint64_t seed = 0; seed < 4; seed++)
        every_ring(&(struct fakecuda_settings){
            .no_pinned = no_pinned, .order = FAKECUDA_RANDOM, .seed = seed});
}

Test(weight_ring, each_use_sees_its_piece_from_pinned_memory) {
    every_order(false);
}

Test(weight_ring, each_use_sees_its_piece_without_pinned_memory) {
    every_order(true);
}

Test(weight_ring, each_use_sees_its_piece_through_bounce_buffers) {
    for (int order = FAKECUDA_LAZY; order <= FAKECUDA_RANDOM; order++) {
        struct scene scene;
        open_scene(&scene, &(struct fakecuda_settings){.order = (enum fakecuda_order)order}, 16384);
        weight_ring_destroy(scene.ring);
        scene.pinned = false;
        const struct weight_ring_options options = options_of(&scene, 16384);
        OK(weight_ring_create(scene.device, &options, &scene.ring, &error));
        for (int i = 0; i < 4; i++)
            expect_step(&scene, i % 2 == 0);
        close_scene(&scene);
    }
}

Test(weight_ring, a_step_given_up_half_way_is_forgotten) {
    struct scene scene;
    uint64_t address = 0;
    open_scene(&scene, &(struct fakecuda_settings){0}, 12288);
    OK(weight_ring_begin(scene.ring, true, &error));
    OK(use(&scene, 0));
    OK(use(&scene, 1));
    OK(weight_ring_take(scene.ring, 2, &address, &error));
    expect_step(&scene, true);
    OK(weight_ring_begin(scene.ring, true, &error));
    expect_step(&scene, false);
    close_scene(&scene);
}

Test(weight_ring, copies_ahead_of_the_use) {
    struct scene scene;
    uint64_t address = 0, copied = 0;
    open_scene(&scene, &(struct fakecuda_settings){0}, 3 * 6144);
    OK(weight_ring_begin(scene.ring, true, &error));
    for (int piece = 0; piece < PIECES; piece++) {
        OK(weight_ring_take(scene.ring, piece, &address, &error));
        for (int part = 0; part < 2; part++)
            copied += part_bytes(piece, part);
        const uint64_t next = piece + 1 < PIECES ? scene.pieces[piece + 1].byte_count - 256 : 0;
        cr_assert_geq(weight_ring_copied(scene.ring), copied + next, "piece %d", piece);
        OK(weight_ring_give_back(scene.ring, &error));
    }
    close_scene(&scene);
}

/* What does not fit the device many times over passes through it. */
Test(weight_ring, ten_times_the_devices_memory) {
    enum { COUNT = 80, BYTES = 1 << 20 };
    struct device *device =
        device_scene_open(&(struct fakecuda_settings){.memory_bytes = 8 << 20}, NULL);
    static struct weight_ring_part parts[COUNT];
    static struct weight_ring_piece pieces[COUNT];
    char *weights = malloc((size_t)COUNT * BYTES);
    uint64_t out = 0, address = 0;
    unsigned char seen[COUNT];
    OK(device_memory_alloc(device, DEVICE_MEMORY_ACTIVATIONS, COUNT, &out, &error));
    for (int i = 0; i < COUNT; i++) {
        memset(weights + (size_t)i * BYTES, i, BYTES);
        parts[i] = (struct weight_ring_part){weights + (size_t)i * BYTES, BYTES, 0};
        pieces[i] = (struct weight_ring_piece){&parts[i], 1, BYTES};
    }
    const struct weight_ring_options options = {
        .pieces = pieces, .piece_count = COUNT, .optional_from = COUNT, .ring_bytes = 3 * BYTES};
    struct weight_ring *ring = NULL;
    OK(weight_ring_create(device, &options, &ring, &error));
    for (int pass = 0; pass < 2; pass++) {
        OK(weight_ring_begin(ring, true, &error));
        for (int i = 0; i < COUNT; i++) {
            OK(weight_ring_take(ring, i, &address, &error));
            OK(device_copy_within(device, DEVICE_COMPUTE, out + (uint64_t)i, address + BYTES - 1, 1,
                                  &error));
            OK(weight_ring_give_back(ring, &error));
        }
        OK(device_copy_download(device, DEVICE_COMPUTE, seen, out, COUNT, &error));
        for (int i = 0; i < COUNT; i++)
            cr_assert_eq(seen[i], i);
    }
    cr_assert_lt(device_scene_report().memory_peak, 4 << 20);
    weight_ring_destroy(ring);
    free(weights);
    device_scene_close(device);
}

/* While the calling thread copies the next piece, the last one is left to the device: no copy may
 * have been held up until its use was done. Pieces are larger than the bounce buffers. */
Test(weight_ring, copying_does_not_wait_for_the_last_use) {
    enum { COUNT = 4, BYTES = 20 << 20 };
    struct device *device = device_scene_open(NULL, NULL);
    struct weight_ring_part parts[COUNT];
    struct weight_ring_piece pieces[COUNT];
    struct driver_event *used = NULL;
    char *weights = calloc(COUNT, BYTES);
    uint64_t address = 0;
    float milliseconds = 0;
    for (int i = 0; i < COUNT; i++) {
        parts[i] = (struct weight_ring_part){weights + (size_t)i * BYTES, BYTES, 0};
        pieces[i] = (struct weight_ring_piece){&parts[i], 1, BYTES};
    }
    const struct weight_ring_options options = {
        .pieces = pieces, .piece_count = COUNT, .optional_from = COUNT, .ring_bytes = 2 * BYTES};
    struct weight_ring *ring = NULL;
    OK(weight_ring_create(device, &options, &ring, &error));
    OK(device_event_create(device, true, &used, &error));
    OK(weight_ring_begin(ring, true, &error));
    for (int i = 0; i < COUNT; i++) {
        OK(weight_ring_take(ring, i, &address, &error));
        OK(device_copy_fill(device, DEVICE_COMPUTE, address, 1, BYTES, &error));
        OK(device_event_record(device, used, DEVICE_COMPUTE, &error));
        OK(weight_ring_give_back(ring, &error));
        cr_assert_eq(device_event_elapsed_ms(device, used, used, &milliseconds, &error),
                     STATUS_DEVICE, "piece %d was waited for", i);
        cr_assert_not_null(strstr(error.text, "CUDA_ERROR_NOT_READY"));
    }
    device_event_destroy(device, used);
    weight_ring_destroy(ring);
    free(weights);
    device_scene_close(device);
}

Test(weight_ring, too_small_for_a_piece) {
    struct scene scene;
    struct weight_ring *ring = NULL;
    open_scene(&scene, &(struct fakecuda_settings){0}, 6144);
    const struct weight_ring_options options = options_of(&scene, 4096);
    cr_assert_eq(weight_ring_create(scene.device, &options, &ring, &error), STATUS_OVER_LIMIT);
    cr_assert_null(ring);
    close_scene(&scene);
}

static enum status create_and_step(struct scene *scene, int64_t *calls_before) {
    *calls_before = device_scene_report().calls;
    const struct weight_ring_options options = options_of(scene, 12288);
    TRY(weight_ring_create(scene->device, &options, &scene->ring, &error));
    TRY(step(scene, true));
    TRY(step(scene, false));
    TRY(device_synchronize(scene->device, DEVICE_COPY, &error));
    return device_synchronize(scene->device, DEVICE_COMPUTE, &error);
}

static void prepare_failing(struct scene *scene, int64_t fail_call) {
    *scene = (struct scene){
        .device = device_scene_open(
            &(struct fakecuda_settings){.fail_call = fail_call, .fail_result = 1}, NULL),
        .pinned = true};
    make_pieces(scene);
    OK(device_memory_alloc(scene->device, DEVICE_MEMORY_ACTIVATIONS, PIECES * LARGEST, &scene->out,
                           &error));
}

Test(weight_ring, any_call_may_fail) {
    int64_t before = 0;
    struct scene scene;
    prepare_failing(&scene, 0);
    OK(create_and_step(&scene, &before));
    const int64_t after = device_scene_report().calls;
    close_scene(&scene);
    cr_assert_gt(after, before + 100);
    for (int64_t n = before + 1; n <= after; n++) {
        prepare_failing(&scene, n);
        cr_assert_eq(create_and_step(&scene, &before), STATUS_DEVICE, "call %lld", (long long)n);
        cr_assert_not_null(strstr(error.text, "CUDA_ERROR_INVALID_VALUE"), "%s", error.text);
        close_scene(&scene);
    }
}

/* ---- what stays ---- */
enum { MODEL_PIECES = 96 };

static void model_bytes(uint64_t bytes[MODEL_PIECES]) {
    for (int i = 0; i < MODEL_PIECES; i++)
        bytes[i] = (uint64_t)(i % 3 == 0 ? 3 : i % 3 == 1 ? 8 : 4) << 20;
}

Test(weight_ring, everything_stays_that_fits) {
    uint64_t bytes[MODEL_PIECES];
    bool streamed[MODEL_PIECES];
    struct weight_ring_division division;
    model_bytes(bytes);
    OK(weight_ring_divide(bytes, MODEL_PIECES, UINT64_C(480) << 20, streamed, &division, &error));
    cr_assert_eq(division.ring_bytes, 0);
    cr_assert_eq(division.step_bytes, 0);
    cr_assert_eq(division.resident_bytes, UINT64_C(480) << 20);
    for (int i = 0; i < MODEL_PIECES; i++)
        cr_assert(!streamed[i]);
}

Test(weight_ring, under_a_limit_the_rest_is_spread_evenly) {
    uint64_t bytes[MODEL_PIECES];
    bool streamed[MODEL_PIECES];
    struct weight_ring_division division;
    model_bytes(bytes);
    for (uint64_t limit = 8; limit < 480; limit++) {
        uint64_t stretch[4] = {0}, resident = 0, moved = 0;
        OK(weight_ring_divide(bytes, MODEL_PIECES, limit << 20, streamed, &division, &error));
        for (int i = 0; i < MODEL_PIECES; i++) {
            stretch[i / (MODEL_PIECES / 4)] += streamed[i] ? bytes[i] : 0;
            resident += streamed[i] ? 0 : bytes[i];
            moved += streamed[i] ? bytes[i] : 0;
        }
        cr_assert_eq(resident, division.resident_bytes);
        cr_assert_eq(moved, division.step_bytes);
        cr_assert_leq(division.ring_bytes + resident, limit << 20);
        cr_assert_geq(division.ring_bytes, 8 << 20);
        cr_assert_leq((limit << 20) - division.ring_bytes - resident, 8 << 20, "little is wasted");
        for (int i = 1; i < 4; i++)
            cr_assert_leq(llabs((long long)stretch[i] - (long long)stretch[0]), 16 << 20);
    }
}

Test(weight_ring, a_limit_below_the_largest_piece_is_refused) {
    uint64_t bytes[MODEL_PIECES];
    bool streamed[MODEL_PIECES];
    struct weight_ring_division division;
    model_bytes(bytes);
    cr_assert_eq(weight_ring_divide(bytes, MODEL_PIECES, 5 << 20, streamed, &division, &error),
                 STATUS_OVER_LIMIT);
    cr_assert_str_eq(error.text, "weights must be allowed 8.4 MB of device memory at least, the "
                                 "largest matrix, to be streamed; 5.2 MB are allowed");
}
