/* Scenes of attention: their pages, their answers, their tasks. */
#include "tests/gpu/attention_scene.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/weights/quant_type.h"

static int heads_of(const struct scene *scene) {
    return scene->kv_heads * scene->group;
}

static size_t row_floats(const struct scene *scene) {
    return (size_t)(heads_of(scene) + 2 * scene->kv_heads) * (size_t)scene->head_dim;
}

static void *zeroed(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    cr_assert_not_null(memory);
    return memory;
}

/* The value of an e4m3 byte by its definition. */
static float e4m3_value(int byte) {
    int exponent = byte >> 3 & 15, mantissa = byte & 7;
    float size =
        exponent ? ldexpf(1 + (float)mantissa / 8, exponent - 7) : ldexpf((float)mantissa, -9);
    return byte & 128 ? -size : size;
}

static int e4m3_nearest(float value) {
    int best = 0;
    for (int byte = 0; byte < 0x7f; byte++) {
        float distance = fabsf(e4m3_value(byte) - fabsf(value));
        float least = fabsf(e4m3_value(best) - fabsf(value));
        if (distance < least || (distance == least && byte % 2 == 0))
            best = byte;
    }
    return best | (signbit(value) ? 128 : 0);
}

/* One token's vector into a share, and what it holds then. */
static void write_token(const struct scene *scene, uint8_t *share, int place, bool is_value,
                        const float *in, double *held) {
    int dim = scene->head_dim;
    size_t at = (size_t)((is_value ? KV_TILE : 0) + place) * (size_t)dim;
    float *scale = (float *)(void *)(share + 2 * KV_TILE * dim) + (is_value ? KV_TILE : 0) + place;
    float most = 0;
    for (int d = 0; d < dim; d++)
        most = fmaxf(most, fabsf(in[d]));
    if (scene->kv == KV_ELEMENT_INT8 || scene->kv == KV_ELEMENT_E4M3)
        *scale = most / (scene->kv == KV_ELEMENT_INT8 ? 127.0f : 448.0f);
    for (int d = 0; d < dim; d++) {
        uint16_t *half = (uint16_t *)(void *)share + at + d;
        if (scene->kv == KV_ELEMENT_F16) {
            *half = quant_type_f32_to_f16(in[d]);
            held[d] = (double)quant_type_f16_to_f32(*half);
        } else if (scene->kv == KV_ELEMENT_BF16) {
            *half = quant_type_f32_to_bf16(in[d]);
            held[d] = (double)quant_type_bf16_to_f32(*half);
        } else if (scene->kv == KV_ELEMENT_INT8) {
            int byte = (int)lrintf(in[d] / *scale);
            share[at + (size_t)d] = (uint8_t)(int8_t)byte;
            held[d] = (double)byte * (double)*scale;
        } else {
            int byte = e4m3_nearest(in[d] / *scale);
            share[at + (size_t)d] = (uint8_t)byte;
            held[d] = (double)e4m3_value(byte) * (double)*scale;
        }
    }
}

static void fill_run(struct scene_state *state, int run, uint64_t *seed) {
    const struct scene *scene = state->scene;
    int dim = scene->head_dim;
    size_t share_bytes = kv_share_bytes(scene->kv, dim);
    float vector[256];
    for (int key = 0; key < state->key_count[run]; key++) {
        size_t page = (size_t)state->page_table[state->pages_first[run] + key / KV_TILE];
        for (int head = 0; head < scene->kv_heads; head++) {
            uint8_t *share =
                state->pool + (page * (size_t)scene->kv_heads + (size_t)head) * share_bytes;
            size_t at = ((size_t)key * (size_t)scene->kv_heads + (size_t)head) * (size_t)dim;
            for (int part = 0; part < 2; part++) {
                for (int d = 0; d < dim; d++)
                    vector[d] = 2 * simulated_noise(seed);
                write_token(scene, share, key % KV_TILE, part == 1, vector,
                            (part ? state->values[run] : state->keys[run]) + at);
            }
        }
    }
}

/* One query head at one row, in double. */
static void answer_head(struct scene_state *state, int run, int row, int head, double *out) {
    const struct scene *scene = state->scene;
    int dim = scene->head_dim, position = state->positions[row];
    int first = scene->window > 0 && position >= scene->window ? position - scene->window + 1 : 0;
    const float *query = state->queries + (size_t)row * row_floats(scene) + (size_t)(head * dim);
    double sum = 0, most = -INFINITY,
           *scores = zeroed(position < 0 ? 1 : (size_t)position + 1, sizeof *scores);
    for (int pass = 0; pass < 2; pass++)
        for (int key = first; key <= position; key++) {
            size_t at = ((size_t)key * (size_t)scene->kv_heads + (size_t)(head / scene->group)) *
                        (size_t)dim;
            if (pass == 0) {
                double score = 0;
                for (int d = 0; d < dim; d++)
                    score += (double)query[d] * state->keys[run][at + (size_t)d];
                score *= (double)state->arguments.scale;
                if (scene->softcap > 0)
                    score = (double)scene->softcap * tanh(score / (double)scene->softcap);
                scores[key] = score;
                most = fmax(most, score);
                continue;
            }
            double weight = exp(scores[key] - most);
            sum += weight;
            for (int d = 0; d < dim; d++)
                out[d] += weight * state->values[run][at + (size_t)d];
        }
    for (int d = 0; d < dim && sum > 0; d++)
        out[d] /= sum;
    free(scores);
}

static void place_runs(struct scene_state *state) {
    const struct scene *scene = state->scene;
    int row = 0;
    for (int run = 0; run < scene->run_count; run++) {
        const struct scene_run *r = &scene->runs[run];
        int keys = r->position_first + r->row_count;
        state->key_count[run] = keys > 0 ? keys : 0;
        state->pages_first[run] = state->page_count;
        state->page_count += (state->key_count[run] + KV_TILE - 1) / KV_TILE;
        size_t elements =
            (size_t)state->key_count[run] * (size_t)(scene->kv_heads * scene->head_dim);
        state->keys[run] = zeroed(elements, sizeof(double));
        state->values[run] = zeroed(elements, sizeof(double));
        for (int i = 0; i < r->row_count; i++)
            state->positions[row++] = r->position_first + i;
    }
    /* Neighbouring pages of a sequence lie apart. */
    state->page_table = zeroed((size_t)state->page_count, sizeof(int32_t));
    for (int i = 0; i < state->page_count; i++)
        state->page_table[i] =
            (i * 7 + 3) % (state->page_count % 7 ? state->page_count : state->page_count + 1);
}

static void upload(struct scene_state *state, size_t pool_bytes) {
    const struct scene *scene = state->scene;
    size_t rows = (size_t)state->row_count;
    struct attention_arguments *a = &state->arguments;
    a->qkv =
        simulated_upload(state->device, state->queries, rows * row_floats(scene) * sizeof(float));
    a->kv = simulated_upload(state->device, state->pool, pool_bytes);
    a->page_table = simulated_upload(state->device, state->page_table,
                                     (size_t)state->page_count * sizeof(int32_t));
    a->positions = simulated_upload(state->device, state->positions, rows * sizeof(int32_t));
    a->head_stride = (int64_t)kv_share_bytes(scene->kv, scene->head_dim);
    a->page_stride = a->head_stride * scene->kv_heads;
    a->qkv_stride = (int64_t)row_floats(scene);
    a->kv_heads = scene->kv_heads;
    a->group = scene->group;
    a->window = scene->window;
    a->softcap = scene->softcap;
    a->out_element = ELEMENT_F32;
}

void attention_scene_build(struct scene_state *state, const struct scene *scene,
                           struct simulated *device) {
    uint64_t seed = 11;
    *state = (struct scene_state){.scene = scene, .device = device};
    for (int run = 0; run < scene->run_count; run++)
        state->row_count += scene->runs[run].row_count;
    state->positions = zeroed((size_t)state->row_count, sizeof(int32_t));
    place_runs(state);
    state->arguments.scale = 1.0f / sqrtf((float)scene->head_dim);
    size_t floats = (size_t)state->row_count * row_floats(scene);
    state->queries = zeroed(floats, sizeof(float));
    for (size_t i = 0; i < floats; i++)
        state->queries[i] =
            (scene->query_size > 0 ? scene->query_size : 1) * 2 * simulated_noise(&seed);
    size_t pool_bytes = (size_t)(state->page_count + 1) * (size_t)scene->kv_heads *
                        kv_share_bytes(scene->kv, scene->head_dim);
    state->pool = zeroed(pool_bytes, 1);
    memset(state->pool, 0xff, pool_bytes);
    state->out_count = (size_t)state->row_count * (size_t)(heads_of(scene) * scene->head_dim);
    state->answer = zeroed(state->out_count, sizeof(double));
    for (int run = 0, row = 0; run < scene->run_count; run++) {
        fill_run(state, run, &seed);
        for (int i = 0; i < scene->runs[run].row_count; i++, row++)
            for (int head = 0; head < heads_of(scene); head++)
                answer_head(state, run, row, head,
                            state->answer + ((size_t)row * (size_t)heads_of(scene) + (size_t)head) *
                                                (size_t)scene->head_dim);
    }
    upload(state, pool_bytes);
}

void attention_scene_free(struct scene_state *state) {
    for (int run = 0; run < state->scene->run_count; run++) {
        free(state->keys[run]);
        free(state->values[run]);
    }
    free(state->positions);
    free(state->page_table);
    free(state->queries);
    free(state->pool);
    free(state->answer);
}

/* Appended to by the makers of tasks. */
struct task_list {
    struct attention_task *tasks;
    struct merge_task *merges;
    int64_t *states;
    int32_t *row_tasks;
    int task_count;
    int merge_count;
    int state_list_count;
    int64_t packed_rows;
    int64_t state_rows;
};

enum { TASKS_MAX = 4096 };

/* The packed rows of a run in tasks of at most `rows`; `split`: a task a span, merged after. */
static void add_run(struct task_list *list, const struct scene_state *state, int run, int row_first,
                    int rows, bool split) {
    const struct scene *scene = state->scene;
    const struct scene_run *r = &scene->runs[run];
    int all = r->row_count * scene->group;
    for (int packed = 0; packed < all; packed += rows) {
        int count = all - packed < rows ? all - packed : rows;
        struct attention_task task = {
            .pages = state->pages_first[run],
            .state = -1,
            .state_from = -1,
            .row_first = row_first,
            .packed_first = packed,
            .packed_count = count,
            .position_least = r->position_first + packed / scene->group,
            .position_most = r->position_first + (packed + count - 1) / scene->group,
            .key_count = state->key_count[run],
            .span_end = (state->key_count[run] + ATTENTION_SPAN - 1) / ATTENTION_SPAN,
        };
        cr_assert_lt(list->task_count + task.span_end + 1, TASKS_MAX);
        if (!split) {
            list->tasks[list->task_count++] = task;
            continue;
        }
        struct merge_task merge = {row_first, packed, count, task.span_end, list->state_list_count};
        for (int i = 0; i < count; i++) {
            list->row_tasks[2 * list->packed_rows] = list->merge_count;
            list->row_tasks[2 * list->packed_rows++ + 1] = i;
        }
        list->merges[list->merge_count++] = merge;
        for (int span = 0, end = task.span_end; span < end; span++) {
            task.span_first = span;
            task.span_end = span + 1;
            task.state = list->state_rows;
            list->states[list->state_list_count++] = list->state_rows;
            list->state_rows += count;
            list->tasks[list->task_count++] = task;
        }
    }
}

static const float *run_tasks(struct scene_state *state, const struct launch_config *config,
                              int rows, bool split, int grid) {
    const struct scene *scene = state->scene;
    struct simulated *device = state->device;
    struct task_list list = {.tasks = zeroed(TASKS_MAX, sizeof *list.tasks),
                             .merges = zeroed(TASKS_MAX, sizeof *list.merges),
                             .states = zeroed(TASKS_MAX, sizeof *list.states),
                             .row_tasks = zeroed(TASKS_MAX * 64, sizeof *list.row_tasks)};
    for (int run = 0, row = 0; run < scene->run_count; row += scene->runs[run++].row_count)
        add_run(&list, state, run, row, rows, split);
    struct attention_arguments a = state->arguments;
    size_t out_bytes = state->out_count * sizeof(float);
    size_t state_floats =
        (size_t)list.state_rows * (size_t)scene->kv_heads * (size_t)(scene->head_dim + 4);
    int64_t blocks = (int64_t)list.task_count * scene->kv_heads;
    blocks = grid > 0 && grid < blocks ? grid : blocks;
    a.out = simulated_upload(device, NULL, out_bytes);
    a.states = simulated_upload(device, NULL, state_floats * sizeof(float));
    a.scratch = simulated_upload(device, NULL, (size_t)blocks * (size_t)config->scratch_bytes);
    a.tasks = simulated_upload(device, list.tasks, (size_t)list.task_count * sizeof *list.tasks);
    a.task_count = list.task_count;
    simulated_launch(device, config, blocks, &a, sizeof a);
    struct merge_states_arguments merge = {
        .states = a.states,
        .state_list = simulated_upload(device, list.states,
                                       (size_t)list.state_list_count * sizeof *list.states),
        .tasks =
            simulated_upload(device, list.merges, (size_t)list.merge_count * sizeof *list.merges),
        .row_tasks = simulated_upload(device, list.row_tasks,
                                      (size_t)list.packed_rows * 2 * sizeof *list.row_tasks),
        .out = a.out,
        .packed_rows = list.packed_rows,
        .kv_heads = scene->kv_heads,
        .group = scene->group,
        .head_dim = scene->head_dim,
        .out_element = a.out_element,
    };
    if (split)
        simulated_launch(device, launch_config_find(KERNEL_MERGE_STATES),
                         (list.packed_rows * scene->kv_heads + 3) / 4, &merge, sizeof merge);
    free(list.tasks);
    free(list.merges);
    free(list.states);
    free(list.row_tasks);
    return simulated_view(device, a.out, out_bytes);
}

static const struct launch_config *config_of(const struct scene_state *state, bool decode) {
    const struct launch_config *config =
        launch_config_attention(launch_config_path(state->device->capability), decode,
                                state->scene->kv, state->scene->head_dim);
    cr_assert_not_null(config);
    return config;
}

const float *attention_scene_prefill(struct scene_state *state, int rows_a_task, int grid) {
    const struct launch_config *config = config_of(state, false);
    return run_tasks(state, config, rows_a_task ? rows_a_task : config->rows, false, grid);
}

const float *attention_scene_decode(struct scene_state *state, int grid) {
    const struct launch_config *config = config_of(state, true);
    return run_tasks(state, config, config->rows, true, grid);
}

const float *attention_scene_continue(struct scene_state *state, int span_count) {
    const struct launch_config *config = config_of(state, false);
    const struct scene *scene = state->scene;
    struct attention_task tasks[64];
    struct task_list list = {.tasks = tasks};
    struct attention_arguments a = state->arguments;
    for (int run = 0, row = 0; run < scene->run_count; row += scene->runs[run++].row_count)
        add_run(&list, state, run, row, config->rows, false);
    int64_t state_rows = 0;
    for (int i = 0; i < list.task_count; i++) {
        tasks[i].state = state_rows;
        state_rows += tasks[i].packed_count;
        tasks[i].span_end = span_count;
    }
    a.states = simulated_upload(state->device, NULL,
                                (size_t)(state_rows * scene->kv_heads * (scene->head_dim + 4)) *
                                    sizeof(float));
    a.scratch = simulated_upload(
        state->device, NULL, (size_t)(list.task_count * scene->kv_heads * config->scratch_bytes));
    a.task_count = list.task_count;
    a.tasks = simulated_upload(state->device, tasks, (size_t)list.task_count * sizeof *tasks);
    simulated_launch(state->device, config, (int64_t)list.task_count * scene->kv_heads, &a,
                     sizeof a);
    for (int i = 0; i < list.task_count; i++) {
        tasks[i].state_from = tasks[i].state;
        tasks[i].state = -1;
        tasks[i].span_first = span_count;
        tasks[i].span_end = tasks[i].key_count / ATTENTION_SPAN + 1;
    }
    a.out = simulated_upload(state->device, NULL, state->out_count * sizeof(float));
    a.tasks = simulated_upload(state->device, tasks, (size_t)list.task_count * sizeof *tasks);
    simulated_launch(state->device, config, (int64_t)list.task_count * scene->kv_heads, &a,
                     sizeof a);
    return simulated_view(state->device, a.out, state->out_count * sizeof(float));
}

double attention_scene_error(const struct scene_state *state, const float *out) {
    double *got = zeroed(state->out_count, sizeof *got);
    for (size_t i = 0; i < state->out_count; i++)
        got[i] = (double)out[i];
    double error = simulated_distance(state->answer, got, state->out_count);
    free(got);
    return error;
}
