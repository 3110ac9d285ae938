/* Which blocks of a step attend their first spans together. Sequences that begin alike have the
 * same pages there, so equal page numbers are all that needs comparing, whoever made them equal.
 * Blocks with many rows read their keys once for all of them anyway and stay on their own. */
#include "core/engine/backend_cpu_state.h"

#include <string.h>

enum {
    SPAN_PAGES = ATTENTION_SPAN_TOKENS / KV_PAGE_TOKENS,
    SHARING_ROWS_MAX = ATTENTION_BLOCK_ROWS / 4, /* of a block that gains from company */
    TASK_ROWS_MIN = 6,                           /* fewer do not fill the registers */
};

struct search {
    struct backend_cpu *cpu;
    int kv_group;
    int group; /* rows a position */
    int taken; /* of shared_blocks */
    int task_count;
    size_t state_floats;
};

/* Whole spans that lie before the block's positions. */
static int spans_before(const struct search *search, const struct cpu_block *block) {
    if (block->shared_spans > 0 || block->count * search->group > SHARING_ROWS_MAX)
        return 0;
    return block->position_first / ATTENTION_SPAN_TOKENS;
}

/* Spans that both blocks see through the same pages. */
static int spans_in_common(const struct search *search, const struct cpu_block *a,
                           const struct cpu_block *b) {
    int most = spans_before(search, a), spans = 0;
    if (spans_before(search, b) < most)
        most = spans_before(search, b);
    const int32_t *pages = a->run->pages[search->kv_group];
    const int32_t *others = b->run->pages[search->kv_group];
    while (spans < most && memcmp(pages + spans * SPAN_PAGES, others + spans * SPAN_PAGES,
                                  SPAN_PAGES * sizeof *pages) == 0)
        spans++;
    return spans;
}

/* Numbers of the later blocks that have at least `spans` spans in common with block `leader`, and
 * the leader's, behind those already taken. */
static int list_followers(const struct search *search, int leader, int spans) {
    const struct cpu_block *blocks = search->cpu->scratch.blocks;
    int *numbers = search->cpu->scratch.shared_blocks + search->taken, count = 1;
    numbers[0] = leader;
    for (int i = leader + 1; i < search->cpu->block_count; i++)
        if (spans_in_common(search, &blocks[leader], &blocks[i]) >= spans)
            numbers[count++] = i;
    return count;
}

/* The number of spans at which the leader's company saves most reading; 0 without any. */
static int best_span_count(const struct search *search, int leader) {
    const struct cpu_block *blocks = search->cpu->scratch.blocks;
    int best = 0, most_saved = 0;
    for (int i = leader + 1; i < search->cpu->block_count; i++) {
        int spans = spans_in_common(search, &blocks[leader], &blocks[i]);
        if (spans == 0 || spans == best)
            continue;
        int saved = spans * (list_followers(search, leader, spans) - 1);
        if (saved > most_saved)
            best = spans, most_saved = saved;
    }
    return best;
}

/* Places for the states of blocks that will share; false when there is no room. */
static bool place_states(struct search *search, const int *numbers, int count, int spans) {
    struct backend_cpu *cpu = search->cpu;
    size_t used = search->state_floats;
    for (int i = 0; i < count; i++) {
        struct cpu_block *block = &cpu->scratch.blocks[numbers[i]];
        block->shared_state = used;
        used += (size_t)cpu->model->kv_head_count *
                attention_block_state_bytes(cpu->model->head_dim, block->count * search->group) /
                sizeof(float);
    }
    if (used > cpu->scratch.state_floats_max)
        return false;
    search->state_floats = used;
    for (int i = 0; i < count; i++)
        cpu->scratch.blocks[numbers[i]].shared_spans = spans;
    return true;
}

/* Rows of a task: enough to share well, few enough that all workers have some. */
static int task_rows(const struct search *search, int row_count) {
    const struct backend_cpu *cpu = search->cpu;
    int tasks = cpu->worker_count > 1 ? CPU_SPLIT_TASKS * cpu->worker_count : 1;
    int rows = (row_count * cpu->model->kv_head_count + tasks - 1) / tasks;
    int most = attention_block_positions(search->group) * search->group;
    rows = rows < TASK_ROWS_MIN ? TASK_ROWS_MIN : rows;
    return rows > most ? most : rows;
}

/* Cuts `count` sharing blocks, the next of shared_blocks, into tasks. */
static void add_tasks(struct search *search, int count, int spans) {
    struct cpu_scratch *scratch = &search->cpu->scratch;
    const int *numbers = scratch->shared_blocks + search->taken;
    int row_count = 0;
    for (int i = 0; i < count; i++)
        row_count += scratch->blocks[numbers[i]].count * search->group;
    int limit = task_rows(search, row_count);
    for (int first = 0; first < count;) {
        int end = first, rows = 0;
        do
            rows += scratch->blocks[numbers[end++]].count * search->group;
        while (end < count && rows + scratch->blocks[numbers[end]].count * search->group <= limit);
        scratch->shared_tasks[search->task_count++] =
            (struct cpu_shared_task){search->taken + first, end - first, spans};
        first = end;
    }
    search->taken += count;
}

/* Layers without a window are one KV group; windows move, and what they see is soon different. */
static int global_group(const struct model *model) {
    for (int i = 0; i < model->kv_group_count; i++)
        if (model->kv_groups[i].window == 0)
            return i;
    return -1;
}

void backend_cpu_shared_begin(struct backend_cpu *cpu) {
    struct search search = {.cpu = cpu,
                            .kv_group = global_group(cpu->model),
                            .group = cpu->model->head_count / cpu->model->kv_head_count};
    for (int leader = 0; search.kv_group >= 0 && leader < cpu->block_count; leader++) {
        int spans = best_span_count(&search, leader);
        if (spans == 0)
            continue;
        int count = list_followers(&search, leader, spans);
        if (place_states(&search, cpu->scratch.shared_blocks + search.taken, count, spans))
            add_tasks(&search, count, spans);
    }
    cpu->shared_task_count = search.task_count;
}
