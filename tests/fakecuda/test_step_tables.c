/* What a step's tables hold: every packed row of every run in exactly one task that sees its keys,
 * states that are merged in the order of their spans, and never more than the block has room for.
 * No device is needed. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/step_tables.h"

enum { CONTEXT = 4096, RUNS_MAX = 300, ROWS_MAX = 700, GUARD = 64 };

/* A plan under construction, and the tables made of it. Pages of run r are 1000 r, 1000 r + 1... */
struct scene {
    struct step_plan plan;
    struct step_run runs[RUNS_MAX];
    int32_t tokens[ROWS_MAX], samples[ROWS_MAX];
    int32_t pages[RUNS_MAX][CONTEXT / KV_TILE];
    struct step_tables tables;
    char *block;
    size_t block_bytes;
};

static struct scene scene;

static const struct step_tables_limits usual = {.row_count = ROWS_MAX,
                                                .run_count = RUNS_MAX,
                                                .sample_count = ROWS_MAX,
                                                .context = CONTEXT,
                                                .group_count = 2,
                                                .windows = {0, 100},
                                                .group = 3,
                                                .kv_heads = 2,
                                                .prefill_rows = 64,
                                                .decode_rows = 16,
                                                .multiprocessors = 80,
                                                .state_rows = 1000};

static void set_up(const struct step_tables_limits *limits) {
    struct error error;
    memset(&scene, 0, sizeof scene);
    scene.block_bytes = step_tables_bytes(limits);
    scene.block = malloc(scene.block_bytes + GUARD);
    memset(scene.block, 0x5a, scene.block_bytes + GUARD);
    cr_assert_eq(step_tables_init(&scene.tables, limits, scene.block, &error), STATUS_OK);
}

static void tear_down(void) {
    for (int i = 0; i < GUARD; i++)
        cr_assert_eq(scene.block[scene.block_bytes + (size_t)i], 0x5a);
    step_tables_deinit(&scene.tables);
    free(scene.block);
}

static void add_run(int position_first, int row_count) {
    int number = scene.plan.run_count++;
    struct step_run *run = &scene.runs[number];
    *run = (struct step_run){.row_first = scene.plan.row_count,
                             .row_count = row_count,
                             .position_first = position_first};
    for (int i = 0; i < CONTEXT / KV_TILE; i++)
        scene.pages[number][i] = 1000 * number + i;
    run->pages[0] = run->pages[1] = scene.pages[number];
    for (int i = 0; i < row_count; i++) {
        int row = scene.plan.row_count++;
        scene.tokens[row] = row + 7;
        if (i + 1 == row_count)
            scene.samples[scene.plan.sample_count++] = row;
    }
}

static void fill(void) {
    scene.plan.tokens = scene.tokens;
    scene.plan.runs = scene.runs;
    scene.plan.sample_rows = scene.samples;
    step_tables_fill(&scene.tables, &scene.plan);
    cr_assert_leq(scene.tables.used, scene.block_bytes);
}

static const void *at(size_t place) {
    return scene.tables.block + place;
}

static const struct step_run *run_of(const struct attention_task *task) {
    int i = 0;
    while (scene.runs[i].row_first != task->row_first)
        cr_assert_lt(++i, scene.plan.run_count, "a task of no run: row %d", task->row_first);
    return &scene.runs[i];
}

/* Spans of a task that hold a key that its rows see. */
static void check_task(const struct attention_task *task, int group) {
    const struct step_run *run = run_of(task);
    const int32_t *table = at(scene.tables.groups[group].page_table);
    int per_row = scene.tables.limits.group, window = scene.tables.limits.windows[group];
    int least = run->position_first + task->packed_first / per_row;
    int most = run->position_first + (task->packed_first + task->packed_count - 1) / per_row;
    int first_key = window > 0 && least >= window ? least - window + 1 : 0;
    cr_assert_eq(task->position_least, least);
    cr_assert_eq(task->position_most, most);
    cr_assert_eq(task->key_count, run->position_first + run->row_count);
    cr_assert_leq(first_key / ATTENTION_SPAN, task->span_first);
    cr_assert_leq(task->span_end, most / ATTENTION_SPAN + 1);
    cr_assert_lt(task->span_first, task->span_end);
    for (int i = 0; i < (task->key_count + KV_TILE - 1) / KV_TILE; i++)
        cr_assert_eq(table[task->pages + i], run->pages[group][i]);
}

/* Spans that are walked of a packed row, summed over the tasks of all kinds. */
static void count_spans(const struct attention_task *tasks, int count, int group, int *spans) {
    for (int t = 0; t < count; t++) {
        check_task(&tasks[t], group);
        int first = tasks[t].row_first * scene.tables.limits.group + tasks[t].packed_first;
        for (int i = 0; i < tasks[t].packed_count; i++)
            spans[first + i] += tasks[t].span_end - tasks[t].span_first;
    }
}

static void check_group(int group) {
    const struct step_tables_group *made = &scene.tables.groups[group];
    int per_row = scene.tables.limits.group, window = scene.tables.limits.windows[group];
    int *spans = calloc((size_t)(scene.plan.row_count * per_row), sizeof *spans);
    count_spans(at(made->prefill), made->prefill_count, group, spans);
    count_spans(at(made->decode), made->decode_count, group, spans);
    const int32_t *positions = at(scene.tables.positions);
    for (int packed = 0; packed < scene.plan.row_count * per_row; packed++) {
        int position = positions[packed / per_row], from = 0;
        if (window > 0 && position >= window)
            from = position - window + 1;
        cr_assert_geq(spans[packed], position / ATTENTION_SPAN + 1 - from / ATTENTION_SPAN);
        cr_assert_leq(spans[packed], position / ATTENTION_SPAN + 2 - from / ATTENTION_SPAN);
    }
    free(spans);
}

TestSuite(step_tables, .fini = tear_down);

Test(step_tables, rows_have_their_tokens_positions_and_slots) {
    set_up(&usual);
    add_run(100, 30);
    add_run(0, 1);
    fill();
    cr_assert_eq(memcmp(at(scene.tables.tokens), scene.tokens, 31 * sizeof *scene.tokens), 0);
    const int32_t *positions = at(scene.tables.positions), *samples = at(scene.tables.samples);
    const int64_t *slots = at(scene.tables.groups[1].slots);
    cr_assert_eq(positions[0], 100);
    cr_assert_eq(positions[29], 129);
    cr_assert_eq(positions[30], 0);
    cr_assert_eq(slots[0], 1 * KV_TILE + 36, "position 100 is in the second page");
    cr_assert_eq(slots[28], 2 * KV_TILE + 0);
    cr_assert_eq(slots[30], 1000 * KV_TILE);
    cr_assert_eq(samples[0], 29);
    cr_assert_eq(samples[1], 30);
}

/* Twelve packed rows are one decode task; eighteen are too many for it. */
Test(step_tables, few_rows_decode_and_many_prefill) {
    set_up(&usual);
    add_run(40, 4);
    add_run(40, 6);
    add_run(0, 50);
    fill();
    const struct step_tables_group *made = &scene.tables.groups[0];
    cr_assert_eq(made->decode_count, 1);
    cr_assert_eq(made->prefill_count, 1 + 3);
    cr_assert_not(made->prefill_walks);
    const struct attention_task *tasks = at(made->prefill);
    cr_assert_eq(tasks[0].key_count, 50, "the longest first");
    cr_assert_eq(tasks[3].row_first, 4);
    check_group(0);
    check_group(1);
}

Test(step_tables, a_window_skips_the_spans_behind_it) {
    set_up(&usual);
    add_run(3000, 20);
    fill();
    const struct attention_task *all = at(scene.tables.groups[0].prefill);
    const struct attention_task *near = at(scene.tables.groups[1].prefill);
    cr_assert_eq(all->span_first, 0);
    cr_assert_eq(near->span_first, (3000 - 99) / ATTENTION_SPAN);
    cr_assert(scene.tables.groups[0].prefill_walks);
    check_group(1);
}

/* Each entry of a merge's list is the first state row of one span, in ascending order; together the
 * lists name every state row once. */
Test(step_tables, cut_tasks_are_merged_in_the_order_of_spans) {
    set_up(&usual);
    add_run(2000, 1);
    add_run(300, 1);
    add_run(1200, 2);
    fill();
    const struct step_tables_group *made = &scene.tables.groups[0];
    cr_assert_eq(made->decode_count, 4 + 3 + 1);
    cr_assert_eq(made->merge_count, 2);
    cr_assert_eq(made->packed_rows, 3 + 6);
    cr_assert_not(made->decode_walks);
    const struct merge_task *merges = at(made->merges);
    const int64_t *list = at(made->state_list);
    const struct attention_task *tasks = at(made->decode);
    int64_t next = 0;
    for (int m = 0; m < made->merge_count; m++)
        for (int i = 0; i < merges[m].list_count; i++, next += merges[m].packed_count) {
            cr_assert_eq(list[merges[m].list_first + i], next);
            int t = 0;
            while (tasks[t].state != next)
                cr_assert_lt(++t, made->decode_count);
            cr_assert_eq(tasks[t].row_first, merges[m].row_first);
            cr_assert_eq(tasks[t].span_first, i);
        }
    const int32_t *rows = at(made->row_tasks);
    cr_assert_eq(rows[2 * 3], 1);
    cr_assert_eq(rows[2 * 3 + 1], 0);
    check_group(0);
}

Test(step_tables, nothing_is_cut_for_a_device_that_is_full_or_without_room) {
    struct step_tables_limits limits = usual;
    limits.multiprocessors = 1;
    set_up(&limits);
    add_run(2000, 1);
    fill();
    cr_assert_eq(scene.tables.groups[0].merge_count, 0);
    cr_assert(scene.tables.groups[0].decode_walks);
    tear_down();
    limits.multiprocessors = 80;
    limits.state_rows = 11;
    set_up(&limits);
    add_run(2000, 1);
    fill();
    cr_assert_eq(scene.tables.groups[0].merge_count, 0, "four spans of three rows");
}

/* As many runs and rows as the limits allow, of all lengths: within the block. */
Test(step_tables, a_full_step_fits) {
    set_up(&usual);
    for (int i = 0; i < RUNS_MAX - 1; i++)
        add_run(CONTEXT - 1 - 13 * i, 1);
    add_run(64, ROWS_MAX - (RUNS_MAX - 1));
    fill();
    check_group(0);
    check_group(1);
}
