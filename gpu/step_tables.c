/* The block is filled from its beginning and never beyond what step_tables_bytes counts: each table
 * is as long as this step needs. */
#include "gpu/step_tables.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, BLOCKS_OF_MULTIPROCESSOR = 2 };

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int least(int a, int b) {
    return a < b ? a : b;
}

/* Tasks before any is cut: full ones, and a rest a run. */
static size_t tasks_max(const struct step_tables_limits *limits) {
    int rows = least(limits->prefill_rows, limits->decode_rows);
    return (size_t)limits->row_count * (size_t)limits->group / (size_t)rows +
           (size_t)limits->run_count;
}

size_t step_tables_bytes(const struct step_tables_limits *limits) {
    size_t rows = (size_t)limits->row_count, states = (size_t)limits->state_rows;
    size_t pages = (size_t)limits->context / KV_TILE + 1;
    size_t tasks = tasks_max(limits);
    size_t group = aligned((size_t)limits->run_count * pages * sizeof(int32_t)) +
                   aligned(rows * sizeof(int64_t)) +
                   2 * aligned((tasks + states) * sizeof(struct attention_task)) +
                   aligned(tasks * sizeof(struct merge_task)) + aligned(states * sizeof(int64_t)) +
                   aligned(states * 2 * sizeof(int32_t));
    return 2 * aligned(rows * sizeof(int32_t)) +
           aligned((size_t)limits->sample_count * sizeof(int32_t)) +
           (size_t)limits->group_count * group;
}

enum status step_tables_init(struct step_tables *tables, const struct step_tables_limits *limits,
                             void *block, struct error *error) {
    *tables = (struct step_tables){.limits = *limits, .block = block};
    tables->order = calloc((size_t)limits->run_count, sizeof *tables->order);
    return tables->order != NULL ? STATUS_OK : error_no_memory(error, "tables of a step");
}

void step_tables_deinit(struct step_tables *tables) {
    free(tables->order);
    tables->order = NULL;
}

static void *take(struct step_tables *tables, size_t count, size_t size, size_t *place) {
    *place = tables->used;
    tables->used += aligned(count * size);
    return tables->block + *place;
}

/* ---- rows ---- */

static void fill_rows(struct step_tables *tables, const struct step_plan *plan) {
    int32_t *tokens = take(tables, (size_t)plan->row_count, sizeof *tokens, &tables->tokens);
    int32_t *positions =
        take(tables, (size_t)plan->row_count, sizeof *positions, &tables->positions);
    int32_t *samples = take(tables, (size_t)plan->sample_count, sizeof *samples, &tables->samples);
    memcpy(tokens, plan->tokens, (size_t)plan->row_count * sizeof *tokens);
    for (int i = 0; i < plan->run_count; i++)
        for (int r = 0; r < plan->runs[i].row_count; r++)
            positions[plan->runs[i].row_first + r] = plan->runs[i].position_first + r;
    if (plan->sample_count > 0)
        memcpy(samples, plan->sample_rows, (size_t)plan->sample_count * sizeof *samples);
}

static int key_count(const struct step_run *run) {
    return run->position_first + run->row_count;
}

static int page_count(const struct step_run *run) {
    return (key_count(run) + KV_TILE - 1) / KV_TILE;
}

/* More keys first, then as they came. */
static int compare_runs(const void *a, const void *b) {
    const struct step_tables_run *left = a, *right = b;
    if (left->key_count != right->key_count)
        return left->key_count > right->key_count ? -1 : 1;
    return left->run < right->run ? -1 : left->run > right->run;
}

/* Long runs first: their blocks start first and the short ones fill the gaps. */
static void order_runs(struct step_tables *tables, const struct step_plan *plan) {
    int64_t pages = 0;
    for (int i = 0; i < plan->run_count; i++) {
        tables->order[i] = (struct step_tables_run){i, key_count(&plan->runs[i]), pages};
        pages += page_count(&plan->runs[i]);
    }
    qsort(tables->order, (size_t)plan->run_count, sizeof *tables->order, compare_runs);
}

/* ---- pages ---- */

static void fill_pages(struct step_tables *tables, const struct step_plan *plan, int group) {
    struct step_tables_group *made = &tables->groups[group];
    size_t count = 0;
    for (int i = 0; i < plan->run_count; i++)
        count += (size_t)page_count(&plan->runs[i]);
    int32_t *pages = take(tables, count, sizeof *pages, &made->page_table);
    int64_t *slots = take(tables, (size_t)plan->row_count, sizeof *slots, &made->slots);
    for (int i = 0; i < plan->run_count; i++) {
        const struct step_run *run = &plan->runs[i];
        memcpy(pages, run->pages[group], (size_t)page_count(run) * sizeof *pages);
        pages += page_count(run);
        for (int r = 0; r < run->row_count; r++) {
            int position = run->position_first + r;
            slots[run->row_first + r] =
                (int64_t)run->pages[group][position / KV_TILE] * KV_TILE + position % KV_TILE;
        }
    }
}

/* ---- tasks ---- */

/* The first packed row of a run's task `number`, and how many it has. */
struct cut {
    bool decode;
    int rows; /* packed rows of a task */
    int packed;
};

static struct cut cut_of(const struct step_tables_limits *limits, const struct step_run *run) {
    struct cut cut = {.packed = run->row_count * limits->group};
    cut.decode = cut.packed <= limits->decode_rows;
    cut.rows = cut.decode ? limits->decode_rows : limits->prefill_rows;
    return cut;
}

static struct attention_task make_task(const struct step_tables *tables, const struct step_run *run,
                                       int group, int packed_first, int packed_count) {
    int per_row = tables->limits.group, window = tables->limits.windows[group];
    struct attention_task task = {
        .state = -1,
        .state_from = -1,
        .row_first = run->row_first,
        .packed_first = packed_first,
        .packed_count = packed_count,
        .position_least = run->position_first + packed_first / per_row,
        .position_most = run->position_first + (packed_first + packed_count - 1) / per_row,
        .key_count = key_count(run),
    };
    int first_key =
        window > 0 && task.position_least >= window ? task.position_least - window + 1 : 0;
    task.span_first = first_key / ATTENTION_SPAN;
    task.span_end = task.position_most / ATTENTION_SPAN + 1;
    return task;
}

/* Tasks of one kind, at the block's end, which nothing else grows meanwhile. */
static void add_tasks(struct step_tables *tables, const struct step_plan *plan, int group,
                      bool decode) {
    struct step_tables_group *made = &tables->groups[group];
    struct attention_task *tasks =
        take(tables, 0, sizeof *tasks, decode ? &made->decode : &made->prefill);
    int count = 0;
    bool walks = false;
    for (int i = 0; i < plan->run_count; i++) {
        const struct step_tables_run *place = &tables->order[i];
        const struct step_run *run = &plan->runs[place->run];
        struct cut cut = cut_of(&tables->limits, run);
        for (int first = 0; cut.decode == decode && first < cut.packed; first += cut.rows) {
            int rows = least(cut.rows, cut.packed - first);
            tasks[count] = make_task(tables, run, group, first, rows);
            tasks[count].pages = place->pages;
            walks = walks || tasks[count].span_end - tasks[count].span_first > 1;
            count++;
        }
    }
    tables->used += aligned((size_t)count * sizeof *tasks);
    *(decode ? &made->decode_count : &made->prefill_count) = count;
    *(decode ? &made->decode_walks : &made->prefill_walks) = walks;
}

/* ---- cut decode tasks ---- */

static int span_count(const struct attention_task *task) {
    return task->span_end - task->span_first;
}

/* What cutting every decode task of several spans would need; 0 when the device is full anyhow, or
 * the states would be too many. */
static int64_t cut_state_rows(const struct step_tables *tables,
                              const struct step_tables_group *made) {
    const struct step_tables_limits *limits = &tables->limits;
    const struct attention_task *tasks = (const void *)(tables->block + made->decode);
    int64_t blocks = (int64_t)(made->decode_count + made->prefill_count) * limits->kv_heads;
    int64_t rows = 0;
    if (blocks >= (int64_t)BLOCKS_OF_MULTIPROCESSOR * limits->multiprocessors)
        return 0;
    for (int i = 0; i < made->decode_count; i++)
        if (span_count(&tasks[i]) > 1)
            rows += (int64_t)tasks[i].packed_count * span_count(&tasks[i]);
    return rows <= limits->state_rows ? rows : 0;
}

/* One task a span in place of `whole`; returns how many. */
static int cut_task(const struct attention_task *whole, int64_t *state,
                    struct attention_task *tasks) {
    for (int i = 0; i < span_count(whole); i++) {
        tasks[i] = *whole;
        tasks[i].span_first = whole->span_first + i;
        tasks[i].span_end = tasks[i].span_first + 1;
        tasks[i].state = *state;
        *state += whole->packed_count;
    }
    return span_count(whole);
}

static void add_merges(struct step_tables *tables, struct step_tables_group *made) {
    const struct attention_task *tasks = (const void *)(tables->block + made->decode);
    struct merge_task *merges =
        take(tables, (size_t)made->decode_count, sizeof *merges, &made->merges);
    int64_t packed = 0, listed = 0;
    for (int i = 0; i < made->decode_count; i++) {
        const struct attention_task *task = &tasks[i];
        if (span_count(task) < 2)
            continue;
        merges[made->merge_count++] = (struct merge_task){
            task->row_first, task->packed_first, task->packed_count, span_count(task), listed};
        listed += span_count(task);
        packed += task->packed_count;
    }
    made->packed_rows = packed;
    int64_t *list = take(tables, (size_t)listed, sizeof *list, &made->state_list);
    int32_t *rows = take(tables, 2 * (size_t)packed, sizeof *rows, &made->row_tasks);
    int64_t state = 0;
    for (int m = 0; m < made->merge_count; m++) {
        for (int i = 0; i < merges[m].list_count; i++, state += merges[m].packed_count)
            *list++ = state;
        for (int32_t i = 0; i < merges[m].packed_count; i++) {
            *rows++ = m;
            *rows++ = i;
        }
    }
}

static void cut_decode(struct step_tables *tables, struct step_tables_group *made) {
    if (cut_state_rows(tables, made) == 0)
        return;
    add_merges(tables, made);
    const struct attention_task *whole = (const void *)(tables->block + made->decode);
    size_t place;
    struct attention_task *cut = take(tables, 0, sizeof *cut, &place);
    int count = 0;
    int64_t state = 0;
    for (int i = 0; i < made->decode_count; i++) {
        if (span_count(&whole[i]) > 1)
            count += cut_task(&whole[i], &state, cut + count);
        else
            cut[count++] = whole[i];
    }
    tables->used += aligned((size_t)count * sizeof *cut);
    made->decode = place;
    made->decode_count = count;
    made->decode_walks = false;
}

void step_tables_fill(struct step_tables *tables, const struct step_plan *plan) {
    tables->used = 0;
    tables->row_count = plan->row_count;
    tables->sample_count = plan->sample_count;
    fill_rows(tables, plan);
    order_runs(tables, plan);
    for (int g = 0; g < tables->limits.group_count; g++) {
        tables->groups[g] = (struct step_tables_group){0};
        fill_pages(tables, plan, g);
        add_tasks(tables, plan, g, false);
        add_tasks(tables, plan, g, true);
        cut_decode(tables, &tables->groups[g]);
    }
    assert(tables->used <= step_tables_bytes(&tables->limits));
}
