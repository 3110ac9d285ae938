/* A backend over pages that remember (fake_device.h): logits are a hash of all a row sees, so the
 * decoder, the plan and the sampler are real and every token is checkable. A poisoned token makes a
 * NaN; any begin or end of a step can be made to fail. */
#ifndef TESTS_CORE_ENGINE_FAKE_BACKEND_H
#define TESTS_CORE_ENGINE_FAKE_BACKEND_H

#include <math.h>

#include "core/model/backend.h"
#include "tests/core/engine/fake_device.h"

enum { VOCAB = 251, POISON = 250, PAGE_BYTES = 1000 };

struct fake_backend {
    struct backend base;
    struct fake_device device;
    const struct step_plan *plan;
    float *logits;
    int calls, fail_call; /* begin and end of steps; the fail_call-th fails */
    int kv_writes;
};

static const char *fake_numerics(const struct backend *backend) {
    (void)backend;
    return "fake";
}

static struct backend_memory fake_memory(const struct backend *backend, const struct model *model,
                                         const struct backend_limits *limits) {
    struct backend_memory memory = {0};
    (void)backend, (void)limits;
    for (int group = 0; group < model->kv_group_count; group++)
        memory.kv_page[group] = PAGE_BYTES;
    return memory;
}

static enum status fake_reserve(struct backend *base, const struct backend_limits *limits,
                                struct error *error) {
    struct fake_backend *backend = (struct fake_backend *)base;
    (void)error;
    for (int group = 0; group < backend->device.group_count; group++)
        backend->device.page_count[group] = limits->page_count_max[group];
    fake_open(&backend->device);
    backend->logits = calloc((size_t)limits->sample_count_max * VOCAB, sizeof(float));
    if (!backend->logits || !backend->device.cells[0] || !backend->device.cells[1])
        return STATUS_NO_MEMORY;
    return STATUS_OK;
}

static enum status fake_call(struct fake_backend *backend, struct error *error) {
    if (++backend->calls == backend->fail_call)
        return error_set(error, STATUS_DEVICE, "the device is gone");
    return STATUS_OK;
}

static enum status fake_begin(struct backend *base, const struct step_plan *plan,
                              struct error *error) {
    struct fake_backend *backend = (struct fake_backend *)base;
    backend->plan = plan;
    return fake_call(backend, error);
}

static void fake_linear(struct backend *base, const struct linear *linear, enum activation from,
                        enum activation to) {
    (void)base, (void)linear, (void)from, (void)to;
}

static void fake_attention(struct backend *base, const struct op_attention *op) {
    (void)base, (void)op;
}

static void fake_kv_write(struct backend *base, const struct op_attention *op) {
    (void)op;
    ((struct fake_backend *)base)->kv_writes++;
}

static void fill_logits(float *logits, uint64_t value, bool poisoned) {
    for (int token = 0; token < VOCAB; token++)
        logits[token] = (float)(fake_mix(value, (uint64_t)token) >> 40) / (float)(1 << 21);
    logits[POISON] = poisoned ? NAN : -INFINITY;
}

/* Rows of a run write before they read, and a masked NaN is a NaN: a poisoned token spoils its own
 * row and those before it in the step. */
static bool is_poisoned(const struct step_plan *plan, int row) {
    int run = 0;
    while (row >= plan->runs[run].row_first + plan->runs[run].row_count)
        run++;
    bool poisoned = false;
    for (int end = plan->runs[run].row_first + plan->runs[run].row_count; row < end; row++)
        poisoned |= plan->tokens[row] == POISON;
    return poisoned;
}

static void fake_logits(struct backend *base, const struct op_logits *op) {
    struct fake_backend *backend = (struct fake_backend *)base;
    const struct step_plan *plan = backend->plan;
    uint64_t values[512];
    (void)op;
    fake_compute(&backend->device, plan, values);
    for (int i = 0; i < plan->sample_count; i++)
        fill_logits(backend->logits + (size_t)i * VOCAB, values[i],
                    is_poisoned(plan, plan->sample_rows[i]));
}

static enum status fake_end(struct backend *base, struct error *error) {
    return fake_call((struct fake_backend *)base, error);
}

static const float *fake_logits_view(const struct backend *base) {
    return ((const struct fake_backend *)base)->logits;
}

static const struct backend_ops fake_ops = {
    .numerics = fake_numerics,
    .memory = fake_memory,
    .reserve = fake_reserve,
    .begin_step = fake_begin,
    .linear = fake_linear,
    .kv_write = fake_kv_write,
    .attention = fake_attention,
    .logits = fake_logits,
    .end_step = fake_end,
    .logits_view = fake_logits_view,
};

#endif
