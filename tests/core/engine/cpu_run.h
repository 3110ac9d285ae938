/* The CPU backend on a model, and schedules to run it by: some sequences, cut into chunks and mixed
 * at random, on pages of random numbers. */
#ifndef TESTS_CORE_ENGINE_CPU_RUN_H
#define TESTS_CORE_ENGINE_CPU_RUN_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/backend_cpu.h"
#include "core/engine/backend_reference.h"
#include "core/model/decoder.h"
#include "tests/support/random_model.h"
#include "tests/support/random_tensor.h"

enum { CPU_RUN_ROWS = 200, CPU_RUN_SEQUENCES = 6, CPU_RUN_PAGES = 200, CPU_RUN_CONTEXT = 2048 };

struct cpu_run {
    struct thread_pool *pool;
    const struct model *model;
    struct backend *backend;
};

/* What to run, and how. */
struct cpu_course {
    int sequence_count;
    int lengths[CPU_RUN_SEQUENCES];
    uint64_t seed; /* of chunks, mixture and page numbers; tokens depend on the sequence alone */
    int chunk_max; /* rows of a run */
    int common;    /* tokens all sequences begin with, whole pages */
    bool share;    /* ... and compute once, in pages that all of them use */
    int threads;
    enum kv_type kv_type;
    bool reference; /* the float64 backend */
    int guesses;    /* each run is first computed with so many rows of token 0 behind it */
    bool soil;      /* first fill all pages with NaN, by a sequence of token 0 with a NaN row */
};

static inline int32_t cpu_run_token(const struct model *model, int sequence, int position) {
    uint64_t state = (uint64_t)(sequence * 100003 + position);
    return 1 + (int32_t)(random_tensor_next(&state) % (uint64_t)(model->vocab_count - 1));
}

static inline struct backend_limits cpu_run_limits(const struct model *model,
                                                   enum kv_type kv_type) {
    struct backend_limits limits = {.row_count_max = CPU_RUN_ROWS,
                                    .run_count_max = CPU_RUN_SEQUENCES,
                                    .sample_count_max = CPU_RUN_ROWS,
                                    .context_max = CPU_RUN_CONTEXT,
                                    .kv_type = kv_type};
    for (int i = 0; i < model->kv_group_count; i++)
        limits.page_count_max[i] = CPU_RUN_PAGES;
    return limits;
}

static inline void cpu_run_open(struct cpu_run *run, const struct model *model,
                                const struct kernels *kernels, const struct cpu_course *course) {
    struct error error = {0};
    struct backend_limits limits =
        cpu_run_limits(model, course->reference ? KV_F64 : course->kv_type);
    run->model = model;
    cr_assert_eq(thread_pool_create(course->threads, false, &run->pool, &error), STATUS_OK);
    if (course->reference)
        cr_assert_eq(backend_reference_create(run->pool, &run->backend, &error), STATUS_OK);
    else
        cr_assert_eq(backend_cpu_create_with(run->pool, kernels, &run->backend, &error), STATUS_OK);
    cr_assert_eq(run->backend->ops->prepare(run->backend, model, &error), STATUS_OK, "%s",
                 error.text);
    cr_assert_eq(run->backend->ops->reserve(run->backend, &limits, &error), STATUS_OK, "%s",
                 error.text);
}

static inline void cpu_run_close(struct cpu_run *run) {
    run->backend->ops->destroy(run->backend);
    thread_pool_destroy(run->pool);
}

/* A step's plan under construction. */
struct cpu_run_step {
    struct step_plan plan;
    int common; /* tokens that are those of sequence 0 */
    struct step_run runs[CPU_RUN_SEQUENCES];
    int32_t tokens[CPU_RUN_ROWS];
    int32_t rows[CPU_RUN_ROWS];
};

static inline void cpu_run_add(struct cpu_run_step *step, const struct model *model, int sequence,
                               int first, int count, const int32_t *pages) {
    struct step_run *run = &step->runs[step->plan.run_count++];
    *run = (struct step_run){.sequence = sequence,
                             .row_first = step->plan.row_count,
                             .row_count = count,
                             .position_first = first};
    for (int i = 0; i < model->kv_group_count; i++)
        run->pages[i] = pages;
    for (int i = 0; i < count; i++) {
        int row = step->plan.row_count++;
        int source = sequence > 0 && first + i < step->common ? 0 : sequence;
        step->tokens[row] = source < 0 ? 0 : cpu_run_token(model, source, first + i);
        step->rows[row] = row;
    }
    step->plan.tokens = step->tokens;
    step->plan.runs = step->runs;
    step->plan.sample_rows = step->rows;
    step->plan.sample_count = step->plan.row_count;
}

static inline void cpu_run_compute(struct cpu_run *run, const struct cpu_run_step *step) {
    struct error error = {0};
    cr_assert_eq(decoder_step(run->model, run->backend, &step->plan, &error), STATUS_OK);
}

/* The step with guesses behind every run, all of them wrong; the step itself is to undo it. */
static inline void cpu_run_mislead(struct cpu_run *run, struct cpu_run_step *step, int guesses) {
    struct cpu_run_step wrong = {.common = step->common};
    for (int i = 0; i < step->plan.run_count; i++) {
        struct step_run *part = &step->runs[i];
        cpu_run_add(&wrong, run->model, part->sequence, part->position_first, part->row_count,
                    part->pages[0]);
        wrong.runs[i].row_count += guesses;
        wrong.plan.row_count += guesses; /* their tokens are 0 already */
        part->stale_count = guesses;
    }
    for (int row = 0; row < wrong.plan.row_count; row++)
        wrong.rows[row] = row;
    wrong.plan.sample_count = wrong.plan.row_count;
    cpu_run_compute(run, &wrong);
}

/* Sequence s has the pages from CPU_RUN_CONTEXT / 64 × s on. */
static inline void cpu_run_soil(struct cpu_run *run, const int32_t *pages, int length) {
    for (int first = 0; first < length; first += KV_PAGE_TOKENS) {
        struct cpu_run_step step = {0};
        cpu_run_add(&step, run->model, -1, 0, KV_PAGE_TOKENS, pages + first / KV_PAGE_TOKENS);
        cpu_run_compute(run, &step);
    }
}

static inline void cpu_run_shuffle(int32_t *numbers, int count, uint64_t *seed) {
    for (int i = 0; i < count; i++) {
        int other = (int)(random_tensor_next(seed) % (uint64_t)(i + 1));
        numbers[i] = numbers[other];
        numbers[other] = i;
    }
}

/* Pages of the sequences: all different, but for those of a shared beginning. */
static inline void cpu_run_number_pages(int32_t *pages, struct cpu_course *course) {
    cpu_run_shuffle(pages, CPU_RUN_PAGES, &course->seed);
    for (int s = 1; course->share && s < course->sequence_count; s++)
        memcpy(pages + s * CPU_RUN_CONTEXT / KV_PAGE_TOKENS, pages,
               (size_t)(course->common / KV_PAGE_TOKENS) * sizeof *pages);
}

/* Runs of random size of the sequences in random order; while a shared beginning is not complete,
 * of sequence 0 alone. */
static inline void cpu_run_fill(struct cpu_run_step *step, const struct model *model,
                                struct cpu_course *course, int *done, const int32_t *pages) {
    int order[CPU_RUN_SEQUENCES] = {0};
    bool beginning = course->share && done[0] < course->common;
    for (int i = 0; i < CPU_RUN_SEQUENCES; i++)
        order[i] = i;
    if (!beginning)
        cpu_run_shuffle(order, course->sequence_count, &course->seed);
    for (int i = 0; i < (beginning ? 1 : course->sequence_count); i++) {
        int s = order[i], rest = course->lengths[s] - done[s];
        int count = (int)(random_tensor_next(&course->seed) % (uint64_t)(course->chunk_max + 1));
        int room = CPU_RUN_ROWS - step->plan.row_count;
        count = count < rest ? count : rest;
        count = count < room ? count : room;
        if (count > 0)
            cpu_run_add(step, model, s, done[s], count,
                        pages + s * CPU_RUN_CONTEXT / KV_PAGE_TOKENS);
        done[s] += count;
    }
}

/* Logits of every position of all sequences, one after another: [sum of lengths][vocab]; zero where
 * a shared beginning was not computed again. */
static inline float *cpu_run_logits_on(struct cpu_run *run, struct cpu_course course) {
    const struct model *model = run->model;
    int32_t pages[CPU_RUN_PAGES];
    int done[CPU_RUN_SEQUENCES] = {0}, starts[CPU_RUN_SEQUENCES], total = 0, left = 0;
    cpu_run_number_pages(pages, &course);
    for (int i = 0; i < course.sequence_count; i++) {
        starts[i] = total, total += course.lengths[i];
        done[i] = course.share && i > 0 ? course.common : 0;
        left += course.lengths[i] - done[i];
        if (course.soil)
            cpu_run_soil(run, pages + i * CPU_RUN_CONTEXT / KV_PAGE_TOKENS, course.lengths[i]);
    }
    size_t vocab = (size_t)model->vocab_count;
    float *logits = calloc((size_t)total * vocab, sizeof *logits);
    while (left > 0) {
        struct cpu_run_step step = {.common = course.common};
        cpu_run_fill(&step, model, &course, done, pages);
        left -= step.plan.row_count;
        if (step.plan.row_count == 0)
            continue;
        if (course.guesses > 0)
            cpu_run_mislead(run, &step, course.guesses);
        cpu_run_compute(run, &step);
        const float *view = run->backend->ops->logits_view(run->backend);
        for (int i = 0; i < step.plan.run_count; i++) {
            const struct step_run *part = &step.runs[i];
            memcpy(logits + (size_t)(starts[part->sequence] + part->position_first) * vocab,
                   view + (size_t)part->row_first * vocab,
                   (size_t)part->row_count * vocab * sizeof *logits);
        }
    }
    return logits;
}

/* The same on a backend of its own. */
static inline float *cpu_run_logits(const struct model *model, const struct kernels *kernels,
                                    struct cpu_course course) {
    struct cpu_run run;
    cpu_run_open(&run, model, kernels, &course);
    float *logits = cpu_run_logits_on(&run, course);
    cpu_run_close(&run);
    return logits;
}

#endif
