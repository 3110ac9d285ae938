/* Which blocks share their first spans, by page numbers alone. Spans are 8 pages of 64 tokens. */
#include <criterion/criterion.h>

#include "core/engine/backend_cpu_state.h"

enum { BLOCKS_MAX = 12, PAGES = 64 };

/* Blocks of one position each, at position 64 × pages, in one global KV group. */
struct rig {
    struct backend_cpu cpu;
    struct model model;
    struct step_run runs[BLOCKS_MAX];
    int32_t pages[BLOCKS_MAX][PAGES];
    struct cpu_block blocks[BLOCKS_MAX];
    int numbers[BLOCKS_MAX];
    struct cpu_shared_task tasks[BLOCKS_MAX];
};

static void set_up(struct rig *rig) {
    *rig = (struct rig){
        .model = {.head_count = 6, .kv_head_count = 2, .head_dim = 16, .kv_group_count = 1}};
    rig->cpu.model = &rig->model;
    rig->cpu.worker_count = 1;
    rig->cpu.scratch.blocks = rig->blocks;
    rig->cpu.scratch.shared_blocks = rig->numbers;
    rig->cpu.scratch.shared_tasks = rig->tasks;
    rig->cpu.scratch.state_floats_max = SIZE_MAX;
}

/* A block behind `pages` pages, of which the first `shared` are those of block `like`. */
static void add_block(struct rig *rig, int like, int shared, int pages) {
    int number = rig->cpu.block_count++;
    for (int i = 0; i < pages; i++)
        rig->pages[number][i] = i < shared ? rig->pages[like][i] : number * PAGES + i;
    rig->runs[number].pages[0] = rig->pages[number];
    rig->blocks[number] = (struct cpu_block){
        .run = &rig->runs[number], .position_first = pages * KV_PAGE_TOKENS - 1, .count = 1};
}

Test(backend_cpu_shared, whole_spans_in_common) {
    struct rig rig;
    set_up(&rig);
    add_block(&rig, 0, 0, 20);
    add_block(&rig, 0, 19, 30);
    add_block(&rig, 0, 0, 20);
    add_block(&rig, 0, 16, 17);
    backend_cpu_shared_begin(&rig.cpu);
    cr_assert_eq(rig.cpu.shared_task_count, 1);
    cr_expect_eq(rig.tasks[0].count, 3);
    cr_expect_eq(rig.tasks[0].span_count, 2);
    cr_expect_eq(rig.numbers[1], 1);
    cr_expect_eq(rig.numbers[2], 3);
    cr_expect_eq(rig.blocks[2].shared_spans, 0);
    cr_expect_eq(rig.blocks[3].shared_spans, 2);
    cr_expect_neq(rig.blocks[0].shared_state, rig.blocks[1].shared_state);
}

/* A span that holds a block's own position is not shared; nor is less than a span. */
Test(backend_cpu_shared, only_spans_before_the_block) {
    struct rig rig;
    set_up(&rig);
    add_block(&rig, 0, 0, 8);
    add_block(&rig, 0, 8, 8);
    add_block(&rig, 0, 0, 20);
    add_block(&rig, 2, 7, 20);
    backend_cpu_shared_begin(&rig.cpu);
    cr_expect_eq(rig.cpu.shared_task_count, 0);
}

/* Two documents under one instruction of a span: each document's company saves more than all of
 * them together would. */
Test(backend_cpu_shared, the_larger_saving_decides) {
    struct rig rig;
    set_up(&rig);
    for (int i = 0; i < 4; i++)
        add_block(&rig, 0, i == 0 ? 0 : 48, 50);
    add_block(&rig, 0, 8, 50);
    for (int i = 0; i < 3; i++)
        add_block(&rig, 4, 48, 50);
    backend_cpu_shared_begin(&rig.cpu);
    cr_assert_eq(rig.cpu.shared_task_count, 2);
    cr_expect_eq(rig.tasks[0].count, 4);
    cr_expect_eq(rig.tasks[1].count, 4);
    cr_expect_eq(rig.tasks[1].first, 4);
    cr_expect_eq(rig.blocks[7].shared_spans, 6);
}

Test(backend_cpu_shared, every_worker_has_a_task) {
    struct rig rig;
    set_up(&rig);
    rig.cpu.worker_count = 2;
    for (int i = 0; i < 12; i++)
        add_block(&rig, 0, i == 0 ? 0 : 16, 20);
    backend_cpu_shared_begin(&rig.cpu);
    cr_expect_eq(rig.cpu.shared_task_count, 4);
    int blocks = 0;
    for (int i = 0; i < rig.cpu.shared_task_count; i++)
        blocks += rig.tasks[i].count;
    cr_expect_eq(blocks, 12);
}

Test(backend_cpu_shared, not_without_room_nor_for_windows_nor_many_rows) {
    struct rig rig;
    set_up(&rig);
    add_block(&rig, 0, 0, 20);
    add_block(&rig, 0, 16, 20);
    rig.cpu.scratch.state_floats_max = 10;
    backend_cpu_shared_begin(&rig.cpu);
    cr_expect_eq(rig.cpu.shared_task_count, 0);
    cr_expect_eq(rig.blocks[0].shared_spans, 0);
    rig.cpu.scratch.state_floats_max = SIZE_MAX;
    rig.model.kv_groups[0].window = 4096;
    backend_cpu_shared_begin(&rig.cpu);
    cr_expect_eq(rig.cpu.shared_task_count, 0);
    rig.model.kv_groups[0].window = 0;
    rig.blocks[1].count = 30;
    backend_cpu_shared_begin(&rig.cpu);
    cr_expect_eq(rig.cpu.shared_task_count, 0);
}
