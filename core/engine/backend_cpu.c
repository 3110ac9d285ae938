/* The CPU backend's table of ops, its life and its steps. */
#include "core/engine/backend_cpu.h"

#include <assert.h>
#include <stdlib.h>

#include "core/engine/backend_cpu_state.h"

static const char *numerics(const struct backend *backend) {
    const struct backend_cpu *cpu = (const void *)backend;
    return cpu->kernels.numerics;
}

static enum kv_type kv_type(const struct backend *backend) {
    (void)backend;
    return KV_BF16;
}

/* Denormals are flushed here too: the caller's thread is worker 0. */
static enum status begin_step(struct backend *backend, const struct step_plan *plan,
                              struct error *error) {
    (void)error;
    struct backend_cpu *cpu = backend_cpu_of(backend);
    assert(plan->row_count > 0 && plan->row_count <= cpu->limits.row_count_max);
    assert(plan->run_count <= cpu->limits.run_count_max);
    assert(plan->sample_count <= cpu->limits.sample_count_max);
    thread_pool_set_float_mode();
    cpu->plan = plan;
    backend_cpu_attention_begin(cpu);
    backend_cpu_stream_begin_step(cpu);
    return STATUS_OK;
}

/* What the kernels keep in the processor the workers give back before they sleep; the caller goes
 * on to other work. */
static enum status end_step(struct backend *backend, struct error *error) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    cpu->plan = NULL;
    if (cpu->kernels.linear->release != NULL)
        cpu->kernels.linear->release();
    return backend_cpu_stream_end_step(cpu, error);
}

static const float *logits_view(const struct backend *backend) {
    const struct backend_cpu *cpu = (const void *)backend;
    return cpu->scratch.logits;
}

static void destroy(struct backend *backend) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    thread_pool_before_sleep(cpu->pool, NULL);
    backend_cpu_weights_release(cpu);
    backend_cpu_memory_release(cpu);
    tile_cache_destroy(cpu->cache);
    free(cpu);
}

static const struct backend_ops ops = {
    .numerics = numerics,
    .kv_type = kv_type,
    .memory = backend_cpu_memory_need,
    .prepare = backend_cpu_weights_prepare,
    .reserve = backend_cpu_memory_reserve,
    .begin_step = begin_step,
    .embed = backend_cpu_rows_embed,
    .norm = backend_cpu_rows_norm,
    .linear = backend_cpu_linear,
    .kv_write = backend_cpu_attention_write,
    .attention = backend_cpu_attention_run,
    .activation = backend_cpu_rows_activation,
    .add_residual = backend_cpu_rows_add_residual,
    .logits = backend_cpu_linear_logits,
    .end_step = end_step,
    .logits_view = logits_view,
    .destroy = destroy,
};

enum status backend_cpu_create_with(struct thread_pool *pool, const struct kernels *kernels,
                                    struct backend **backend, struct error *error) {
    struct backend_cpu *cpu = calloc(1, sizeof *cpu);
    *backend = NULL;
    if (cpu == NULL)
        return error_no_memory(error, "the CPU backend");
    cpu->base.ops = &ops;
    cpu->pool = pool;
    cpu->worker_count = thread_pool_count(pool);
    cpu->kernels = *kernels;
    thread_pool_before_sleep(pool, kernels->linear->release);
    *backend = &cpu->base;
    return STATUS_OK;
}

enum status backend_cpu_use_cache(struct backend *backend, const struct tile_cache_options *options,
                                  struct error *error) {
    return tile_cache_create(options, &backend_cpu_of(backend)->cache, error);
}

enum status backend_cpu_create(struct thread_pool *pool, const struct cpu_features *features,
                               struct backend **backend, struct error *error) {
    struct kernels kernels = kernels_select(features);
    return backend_cpu_create_with(pool, &kernels, backend, error);
}
