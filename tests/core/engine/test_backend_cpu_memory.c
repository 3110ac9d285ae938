/* The CPU backend's memory: every failed allocation is an ordinary error, and once reserved a step
 * allocates nothing. */
#include "tests/core/engine/cpu_run.h"
#include "tests/support/failing_malloc.h"

static const struct random_model_shape shape = {.layers = 2,
                                                .width = 64,
                                                .heads = 4,
                                                .kv_heads = 2,
                                                .head_dim = 16,
                                                .ffn_width = 96,
                                                .vocab = 131,
                                                .pairing = ROPE_HALVES,
                                                .window = 70,
                                                .gate = GATE_SILU,
                                                .biases = true,
                                                .head_norms = true,
                                                .type = QUANT_Q8_0};

/* What a backend's pointer holds before it is created. */
static struct backend not_set;

static enum status open(struct thread_pool *pool, const struct model *model,
                        struct backend **backend) {
    struct cpu_features features = cpu_features_detect();
    struct backend_limits limits = cpu_run_limits(model, KV_INT8);
    struct error error = {0};
    TRY(backend_cpu_create(pool, &features, backend, &error));
    TRY((*backend)->ops->prepare(*backend, model, &error));
    return (*backend)->ops->reserve(*backend, &limits, &error);
}

Test(backend_cpu_memory, every_failed_allocation_is_an_error) {
    struct model *model = random_model_create(&shape, 1);
    struct thread_pool *pool;
    struct error error;
    cr_assert_eq(thread_pool_create(2, false, &pool, &error), STATUS_OK);
    bool reached = true;
    int failed = 0;
    for (int n = 1; reached; n++) {
        struct backend *backend = &not_set;
        failing_malloc_arm(n);
        enum status status = open(pool, model, &backend);
        reached = failing_malloc_disarm();
        cr_assert_eq(status, reached ? STATUS_NO_MEMORY : STATUS_OK, "allocation %d", n);
        failed += reached;
        cr_assert_neq(backend, &not_set, "allocation %d", n);
        if (backend != NULL)
            backend->ops->destroy(backend);
    }
    cr_expect_gt(failed, 1);
    thread_pool_destroy(pool);
    random_model_destroy(model);
}

Test(backend_cpu_memory, a_step_allocates_nothing) {
    struct model *model = random_model_create(&shape, 1);
    struct thread_pool *pool;
    struct backend *backend;
    struct error error;
    int32_t pages[4] = {3, 1, 0, 2};
    struct cpu_run_step step = {0};
    cr_assert_eq(thread_pool_create(2, false, &pool, &error), STATUS_OK);
    cr_assert_eq(open(pool, model, &backend), STATUS_OK);
    cpu_run_add(&step, model, 0, 0, 150, pages);
    failing_malloc_arm(1);
    cr_expect_eq(decoder_step(model, backend, &step.plan, &error), STATUS_OK);
    cr_expect(!failing_malloc_disarm(), "a step allocates");
    backend->ops->destroy(backend);
    thread_pool_destroy(pool);
    random_model_destroy(model);
}
