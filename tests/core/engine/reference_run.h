/* A model with the float64 reference on it, and the shortest way from ids to logits. */
#ifndef TESTS_CORE_ENGINE_REFERENCE_RUN_H
#define TESTS_CORE_ENGINE_REFERENCE_RUN_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/backend_reference.h"
#include "core/engine/verify.h"
#include "core/model/decoder.h"

struct reference_run {
    struct thread_pool *pool;
    struct model *model;
    struct backend *backend;
    int32_t *numbers; /* 0, 1, 2, ...: pages and rows */
};

static inline void reference_run_open(struct reference_run *run, const char *path,
                                      const char *architecture, int threads) {
    struct error error = {0};
    *run = (struct reference_run){0};
    cr_assert_eq(thread_pool_create(threads, false, &run->pool, &error), STATUS_OK);
    cr_assert_eq(model_open(path, architecture, &run->model, &error), STATUS_OK, "%s", error.text);
    cr_assert_eq(backend_reference_create(run->pool, &run->backend, &error), STATUS_OK);
    cr_assert_eq(run->backend->ops->prepare(run->backend, run->model, &error), STATUS_OK);
}

static inline void reference_run_reserve(struct reference_run *run,
                                         const struct backend_limits *limits) {
    struct error error = {0};
    cr_assert_eq(run->backend->ops->reserve(run->backend, limits, &error), STATUS_OK, "%s",
                 error.text);
    int count = limits->context_max + limits->row_count_max;
    run->numbers = malloc((size_t)count * sizeof *run->numbers);
    for (int32_t i = 0; i < count; i++)
        run->numbers[i] = i;
}

static inline void reference_run_close(struct reference_run *run) {
    run->backend->ops->destroy(run->backend);
    model_close(run->model);
    thread_pool_destroy(run->pool);
    free(run->numbers);
}

static inline void reference_run_step(struct reference_run *run, const struct step_plan *plan) {
    struct error error = {0};
    cr_assert_eq(decoder_step(run->model, run->backend, plan, &error), STATUS_OK, "%s", error.text);
}

/* Logits of all positions, [count][vocab], computed `chunk` rows a step on pages 0, 1, ... */
static inline float *reference_run_logits(struct reference_run *run, const int32_t *ids, int count,
                                          int chunk) {
    struct backend_limits limits = verify_limits(run->model, count, chunk, KV_F64);
    size_t width = (size_t)run->model->vocab_count;
    float *logits = malloc((size_t)count * width * sizeof *logits);
    reference_run_reserve(run, &limits);
    for (int first = 0; first < count; first += chunk) {
        int rows = count - first < chunk ? count - first : chunk;
        struct step_run step = {.row_count = rows, .position_first = first};
        for (int group = 0; group < MODEL_KV_GROUPS_MAX; group++)
            step.pages[group] = run->numbers;
        struct step_plan plan = {rows, ids + first, 1, &step, rows, run->numbers};
        reference_run_step(run, &plan);
        memcpy(logits + (size_t)first * width, run->backend->ops->logits_view(run->backend),
               (size_t)rows * width * sizeof *logits);
    }
    return logits;
}

#endif
