/* Accounting against counting: every pair of a mask, every slot of a page, one by one. */
#include "core/profile/account.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static bool sees(int query, int key, int window) {
    return key <= query && (window == 0 || key > query - window);
}

static int64_t count_pairs(int first, int count, int window, bool whole_pages) {
    int64_t pairs = 0;
    for (int query = first; query < first + count; query++)
        for (int page = 0; page * KV_PAGE_TOKENS <= query; page++) {
            int seen = 0;
            for (int key = page * KV_PAGE_TOKENS; key < (page + 1) * KV_PAGE_TOKENS; key++)
                seen += sees(query, key, window);
            pairs += whole_pages && seen > 0 ? KV_PAGE_TOKENS : seen;
        }
    return pairs;
}

static int64_t count_keys(int first, int count, int window) {
    int64_t keys = 0;
    for (int key = 0; key < first + count; key++) {
        bool seen = false;
        for (int query = first; query < first + count; query++)
            seen = seen || sees(query, key, window);
        keys += seen;
    }
    return keys;
}

Test(account, closed_forms_equal_a_count_of_the_mask) {
    static const int firsts[] = {0, 1, 63, 64, 65, 200, 511};
    static const int counts[] = {1, 2, 63, 64, 65, 130, 300};
    static const int windows[] = {0, 1, 2, 63, 64, 65, 100, 128, 1000};
    for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
                int first = firsts[f], count = counts[c], window = windows[w];
                cr_expect_eq(account_pairs(first, count, window),
                             count_pairs(first, count, window, false), "pairs %d+%d w%d", first,
                             count, window);
                cr_expect_eq(account_pairs_issued(first, count, window),
                             count_pairs(first, count, window, true), "issued %d+%d w%d", first,
                             count, window);
                cr_expect_eq(account_keys(first, count, window), count_keys(first, count, window),
                             "keys %d+%d w%d", first, count, window);
            }
}

Test(account, chunks_add_up_to_the_whole) {
    for (int window = 0; window < 300; window += 97) {
        int64_t pairs = 0, issued = 0;
        for (int first = 0; first < 1000; first += 37) {
            int count = 1000 - first < 37 ? 1000 - first : 37;
            pairs += account_pairs(first, count, window);
            issued += account_pairs_issued(first, count, window);
        }
        cr_expect_eq(pairs, account_pairs(0, 1000, window));
        cr_expect_eq(issued, account_pairs_issued(0, 1000, window));
        cr_expect_geq(issued, pairs);
    }
    cr_expect_eq(account_pairs(0, 32768, 1024), 33030656);
}

/* Llama-3.1-8B in bf16: 32 layers, 32 heads of 128 over 8 KV heads, width 4096, ffn 14336. */
static const struct account_shape llama = {.heads = 32,
                                           .kv_heads = 8,
                                           .head_dim = 128,
                                           .width = 4096,
                                           .ffn_width = 14336,
                                           .vocab = 128256,
                                           .group_count = 1,
                                           .kv_token_bytes = 2 * 8 * 128 * 2,
                                           .block_positions = 24};

static double llama_linear(int rows, double *bytes) {
    static const int shapes[][2] = {{4096, 6144}, {4096, 4096}, {4096, 28672}, {14336, 4096}};
    double flops = 0;
    *bytes = 0;
    for (int i = 0; i < 4; i++) {
        double stored = 2.0 * shapes[i][0] * shapes[i][1];
        struct account_work work = account_linear(rows, shapes[i][0], shapes[i][1], stored, stored);
        flops += 32 * work.flops;
        *bytes += 32 * work.stream_min;
    }
    return flops;
}

Test(account, the_test_vector_of_an_8b_model) {
    struct account_step_group prefill = {.pairs = account_pairs(0, 8192, 0), .keys = 8192};
    struct account_work work = account_attention(&llama, &prefill, 8192);
    double bytes;
    cr_expect_eq(prefill.pairs, 33558528);
    cr_expect_float_eq(32 * work.flops / 1e12, 17.6, 0.05);
    cr_expect_float_eq(llama_linear(8192, &bytes) / 1e12, 114.4, 0.06);
    /* Position 8191 sees 8192 keys. */
    struct account_step_group decode = {.pairs = account_pairs(8191, 1, 0),
                                        .keys = account_keys(8191, 1, 0)};
    work = account_attention(&llama, &decode, 1);
    cr_expect_float_eq(32 * work.flops / 1e9, 4.29, 0.01);
    cr_expect_float_eq(32 * work.stream_min / 1e9, 1.07, 0.005);
    struct account_work head = account_linear(1, 4096, 128256, 2.0 * 4096 * 128256, 0);
    llama_linear(1, &bytes);
    cr_expect_float_eq((bytes + head.stream_min) / 1e9, 15.0, 0.05);
}

Test(account, quantised_bytes_and_logits_rows) {
    struct account_work none = account_linear(0, 64, 100, 1000, 1200);
    cr_expect_eq(none.flops, 0);
    cr_expect_eq(none.stream_min, 0, "a step without samples reads no head");
    struct account_work some = account_linear(3, 64, 100, 1000, 1200);
    cr_expect_eq(some.flops, 2 * 3 * 64 * 100);
    cr_expect_eq(some.flops_issued, 2 * 3 * 64 * 128, "outputs come in panels of 64");
    cr_expect_eq(some.stream_min, 1000);
    cr_expect_eq(some.stream_moved, 1200);
}

/* ---- steps over shared pages ---- */

enum { PAGES = 40, RUNS = 5 };

struct scene {
    int32_t tables[RUNS][16];
    struct step_run runs[RUNS];
    struct step_plan plan;
};

/* Five sequences; the first three begin with the same two pages, four of them decode. */
static void set_scene(struct scene *scene) {
    static const int firsts[RUNS] = {200, 130, 128, 70, 10}, counts[RUNS] = {1, 1, 1, 1, 90};
    memset(scene, 0, sizeof *scene);
    int next = 0;
    for (int i = 0; i < RUNS; i++) {
        for (int page = 0; page < 16; page++) {
            bool used = page * KV_PAGE_TOKENS < firsts[i] + counts[i];
            bool shared = i > 0 && i < 3 && page < 2;
            scene->tables[i][page] = shared ? scene->tables[0][page] : used ? next++ : -1;
        }
        scene->runs[i] = (struct step_run){.row_first = scene->plan.row_count,
                                           .row_count = counts[i],
                                           .position_first = firsts[i],
                                           .prefill = counts[i] > 1,
                                           .pages = {scene->tables[i], scene->tables[i]}};
        scene->plan.row_count += counts[i];
    }
    scene->plan.runs = scene->runs;
    scene->plan.run_count = RUNS;
    scene->plan.sample_count = 5;
}

/* Every slot that some row sees, in a set. */
static int64_t distinct_keys(const struct scene *scene, int window) {
    static bool seen[PAGES * KV_PAGE_TOKENS];
    int64_t keys = 0;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < RUNS; i++)
        for (int r = 0; r < scene->runs[i].row_count; r++) {
            int query = scene->runs[i].position_first + r;
            for (int key = 0; key <= query; key++) {
                int page = scene->tables[i][key / KV_PAGE_TOKENS];
                bool *slot = &seen[page * KV_PAGE_TOKENS + key % KV_PAGE_TOKENS];
                keys += sees(query, key, window) && !*slot;
                *slot = *slot || sees(query, key, window);
            }
        }
    return keys;
}

Test(account, a_shared_page_counts_once) {
    struct scene scene;
    struct account account;
    struct account_step step;
    struct account_shape shape = llama;
    const int64_t page_count[] = {PAGES, PAGES};
    shape.group_count = 2;
    shape.windows[1] = 100;
    set_scene(&scene);
    cr_assert_eq(account_init(&account, &shape, page_count, NULL), STATUS_OK);
    for (int repeat = 0; repeat < 3; repeat++) { /* marks of earlier steps do not count */
        account_add_step(&account, &scene.plan, &step);
        for (int g = 0; g < 2; g++) {
            cr_expect_eq(step.groups[g].keys, distinct_keys(&scene, shape.windows[g]));
            cr_expect_gt(step.groups[g].keys_apart, step.groups[g].keys);
        }
    }
    cr_expect_eq(step.rows, 94);
    cr_expect_eq(step.prefill_rows, 90);
    cr_expect_eq(step.groups[0].pages_apart - step.groups[0].pages_held, 4);
    int64_t pairs = 0, decode = 0;
    for (int i = 0; i < RUNS; i++) {
        int64_t own = count_pairs(scene.runs[i].position_first, scene.runs[i].row_count, 0, false);
        pairs += own;
        decode += i < 4 ? own : 0;
    }
    cr_expect_eq(step.groups[0].pairs, pairs);
    cr_expect_eq(step.groups[0].decode_pairs, decode);
    account_deinit(&account);
}

Test(account, blocks_of_rows_read_their_pages_again) {
    struct scene scene;
    struct account account;
    struct account_step step;
    struct account_shape shape = llama;
    const int64_t page_count[] = {PAGES};
    set_scene(&scene);
    cr_assert_eq(account_init(&account, &shape, page_count, NULL), STATUS_OK);
    account_add_step(&account, &scene.plan, &step);
    int64_t pages = 4 + 3 + 3 + 2; /* of the decoding rows */
    for (int first = 10; first < 100; first += 24) {
        int last = first + 23 < 99 ? first + 23 : 99;
        pages += last / KV_PAGE_TOKENS + 1;
    }
    cr_expect_eq(step.groups[0].pages_moved, pages);
    account_deinit(&account);
}
