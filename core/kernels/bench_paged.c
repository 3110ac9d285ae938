/* Pages of a sequence lie one behind the other, all KV heads of a page side by side. */
#include "core/kernels/bench_paged.h"

#include <stdlib.h>
#include <string.h>

#include "core/kernels/attention_block.h"
#include "core/kernels/bench_trials.h"

/* Positions of a sequence that attend together, for one KV head. */
struct task {
    int sequence, kv_head;
    int first, count;
};

struct bench_paged {
    const struct attention_dense_shape *shape;
    struct attention_view view; /* base is set by the task */
    size_t page_bytes;
    char *pages;
    size_t *pages_first; /* [sequences] pages of the sequences before */
    int32_t *numbers;    /* 0, 1, 2 ...: of the longest sequence */
    float *queries, *out;
    struct task *tasks;
    int task_count;
    char *scratch; /* [workers][scratch_bytes] */
    size_t scratch_bytes;
};

static int page_count(const struct attention_dense_sequence *sequence) {
    return (sequence->context + PANEL_COLUMNS - 1) / PANEL_COLUMNS;
}

static size_t row_values(const struct attention_dense_shape *shape) {
    return (size_t)shape->heads * (size_t)shape->head_dim;
}

static size_t row_count(const struct attention_dense_shape *shape) {
    const struct attention_dense_sequence *last = &shape->sequences[shape->sequence_count - 1];
    return last->query_first + (size_t)last->query_count;
}

static enum status allocate(struct bench_paged *paged, int workers, struct error *error) {
    const struct attention_dense_shape *shape = paged->shape;
    size_t values = row_count(shape) * row_values(shape), pages = 0;
    int longest = 0, step = attention_block_positions(paged->view.group);
    for (int s = 0; s < shape->sequence_count; s++) {
        int count = page_count(&shape->sequences[s]);
        pages += (size_t)count;
        longest = count > longest ? count : longest;
        paged->task_count += (shape->sequences[s].query_count + step - 1) / step * shape->kv_heads;
    }
    paged->scratch_bytes = bench_trials_round_up(
        attention_block_scratch_bytes(paged->view.page_type, shape->head_dim, paged->view.group));
    paged->pages = aligned_alloc(BENCH_TRIALS_ALIGNMENT, pages * paged->view.page_stride);
    paged->pages_first = calloc((size_t)shape->sequence_count, sizeof *paged->pages_first);
    paged->numbers = malloc((size_t)longest * sizeof *paged->numbers);
    paged->queries = malloc(values * sizeof(float));
    paged->out = malloc(values * sizeof(float));
    paged->tasks = malloc((size_t)paged->task_count * sizeof *paged->tasks);
    paged->scratch = aligned_alloc(BENCH_TRIALS_ALIGNMENT, (size_t)workers * paged->scratch_bytes);
    if (paged->pages == NULL || paged->pages_first == NULL || paged->numbers == NULL ||
        paged->queries == NULL || paged->out == NULL || paged->tasks == NULL ||
        paged->scratch == NULL)
        return error_no_memory(error, "KV pages to measure with");
    for (int i = 0; i < longest; i++)
        paged->numbers[i] = i;
    return STATUS_OK;
}

static void write_pages(struct bench_paged *paged, const struct bench_paged_inputs *inputs,
                        const struct attention_dense_sequence *sequence, int kv_head, char *pages) {
    size_t dim = (size_t)attention_dense_dim(paged->shape->head_dim);
    size_t at = attention_dense_key_at(paged->shape, sequence, kv_head);
    for (int first = 0; first < sequence->context; first += PANEL_COLUMNS) {
        int left = sequence->context - first;
        struct attention_page_tokens tokens = {
            .keys = inputs->keys + at + (size_t)first * dim,
            .values = inputs->values + at + (size_t)first * dim,
            .stride = dim,
            .count = left < PANEL_COLUMNS ? left : PANEL_COLUMNS,
        };
        attention_page_write(paged->view.page_type, paged->shape->head_dim, pages, &tokens);
        pages += paged->view.page_stride;
    }
}

/* From heads apart to the heads of a row side by side. */
static void copy_queries(struct bench_paged *paged, const struct bench_paged_inputs *inputs,
                         const struct attention_dense_sequence *sequence, int head) {
    const struct attention_dense_shape *shape = paged->shape;
    size_t dim = (size_t)attention_dense_dim(shape->head_dim);
    const float *in = inputs->queries + attention_dense_query_at(shape, sequence, head);
    float *out = paged->queries + sequence->query_first * row_values(shape) +
                 (size_t)head * (size_t)shape->head_dim;
    for (int r = 0; r < sequence->query_count; r++)
        memcpy(out + (size_t)r * row_values(shape), in + (size_t)r * dim,
               (size_t)shape->head_dim * sizeof(float));
}

static void fill(struct bench_paged *paged, const struct bench_paged_inputs *inputs) {
    const struct attention_dense_shape *shape = paged->shape;
    size_t pages = 0;
    for (int s = 0; s < shape->sequence_count; s++) {
        const struct attention_dense_sequence *sequence = &shape->sequences[s];
        paged->pages_first[s] = pages;
        for (int head = 0; head < shape->kv_heads; head++)
            write_pages(paged, inputs, sequence, head,
                        paged->pages + pages * paged->view.page_stride +
                            (size_t)head * paged->page_bytes);
        for (int head = 0; head < shape->heads; head++)
            copy_queries(paged, inputs, sequence, head);
        pages += (size_t)page_count(sequence);
    }
}

/* Later blocks, which see more keys, first. */
static void list_tasks(struct bench_paged *paged) {
    const struct attention_dense_shape *shape = paged->shape;
    int step = attention_block_positions(paged->view.group);
    struct task *next = paged->tasks;
    for (int s = 0; s < shape->sequence_count; s++) {
        int queries = shape->sequences[s].query_count;
        for (int first = (queries - 1) / step * step; first >= 0; first -= step)
            for (int head = 0; head < shape->kv_heads; head++)
                *next++ =
                    (struct task){s, head, first, queries - first < step ? queries - first : step};
    }
}

enum status bench_paged_open(const struct bench_paged_inputs *inputs, struct bench_paged **out,
                             struct error *error) {
    const struct attention_dense_shape *shape = inputs->shape;
    struct bench_paged *paged = calloc(1, sizeof *paged);
    if (paged == NULL)
        return error_no_memory(error, "KV pages to measure with");
    paged->shape = shape;
    paged->page_bytes = attention_page_bytes(inputs->page_type, shape->head_dim);
    paged->view = (struct attention_view){
        .kernels = inputs->kernels,
        .page_type = inputs->page_type,
        .head_dim = shape->head_dim,
        .group = shape->heads / shape->kv_heads,
        .window = shape->window,
        .scale = shape->scale,
        .softcap = shape->softcap,
        .page_stride = (size_t)shape->kv_heads * paged->page_bytes,
    };
    enum status status = allocate(paged, inputs->workers, error);
    if (status != STATUS_OK) {
        bench_paged_close(paged);
        return status;
    }
    paged->view.pages = paged->numbers;
    fill(paged, inputs);
    list_tasks(paged);
    *out = paged;
    return STATUS_OK;
}

void bench_paged_close(struct bench_paged *paged) {
    if (paged == NULL)
        return;
    free(paged->pages);
    free(paged->pages_first);
    free(paged->numbers);
    free(paged->queries);
    free(paged->out);
    free(paged->tasks);
    free(paged->scratch);
    free(paged);
}

static void run_task(void *context, int index, int worker) {
    const struct bench_paged *paged = context;
    const struct task *task = &paged->tasks[index];
    const struct attention_dense_sequence *sequence = &paged->shape->sequences[task->sequence];
    size_t row = row_values(paged->shape);
    size_t at = (sequence->query_first + (size_t)task->first) * row +
                (size_t)(task->kv_head * paged->view.group * paged->shape->head_dim);
    struct attention_view view = paged->view;
    view.base = paged->pages + paged->pages_first[task->sequence] * view.page_stride +
                (size_t)task->kv_head * paged->page_bytes;
    struct attention_queries queries = {
        .in = paged->queries + at,
        .in_stride = row,
        .out = paged->out + at,
        .out_stride = row,
        .position_first = sequence->context - sequence->query_count + task->first,
        .position_count = task->count,
    };
    attention_block_run(&view, &queries, paged->scratch + (size_t)worker * paged->scratch_bytes);
}

void bench_paged_run(struct bench_paged *paged, struct thread_pool *pool) {
    thread_pool_run(pool, paged->task_count, run_task, paged);
}

const float *bench_paged_out(const struct bench_paged *paged) {
    return paged->out;
}
