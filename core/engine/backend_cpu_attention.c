/* Attention of the CPU backend: K and V into pages, then blocks of query rows over them. A task is
 * a block and a KV head; when these are too few for the workers, a block's spans become tasks of
 * their own and are merged after, by the same arithmetic. */
#include "core/engine/backend_cpu_state.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct attention_step {
    struct backend_cpu *cpu;
    const struct op_attention *op;
    const struct cpu_rope_table *rope; /* NULL: none */
    const float *q_norm;
    const float *k_norm;
    const float *even; /* [kv_heads][head_dim]: queries are multiplied, keys divided; or NULL */
};

/* ---- begin of a step ---- */

static void add_pieces(struct backend_cpu *cpu, const struct step_run *run) {
    for (int done = 0; done < run->row_count;) {
        int position = run->position_first + done;
        int room = KV_PAGE_TOKENS - position % KV_PAGE_TOKENS;
        int count = run->row_count - done < room ? run->row_count - done : room;
        assert(cpu->piece_count < cpu->scratch.piece_max);
        cpu->scratch.pieces[cpu->piece_count++] =
            (struct cpu_piece){run, run->row_first + done, position, count};
        done += count;
    }
}

static void add_blocks(struct backend_cpu *cpu, const struct step_run *run) {
    int group = cpu->model->head_count / cpu->model->kv_head_count;
    int step = attention_block_positions(group);
    for (int done = 0; done < run->row_count; done += step) {
        int count = run->row_count - done < step ? run->row_count - done : step;
        int position = run->position_first + done;
        assert(cpu->block_count < cpu->scratch.block_max);
        cpu->scratch.blocks[cpu->block_count++] =
            (struct cpu_block){run, run->row_first + done, position, count, 0, 0, 0};
        cpu->attention_values += (size_t)count * (size_t)(position + count);
    }
}

/* Rows of one table; rows belong to runs, which are few and in order. */
static void fill_rope_rows(void *context, int first, int end) {
    const struct attention_step *step = context;
    const struct cpu_rope_table *table = step->rope;
    const struct step_plan *plan = step->cpu->plan;
    int pairs = table->rope->dims / 2, run = 0;
    for (int r = first; r < end; r++) {
        while (r >= plan->runs[run].row_first + plan->runs[run].row_count)
            run++;
        size_t at = (size_t)r * (size_t)pairs;
        rope_table(table->rope->frequencies, pairs, table->rope->magnitude,
                   plan->runs[run].position_first + r - plan->runs[run].row_first,
                   table->cosines + at, table->sines + at);
    }
}

void backend_cpu_attention_begin(struct backend_cpu *cpu) {
    cpu->piece_count = 0;
    cpu->block_count = 0;
    cpu->attention_values = 0;
    for (int i = 0; i < cpu->plan->run_count; i++) {
        add_pieces(cpu, &cpu->plan->runs[i]);
        add_blocks(cpu, &cpu->plan->runs[i]);
    }
    backend_cpu_shared_begin(cpu);
    cpu->attention_values *= (size_t)(cpu->model->head_count * cpu->model->head_dim / 8);
    for (int i = 0; i < cpu->scratch.rope_count; i++) {
        struct attention_step step = {.cpu = cpu, .rope = &cpu->scratch.ropes[i]};
        struct cpu_row_loop loop = {fill_rope_rows, &step, cpu->plan->row_count,
                                    16 * (size_t)step.rope->rope->dims};
        backend_cpu_tasks_over_rows(cpu, &loop);
    }
}

/* ---- K and V into pages ---- */

static const struct cpu_rope_table *find_rope(const struct backend_cpu *cpu,
                                              const struct rope *rope) {
    if (rope->pairing == ROPE_NONE)
        return NULL;
    for (int i = 0; i < cpu->scratch.rope_count; i++)
        if (backend_cpu_memory_same_rope(cpu->scratch.ropes[i].rope, rope))
            return &cpu->scratch.ropes[i];
    assert(!"every rope of the model has a table");
    return NULL;
}

static void turn(const struct attention_step *step, int row, float *head) {
    if (step->rope == NULL)
        return;
    int pairs = step->rope->rope->dims / 2;
    const float *cosines = step->rope->cosines + (size_t)row * (size_t)pairs;
    const float *sines = step->rope->sines + (size_t)row * (size_t)pairs;
    if (step->op->rope->pairing == ROPE_ADJACENT)
        rope_adjacent(head, cosines, sines, pairs);
    else
        rope_halves(head, cosines, sines, pairs);
}

static void norm_and_turn(const struct attention_step *step, int row, const float *norm,
                          float *head) {
    int dim = step->cpu->model->head_dim;
    if (norm != NULL)
        step->cpu->kernels.elementwise->rms_norm(head, norm, dim, step->op->norm_epsilon, head);
    turn(step, row, head);
}

/* ---- keys of even size, for int8 ---- */

static float pair_size(const float *bias, int one, int other) {
    return sqrtf(bias[one] * bias[one] + bias[other] * bias[other]);
}

static int compare_floats(const void *left, const void *right) {
    const float *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* The largest power of two by which `size` exceeds `usual`, at least 1. */
static float excess(float size, float usual) {
    if (!(size > usual && usual > 0 && isfinite(size)))
        return 1;
    return ldexpf(1, ilogbf(size / usual));
}

/* One head's factors from its bias, in `sizes` sorted for the median. A pair that rope turns into
 * each other has one factor, so that turning and multiplying commute. */
static void even_head(const struct rope *rope, int dim, const float *bias, float *sizes,
                      float *even) {
    bool halves = rope->pairing == ROPE_HALVES;
    int turned = rope->pairing == ROPE_NONE ? 0 : rope->dims, pairs = turned / 2;
    for (int i = 0; i < pairs; i++) {
        int one = halves ? i : 2 * i, other = halves ? i + pairs : 2 * i + 1;
        even[one] = even[other] = pair_size(bias, one, other);
    }
    for (int i = turned; i < dim; i++)
        even[i] = fabsf(bias[i]);
    memcpy(sizes, even, (size_t)dim * sizeof *sizes);
    qsort(sizes, (size_t)dim, sizeof *sizes, compare_floats);
    for (int i = 0; i < dim; i++)
        even[i] = excess(even[i], sizes[dim / 2]);
}

/* Where keys have a bias, as Qwen2's, a few dimensions of it are a hundred times the rest, and the
 * rest would vanish in the steps of a shared int8 scale. Powers of two take it out of the keys and
 * put it into the queries without rounding. A norm behind the bias makes this needless. */
static const float *find_even(struct backend_cpu *cpu, const struct op_attention *op) {
    const struct tensor *bias = op->qkv.biases[1];
    if (cpu->limits.kv_type != KV_INT8 || bias == NULL || op->k_norm != NULL)
        return NULL;
    int dim = cpu->model->head_dim;
    float *biases = cpu->scratch.vector, *sizes = cpu->scratch.vector_second;
    backend_cpu_weights_read_vector(cpu, bias, biases);
    for (int head = 0; head < cpu->model->kv_head_count; head++)
        even_head(op->rope, dim, biases + head * dim, sizes, cpu->scratch.even + head * dim);
    return cpu->scratch.even;
}

static void multiply(float *head, const float *factors, int dim) {
    for (int i = 0; i < dim; i++)
        head[i] *= factors[i];
}

static void divide(float *head, const float *factors, int dim) {
    for (int i = 0; i < dim; i++)
        head[i] /= factors[i];
}

static char *page_part(const struct backend_cpu *cpu, const struct op_attention *op, int kv_head) {
    enum attention_page_type type = backend_cpu_memory_page_type(cpu->limits.kv_type);
    size_t bytes = attention_page_bytes(type, cpu->model->head_dim);
    size_t part = (size_t)op->layer_in_group * (size_t)cpu->model->kv_head_count + (size_t)kv_head;
    return cpu->kv[op->kv_group] + part * bytes;
}

/* Zeros where a run's stale positions share the page of its last row. */
static void write_stale(const struct attention_step *step, const struct cpu_piece *piece,
                        void *page) {
    static const float zeros[CPU_HEAD_DIM_MAX];
    const struct backend_cpu *cpu = step->cpu;
    int end = piece->position_first + piece->count;
    int room = KV_PAGE_TOKENS - 1 - (end - 1) % KV_PAGE_TOKENS;
    if (end < piece->run->position_first + piece->run->row_count)
        return;
    struct attention_page_tokens tokens = {
        .keys = zeros,
        .values = zeros,
        .slot_first = end % KV_PAGE_TOKENS,
        .count = piece->run->stale_count < room ? piece->run->stale_count : room,
    };
    if (tokens.count > 0)
        attention_page_write(backend_cpu_memory_page_type(cpu->limits.kv_type),
                             cpu->model->head_dim, page, &tokens);
}

/* One piece's query heads, key and value of one KV head. */
static void write_piece(void *context, int task, int worker) {
    (void)worker;
    const struct attention_step *step = context;
    const struct backend_cpu *cpu = step->cpu;
    const struct model *model = cpu->model;
    int kv_heads = model->kv_head_count, kv_head = task % kv_heads;
    size_t dim = (size_t)model->head_dim, group = (size_t)(model->head_count / kv_heads);
    const struct cpu_piece *piece = &cpu->scratch.pieces[task / kv_heads];
    struct cpu_rows qkv = cpu->scratch.activations[ACTIVATION_QKV];
    float *first = qkv.values + (size_t)piece->row_first * qkv.stride;
    float *queries = first + (size_t)kv_head * group * dim;
    float *keys = first + (size_t)(model->head_count + kv_head) * dim;
    for (int r = 0; r < piece->count; r++) {
        size_t skip = (size_t)r * qkv.stride;
        for (size_t head = 0; head < group; head++)
            norm_and_turn(step, piece->row_first + r, step->q_norm, queries + skip + head * dim);
        norm_and_turn(step, piece->row_first + r, step->k_norm, keys + skip);
        if (step->even == NULL)
            continue;
        const float *even = step->even + (size_t)kv_head * dim;
        for (size_t head = 0; head < group; head++)
            multiply(queries + skip + head * dim, even, model->head_dim);
        divide(keys + skip, even, model->head_dim);
    }
    struct attention_page_tokens tokens = {.keys = keys,
                                           .values = keys + (size_t)kv_heads * dim,
                                           .stride = qkv.stride,
                                           .slot_first = piece->position_first % KV_PAGE_TOKENS,
                                           .count = piece->count};
    int32_t page = piece->run->pages[step->op->kv_group][piece->position_first / KV_PAGE_TOKENS];
    size_t page_bytes =
        backend_cpu_memory_page_bytes(model, step->op->kv_group, cpu->limits.kv_type);
    char *place = page_part(cpu, step->op, kv_head) + (size_t)page * page_bytes;
    attention_page_write(backend_cpu_memory_page_type(cpu->limits.kv_type), model->head_dim, place,
                         &tokens);
    write_stale(step, piece, place);
}

void backend_cpu_attention_write(struct backend *backend, const struct op_attention *op) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    struct attention_step step = {.cpu = cpu, .op = op, .rope = find_rope(cpu, op->rope)};
    step.even = find_even(cpu, op); /* before the norms: it uses their places */
    if (op->q_norm != NULL) {
        backend_cpu_weights_read_vector(cpu, op->q_norm, cpu->scratch.vector);
        step.q_norm = cpu->scratch.vector;
    }
    if (op->k_norm != NULL) {
        backend_cpu_weights_read_vector(cpu, op->k_norm, cpu->scratch.vector_second);
        step.k_norm = cpu->scratch.vector_second;
    }
    size_t values =
        4 * (size_t)cpu->plan->row_count * cpu->scratch.activations[ACTIVATION_QKV].stride;
    backend_cpu_tasks_run(cpu, cpu->piece_count * cpu->model->kv_head_count, values, write_piece,
                          &step);
}

/* ---- attention ---- */

static struct attention_view head_view(const struct attention_step *step,
                                       const struct step_run *run, int kv_head) {
    const struct backend_cpu *cpu = step->cpu;
    const struct model *model = cpu->model;
    int kv_group = step->op->kv_group;
    return (struct attention_view){
        .kernels = &cpu->kernels,
        .page_type = backend_cpu_memory_page_type(cpu->limits.kv_type),
        .head_dim = model->head_dim,
        .group = model->head_count / model->kv_head_count,
        .window = step->op->window,
        .scale = step->op->scale,
        .softcap = step->op->softcap,
        .base = page_part(cpu, step->op, kv_head),
        .page_stride = backend_cpu_memory_page_bytes(model, kv_group, cpu->limits.kv_type),
        .pages = run->pages[kv_group],
    };
}

static struct attention_queries head_queries(const struct backend_cpu *cpu,
                                             const struct cpu_block *block, int kv_head) {
    struct cpu_rows in = cpu->scratch.activations[ACTIVATION_QKV];
    struct cpu_rows out = cpu->scratch.activations[ACTIVATION_ATTENDED];
    const struct model *model = cpu->model;
    size_t head = (size_t)kv_head * (size_t)(model->head_count / model->kv_head_count);
    size_t column = head * (size_t)model->head_dim;
    return (struct attention_queries){
        .in = in.values + (size_t)block->row_first * in.stride + column,
        .in_stride = in.stride,
        .out = out.values + (size_t)block->row_first * out.stride + column,
        .out_stride = out.stride,
        .position_first = block->position_first,
        .position_count = block->count,
    };
}

static void *worker_scratch(const struct backend_cpu *cpu, int worker) {
    return cpu->scratch.attention + (size_t)worker * cpu->scratch.attention_bytes;
}

static size_t state_floats(const struct backend_cpu *cpu, const struct cpu_block *block) {
    int group = cpu->model->head_count / cpu->model->kv_head_count;
    return attention_block_state_bytes(cpu->model->head_dim, block->count * group) / sizeof(float);
}

/* A block's merged states of the spans it shares. */
static float *shared_states(const struct backend_cpu *cpu, const struct cpu_block *block,
                            int kv_head) {
    return cpu->scratch.states + block->shared_state + (size_t)kv_head * state_floats(cpu, block);
}

static void attend_shared(void *context, int task, int worker) {
    const struct attention_step *step = context;
    const struct backend_cpu *cpu = step->cpu;
    int kv_heads = cpu->model->kv_head_count, kv_head = task % kv_heads;
    const struct cpu_shared_task *shared_task = &cpu->scratch.shared_tasks[task / kv_heads];
    const int *numbers = cpu->scratch.shared_blocks + shared_task->first;
    struct attention_queries queries[ATTENTION_BLOCK_ROWS];
    float *states[ATTENTION_BLOCK_ROWS];
    for (int i = 0; i < shared_task->count; i++) {
        const struct cpu_block *block = &cpu->scratch.blocks[numbers[i]];
        queries[i] = head_queries(cpu, block, kv_head);
        states[i] = shared_states(cpu, block, kv_head);
    }
    struct attention_view view = head_view(step, cpu->scratch.blocks[numbers[0]].run, kv_head);
    struct attention_shared shared = {queries, states, shared_task->count, shared_task->span_count};
    attention_block_run_shared(&view, &shared, worker_scratch(cpu, worker));
}

/* Later blocks see more keys: they go first, so that the last tasks are short. */
static void attend_block(void *context, int task, int worker) {
    const struct attention_step *step = context;
    const struct backend_cpu *cpu = step->cpu;
    int kv_head = task / cpu->block_count;
    const struct cpu_block *block =
        &cpu->scratch.blocks[cpu->block_count - 1 - task % cpu->block_count];
    struct attention_view view = head_view(step, block->run, kv_head);
    struct attention_queries queries = head_queries(cpu, block, kv_head);
    if (step->op->window > 0 || block->shared_spans == 0)
        attention_block_run(&view, &queries, worker_scratch(cpu, worker));
    else
        attention_block_continue(&view, &queries, block->shared_spans,
                                 shared_states(cpu, block, kv_head), worker_scratch(cpu, worker));
}

static void attend_span(void *context, int task, int worker) {
    const struct attention_step *step = context;
    const struct backend_cpu *cpu = step->cpu;
    int kv_heads = cpu->model->kv_head_count, kv_head = task % kv_heads;
    struct cpu_span_task span = cpu->scratch.span_tasks[task / kv_heads];
    const struct cpu_block *block = &cpu->scratch.blocks[span.block];
    struct attention_view view = head_view(step, block->run, kv_head);
    struct attention_queries queries = head_queries(cpu, block, kv_head);
    struct attention_spans spans = attention_block_spans(&view, &queries);
    size_t place = (size_t)kv_head * (size_t)spans.count + (size_t)(span.span - spans.first);
    attention_block_run_span(&view, &queries, span.span,
                             cpu->scratch.states + block->state + place * state_floats(cpu, block),
                             worker_scratch(cpu, worker));
}

static void merge_block(void *context, int task, int worker) {
    (void)worker;
    const struct attention_step *step = context;
    const struct backend_cpu *cpu = step->cpu;
    int kv_heads = cpu->model->kv_head_count, kv_head = task % kv_heads;
    const struct cpu_block *block = &cpu->scratch.blocks[task / kv_heads];
    struct attention_view view = head_view(step, block->run, kv_head);
    struct attention_queries queries = head_queries(cpu, block, kv_head);
    struct attention_spans spans = attention_block_spans(&view, &queries);
    size_t place = (size_t)kv_head * (size_t)spans.count * state_floats(cpu, block);
    attention_block_merge(&view, &queries, cpu->scratch.states + block->state + place);
}

/* Lists the blocks' spans as tasks: their number, or 0 when blocks are enough, have one span each,
 * or their states would not fit. */
static int list_span_tasks(const struct attention_step *step) {
    struct backend_cpu *cpu = step->cpu;
    int kv_heads = cpu->model->kv_head_count, count = 0;
    size_t used = 0;
    if (cpu->block_count * kv_heads >= CPU_SPLIT_TASKS * cpu->worker_count)
        return 0;
    for (int i = 0; i < cpu->block_count; i++) {
        struct cpu_block *block = &cpu->scratch.blocks[i];
        struct attention_view view = head_view(step, block->run, 0);
        struct attention_queries queries = head_queries(cpu, block, 0);
        struct attention_spans spans = attention_block_spans(&view, &queries);
        block->state = used;
        used += (size_t)kv_heads * (size_t)spans.count * state_floats(cpu, block);
        if (count + spans.count > cpu->scratch.span_task_max ||
            used > cpu->scratch.state_floats_max)
            return 0;
        for (int span = 0; span < spans.count; span++)
            cpu->scratch.span_tasks[count++] = (struct cpu_span_task){i, spans.first + span};
    }
    return count > cpu->block_count ? count : 0;
}

/* Blocks as tasks, after what several of them share. */
static void attend_blocks(struct attention_step *step) {
    struct backend_cpu *cpu = step->cpu;
    int kv_heads = cpu->model->kv_head_count;
    if (step->op->window == 0 && cpu->shared_task_count > 0)
        backend_cpu_tasks_run(cpu, cpu->shared_task_count * kv_heads, cpu->attention_values,
                              attend_shared, step);
    backend_cpu_tasks_run(cpu, cpu->block_count * kv_heads, cpu->attention_values, attend_block,
                          step);
}

void backend_cpu_attention_run(struct backend *backend, const struct op_attention *op) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    struct attention_step step = {.cpu = cpu, .op = op};
    int kv_heads = cpu->model->kv_head_count, span_tasks = list_span_tasks(&step);
    if (span_tasks == 0) {
        attend_blocks(&step);
        return;
    }
    backend_cpu_tasks_run(cpu, span_tasks * kv_heads, cpu->attention_values, attend_span, &step);
    backend_cpu_tasks_run(cpu, cpu->block_count * kv_heads,
                          (size_t)span_tasks * state_floats(cpu, &cpu->scratch.blocks[0]),
                          merge_block, &step);
}
