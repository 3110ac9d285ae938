/* A step's attention for the kernel tests: sequences with keys and values in scattered pages, the
 * answer in double from the values that the pages hold, and the kernels' answers by prefill tasks
 * or by decode tasks with merged states. Slots behind a sequence's last key hold NaN. */
#ifndef TESTS_GPU_ATTENTION_SCENE_H
#define TESTS_GPU_ATTENTION_SCENE_H

#include "tests/gpu/simulated.h"

enum { SCENE_RUNS_MAX = 8 };

struct scene_run {
    int position_first; /* may be negative: rows without a key */
    int row_count;
};

struct scene {
    enum kv_element kv;
    int head_dim;
    int kv_heads;
    int group;
    int window;
    float softcap;
    float query_size; /* 0: 1 */
    int run_count;
    struct scene_run runs[SCENE_RUNS_MAX];
};

struct scene_state {
    const struct scene *scene;
    struct simulated *device;
    int row_count;
    int page_count;
    size_t out_count; /* row_count × heads × head_dim */
    int32_t *positions;
    int32_t *page_table;
    int pages_first[SCENE_RUNS_MAX];
    int key_count[SCENE_RUNS_MAX];
    float *queries;               /* [row][heads + 2 kv_heads][head_dim], like QKV */
    uint8_t *pool;                /* pages × kv_heads shares */
    double *keys[SCENE_RUNS_MAX]; /* [key][kv_head][head_dim], as the pages hold them */
    double *values[SCENE_RUNS_MAX];
    double *answer;                       /* [out_count] */
    struct attention_arguments arguments; /* on the device; tasks missing */
};

void attention_scene_build(struct scene_state *state, const struct scene *scene,
                           struct simulated *device);
void attention_scene_free(struct scene_state *state);

/* fp32 outputs [out_count], as bits and numbers; NaN where nothing was written. Valid until the
 * device is destroyed. rows_a_task: at most so many packed rows a task (0: the tile's). */
const float *attention_scene_prefill(struct scene_state *state, int rows_a_task, int grid);
const float *attention_scene_decode(struct scene_state *state, int grid);
/* The first span_count spans by tasks of their own, whose states the rest continues from. Every row
 * must lie behind those spans. */
const float *attention_scene_continue(struct scene_state *state, int span_count);

/* Relative L2 distance from the answer. */
double attention_scene_error(const struct scene_state *state, const float *out);

#endif
