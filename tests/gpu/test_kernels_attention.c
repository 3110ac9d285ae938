/* The attention kernels against double, and against each other bit for bit. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/gpu/attention_scene.h"

/* fp16 pages: products in fp16; the others in bf16 from 8.0. */
static double allowed(const struct scene *scene, int capability) {
    return scene->kv == KV_ELEMENT_F16 || capability < 80 ? 2e-3 : 1e-2;
}

/* Prefill near the answer; decode with merged states, other heights of tasks and another grid give
 * the same bits. */
static void check(const struct scene *scene, struct simulated *device) {
    struct scene_state state;
    int capability = device->capability;
    if (scene->kv == KV_ELEMENT_BF16 && capability < 80)
        return;
    attention_scene_build(&state, scene, device);
    const float *prefill = attention_scene_prefill(&state, 0, 0);
    double error = attention_scene_error(&state, prefill);
    cr_expect_lt(error, allowed(scene, capability),
                 "dim %d, kv %d, group %d, window %d on %d: off by %g", scene->head_dim, scene->kv,
                 scene->group, scene->window, capability, error);
    const float *others[] = {attention_scene_decode(&state, 0),
                             attention_scene_prefill(&state, 13, 3)};
    for (size_t i = 0; i < 2; i++)
        cr_expect(memcmp(others[i], prefill, state.out_count * sizeof(float)) == 0,
                  "%s differs: dim %d, kv %d, group %d on %d", i ? "another height" : "decode",
                  scene->head_dim, scene->kv, scene->group, capability);
    attention_scene_free(&state);
}

static void try_every_head_dim_and_element(struct simulated *device) {
    static const int dims[] = {64, 80, 96, 128, 256};
    for (int kv = KV_ELEMENT_F16; kv <= KV_ELEMENT_E4M3; kv++)
        for (size_t i = 0; i < 5; i++)
            check(&(struct scene){.kv = (enum kv_element)kv,
                                  .head_dim = dims[i],
                                  .kv_heads = 1,
                                  .group = 3,
                                  .run_count = 1,
                                  .runs = {{70, 24}}},
                  device);
}

Test(attention, every_head_dim_and_element) {
    simulated_each(try_every_head_dim_and_element);
}

/* flashinfer 2849, 996, 258: any number of query heads a KV head. */
static void try_any_group(struct simulated *device) {
    static const int groups[] = {1, 2, 5, 6, 7, 16, 32};
    for (size_t i = 0; i < 7; i++)
        check(&(struct scene){.kv = KV_ELEMENT_F16,
                              .head_dim = 64,
                              .kv_heads = 2,
                              .group = groups[i],
                              .run_count = 2,
                              .runs = {{63, 3}, {0, 1}}},
              device);
}

Test(attention, any_group) {
    simulated_each(try_any_group);
}

/* Spans of 512 keys, from within and across their borders. */
static void try_spans_merge_in_order(struct simulated *device) {
    check(&(struct scene){.kv = KV_ELEMENT_F16,
                          .head_dim = 64,
                          .kv_heads = 1,
                          .group = 2,
                          .run_count = 3,
                          .runs = {{1100, 40}, {511, 2}, {1535, 1}}},
          device);
}

Test(attention, spans_merge_in_order) {
    simulated_each(try_spans_merge_in_order);
}

static void try_window(struct simulated *device) {
    static const int windows[] = {1, 63, 64, 100, 600};
    for (size_t i = 0; i < 5; i++)
        check(&(struct scene){.kv = KV_ELEMENT_INT8,
                              .head_dim = 64,
                              .kv_heads = 1,
                              .group = 4,
                              .window = windows[i],
                              .run_count = 2,
                              .runs = {{1000, 30}, {3, 5}}},
              device);
}

Test(attention, window) {
    simulated_each(try_window);
}

static void try_softcap(struct simulated *device) {
    check(&(struct scene){.kv = KV_ELEMENT_F16,
                          .head_dim = 256,
                          .kv_heads = 1,
                          .group = 2,
                          .softcap = 5,
                          .query_size = 8,
                          .run_count = 1,
                          .runs = {{0, 70}}},
          device);
}

Test(attention, softcap) {
    simulated_each(try_softcap);
}

/* flash-attention 1537, 1619, 2470: rows without keys, runs without rows, nothing at all. */
static void try_nothing_to_see(struct simulated *device) {
    check(&(struct scene){.kv = KV_ELEMENT_F16,
                          .head_dim = 64,
                          .kv_heads = 3,
                          .group = 3,
                          .run_count = 4,
                          .runs = {{0, 0}, {2, 1}, {5, 0}, {4, 1}}},
          device);
    check(&(struct scene){.kv = KV_ELEMENT_F16, .head_dim = 64, .kv_heads = 1, .group = 1}, device);
}

Test(attention, nothing_to_see) {
    simulated_each(try_nothing_to_see);
}

/* flash-attention 1778: five rows over two keys; the first three see none and are exactly 0. */
static void try_more_rows_than_keys(struct simulated *device) {
    struct scene scene = {.kv = KV_ELEMENT_F16,
                          .head_dim = 64,
                          .kv_heads = 1,
                          .group = 1,
                          .run_count = 1,
                          .runs = {{-3, 5}}};
    struct scene_state state;
    attention_scene_build(&state, &scene, device);
    const float *out = attention_scene_prefill(&state, 0, 0);
    for (int i = 0; i < 3 * 64; i++)
        cr_assert_eq(out[i], 0.0f);
    cr_expect_lt(attention_scene_error(&state, out), 2e-3);
    attention_scene_free(&state);
}

Test(attention, more_rows_than_keys) {
    simulated_each(try_more_rows_than_keys);
}

/* vllm 47671, 50427: page × stride beyond 32 bits. */
static void try_far_page(struct simulated *device) {
    enum { FAR = 7768 };
    struct scene scene = {.kv = KV_ELEMENT_F16,
                          .head_dim = 64,
                          .kv_heads = 1,
                          .group = 1,
                          .run_count = 1,
                          .runs = {{20, 2}}};
    struct scene_state state;
    attention_scene_build(&state, &scene, device);
    const float *near = attention_scene_prefill(&state, 0, 0);
    size_t share = kv_share_bytes(scene.kv, scene.head_dim);
    int32_t page = state.page_table[0];
    state.arguments.page_stride = 1 << 20;
    state.arguments.kv = simulated_upload(device, NULL, ((size_t)FAR << 20) + share);
    memcpy(simulated_view(device, state.arguments.kv + ((uint64_t)FAR << 20), share),
           state.pool + (size_t)page * share, share);
    *(int32_t *)simulated_view(device, state.arguments.page_table, sizeof page) = FAR;
    const float *far = attention_scene_prefill(&state, 0, 0);
    cr_expect(memcmp(near, far, state.out_count * sizeof(float)) == 0);
    attention_scene_free(&state);
}

Test(attention, page_far_away) {
    simulated_each(try_far_page);
}

/* llama.cpp 6374: large scores; sums and the softmax state are fp32. */
static void try_large_scores(struct simulated *device) {
    check(&(struct scene){.kv = KV_ELEMENT_F16,
                          .head_dim = 80,
                          .kv_heads = 1,
                          .group = 1,
                          .query_size = 300,
                          .run_count = 1,
                          .runs = {{100, 20}}},
          device);
}

Test(attention, large_scores) {
    simulated_each(try_large_scores);
}

/* A shared beginning of whole spans hands its states to what follows: to the same bits. */
static void try_continue(struct simulated *device) {
    static const int dims[] = {64, 256};
    for (int i = 0; i < 2; i++) {
        struct scene scene = {.kv = KV_ELEMENT_F16,
                              .head_dim = dims[i],
                              .kv_heads = 2,
                              .group = 3,
                              .run_count = 2,
                              .runs = {{1030, 12}, {1600, 1}}};
        struct scene_state state;
        attention_scene_build(&state, &scene, device);
        const float *whole = attention_scene_prefill(&state, 0, 0);
        for (int spans = 1; spans <= 2; spans++)
            cr_expect(memcmp(attention_scene_continue(&state, spans), whole,
                             state.out_count * sizeof(float)) == 0,
                      "dim %d, %d spans", dims[i], spans);
        attention_scene_free(&state);
    }
}

Test(attention, continues_from_a_shared_beginning) {
    simulated_each(try_continue);
}

/* 16-bit outputs are the fp32 ones, rounded. */
static void try_16_bits(struct simulated *device) {
    static const int dims[] = {64, 80, 96, 128, 256};
    for (int i = 0; i < 5; i++) {
        struct scene scene = {.kv = KV_ELEMENT_F16,
                              .head_dim = dims[i],
                              .kv_heads = 2,
                              .group = 3,
                              .run_count = 1,
                              .runs = {{4, 7}}};
        struct scene_state state;
        attention_scene_build(&state, &scene, device);
        const float *wanted = attention_scene_prefill(&state, 0, 0);
        for (int element = ELEMENT_F16; element <= ELEMENT_BF16; element++) {
            state.arguments.out_element = element;
            const void *got[2] = {attention_scene_prefill(&state, 0, 0),
                                  attention_scene_decode(&state, 0)};
            for (size_t j = 0; j < state.out_count; j++) {
                double allowed = fabs((double)wanted[j]) * (element == ELEMENT_F16 ? 5e-4 : 4e-3);
                for (int k = 0; k < 2; k++)
                    cr_assert(fabs(simulated_element(got[k], (enum element)element, j) -
                                   (double)wanted[j]) <= allowed + 1e-7,
                              "dim %d, element %d at %zu", dims[i], element, j);
            }
        }
        attention_scene_free(&state);
    }
}

Test(attention, outputs_of_16_bits) {
    simulated_each(try_16_bits);
}

/* The order in which warps and blocks run shows in no bit. */
Test(attention, any_order_of_warps) {
    struct scene scene = {.kv = KV_ELEMENT_BF16,
                          .head_dim = 128,
                          .kv_heads = 2,
                          .group = 4,
                          .run_count = 2,
                          .runs = {{530, 20}, {10, 3}}};
    struct simulated device;
    struct scene_state state;
    simulated_create(&device, 80);
    attention_scene_build(&state, &scene, &device);
    const float *ascending = attention_scene_prefill(&state, 0, 0);
    for (int order = SIMULATED_DESCENDING; order <= SIMULATED_RANDOM; order++) {
        device.order = (enum simulated_order)order;
        const float *prefill = attention_scene_prefill(&state, 0, 2);
        const float *decode = attention_scene_decode(&state, 5);
        cr_expect(memcmp(prefill, ascending, state.out_count * sizeof(float)) == 0);
        cr_expect(memcmp(decode, ascending, state.out_count * sizeof(float)) == 0);
    }
    attention_scene_free(&state);
    simulated_destroy(&device);
}
