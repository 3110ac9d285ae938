/* Dense attention in all its variants, and its gradients, on every instruction set: against double,
 * and the double gradients against finite differences. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu_features.h"
#include "core/kernels/attention_backward.h"
#include "core/kernels/attention_variants.h"
#include "tests/support/dense_oracle.h"
#include "tests/support/failing_malloc.h"

static const struct attention_dense_sequence single[] = {{70, 70, 0, 0}};
static const struct attention_dense_sequence mixed[] = {
    {1, 131, 0, 0}, {65, 200, 1, 131}, {3, 3, 66, 331}};
static const struct attention_dense_sequence decode[] = {{1, 64, 0, 0}, {1, 65, 1, 64}};

static const struct attention_dense_shape shapes[] = {
    {2, 2, 64, true, 0, 0.125f, 0, single, 1},   {6, 2, 80, true, 0, 0.11f, 0, mixed, 3},
    {4, 1, 128, true, 17, 0.09f, 0, mixed, 3},   {2, 1, 256, true, 0, 0.06f, 2, single, 1},
    {3, 3, 20, false, 0, 0.2f, 0, mixed, 3},     {8, 2, 64, true, 0, 0.125f, 0, decode, 2},
    {2, 1, 16, false, 0, 0.25f, 1.5f, single, 1}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static struct thread_pool *pool_of(int threads) {
    struct thread_pool *pool;
    struct error error;
    cr_assert_eq(thread_pool_create(threads, false, &pool, &error), STATUS_OK);
    return pool;
}

static const struct attention_dense_kernels *dense_at(size_t index) {
    struct cpu_features features = cpu_features_detect();
    const struct attention_dense_kernels *dense = attention_dense_variant_at(index);
    return dense->available(&features) ? dense : NULL;
}

static struct attention_variants variants_of(const struct dense_scene *scene,
                                             const struct attention_dense_kernels *dense) {
    struct cpu_features features = cpu_features_detect();
    return (struct attention_variants){
        .shape = &scene->shape,
        .dense = dense,
        .elementwise = kernels_select(&features).elementwise,
        .queries = scene->queries,
        .keys = scene->keys,
        .values = scene->values,
        .queries_bf16 = scene->queries_bf16,
        .keys_bf16 = scene->keys_bf16,
        .values_bf16 = scene->values_bf16,
        .out = calloc(scene->query_values, sizeof(float)),
        .log_sums = calloc(scene->query_values, sizeof(float)),
    };
}

static void forward(struct attention_variants *variants, enum attention_variant variant,
                    struct thread_pool *pool) {
    struct error error;
    cr_assert_eq(attention_variants_open(variants, variant, thread_pool_count(pool), &error),
                 STATUS_OK);
    attention_variants_run(variants, variant, pool);
    attention_variants_close(variants);
}

static double worst(const float *found, const double *expected, size_t count) {
    double most = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        double off = fabs((double)found[i] - expected[i]);
        most = off > most || isnan(off) ? off : most;
        size = fmax(size, fabs(expected[i]));
    }
    return most / (size + 1e-30);
}

Test(attention_variants, all_compute_attention) {
    struct thread_pool *pool = pool_of(2);
    for (int s = 0; s < SHAPES; s++) {
        struct dense_scene scene;
        dense_oracle_init(&scene, &shapes[s], (uint64_t)s + 1);
        struct dense_results expected = {.out = calloc(scene.query_values, sizeof(double))};
        dense_oracle_run(&scene, &expected);
        for (size_t v = 0; v < attention_dense_variant_count(); v++)
            for (int way = 0; way < ATTENTION_VARIANT_COUNT && dense_at(v) != NULL; way++) {
                struct attention_variants variants = variants_of(&scene, dense_at(v));
                forward(&variants, way, pool);
                double off = worst(variants.out, expected.out, scene.query_values);
                cr_expect(off < 3e-6, "shape %d, %s, %s: off by %g", s,
                          attention_variants_name(way), dense_at(v)->name, off);
                free(variants.out);
                free(variants.log_sums);
            }
        free(expected.out);
        dense_oracle_deinit(&scene);
    }
    thread_pool_destroy(pool);
}

Test(attention_variants, passes_are_counted) {
    static const int passes[ATTENTION_VARIANT_COUNT] = {5, 6, 11, 1};
    struct thread_pool *pool = pool_of(1);
    struct dense_scene scene;
    dense_oracle_init(&scene, &shapes[0], 1);
    for (int way = 0; way < ATTENTION_VARIANT_COUNT; way++) {
        struct attention_variants variants =
            variants_of(&scene, dense_at(attention_dense_variant_count() - 1));
        forward(&variants, way, pool);
        cr_expect_eq(variants.passes, passes[way], "%s: %d", attention_variants_name(way),
                     variants.passes);
        free(variants.out);
        free(variants.log_sums);
    }
    dense_oracle_deinit(&scene);
    thread_pool_destroy(pool);
}

static struct dense_results make_results(const struct dense_scene *scene) {
    return (struct dense_results){
        .out = calloc(scene->query_values, sizeof(double)),
        .query_gradient = calloc(scene->query_values, sizeof(double)),
        .key_gradient = calloc(scene->key_values, sizeof(double)),
        .value_gradient = calloc(scene->key_values, sizeof(double)),
    };
}

static void free_results(struct dense_results *results) {
    free(results->out);
    free(results->query_gradient);
    free(results->key_gradient);
    free(results->value_gradient);
}

/* The slope of the loss along one input. */
static double slope_along(struct dense_scene *scene, float *input) {
    struct dense_results moved = {.out = calloc(scene->query_values, sizeof(double))};
    const float step = 0x1p-10f, kept = *input;
    *input = kept + step;
    dense_oracle_run(scene, &moved);
    double above = dense_oracle_loss(scene, moved.out);
    *input = kept - step;
    dense_oracle_run(scene, &moved);
    double below = dense_oracle_loss(scene, moved.out);
    *input = kept;
    free(moved.out);
    return (above - below) / (2 * (double)step);
}

Test(attention_backward, double_gradients_are_finite_differences) {
    for (int s = 0; s < SHAPES; s++) {
        struct dense_scene scene;
        dense_oracle_init(&scene, &shapes[s], (uint64_t)s + 11);
        struct dense_results exact = make_results(&scene);
        dense_oracle_run(&scene, &exact);
        int dim = attention_dense_dim(shapes[s].head_dim);
        for (size_t i = 3; i < 3000; i = 3 * i + 7) {
            size_t q = i % scene.query_values / dim * dim + i % (size_t)shapes[s].head_dim;
            size_t k = i % scene.key_values / dim * dim + i % (size_t)shapes[s].head_dim;
            double query = slope_along(&scene, &scene.queries[q]);
            double key = slope_along(&scene, &scene.keys[k]);
            double value = slope_along(&scene, &scene.values[k]);
            cr_expect_float_eq(query, exact.query_gradient[q], 2e-6, "shape %d dQ %zu", s, q);
            cr_expect_float_eq(key, exact.key_gradient[k], 2e-6, "shape %d dK %zu", s, k);
            cr_expect_float_eq(value, exact.value_gradient[k], 2e-6, "shape %d dV %zu", s, k);
        }
        free_results(&exact);
        dense_oracle_deinit(&scene);
    }
}

/* The gradients by the kernels, behind the tiled forward pass. */
struct gradients {
    float *query, *key, *value;
};

static struct gradients backward(const struct dense_scene *scene,
                                 const struct attention_dense_kernels *dense,
                                 struct thread_pool *pool, bool joint) {
    struct gradients gradients = {calloc(scene->query_values, sizeof(float)),
                                  calloc(scene->key_values, sizeof(float)),
                                  calloc(scene->key_values, sizeof(float))};
    struct attention_variants variants = variants_of(scene, dense);
    forward(&variants, ATTENTION_TILED, pool);
    struct attention_backward pass = {
        .shape = &scene->shape,
        .dense = dense,
        .elementwise = variants.elementwise,
        .queries = scene->queries,
        .keys = scene->keys,
        .values = scene->values,
        .out = variants.out,
        .log_sums = variants.log_sums,
        .out_gradient = scene->out_gradient,
        .query_gradient = gradients.query,
        .key_gradient = gradients.key,
        .value_gradient = gradients.value,
    };
    struct error error;
    cr_assert_eq(attention_backward_open(&pass, thread_pool_count(pool), &error), STATUS_OK);
    attention_backward_run(&pass, pool, joint);
    cr_expect_eq(pass.passes, joint ? 2 : 3);
    attention_backward_close(&pass);
    free(variants.out);
    free(variants.log_sums);
    return gradients;
}

static void free_gradients(struct gradients *gradients) {
    free(gradients->query);
    free(gradients->key);
    free(gradients->value);
}

Test(attention_backward, gradients_are_those_in_double) {
    struct thread_pool *pool = pool_of(2);
    for (int s = 0; s < SHAPES; s++) {
        struct dense_scene scene;
        dense_oracle_init(&scene, &shapes[s], (uint64_t)s + 21);
        struct dense_results exact = make_results(&scene);
        dense_oracle_run(&scene, &exact);
        for (size_t v = 0; v < attention_dense_variant_count(); v++) {
            if (dense_at(v) == NULL)
                continue;
            struct gradients found = backward(&scene, dense_at(v), pool, true);
            const char *name = dense_at(v)->name;
            double query = worst(found.query, exact.query_gradient, scene.query_values);
            double key = worst(found.key, exact.key_gradient, scene.key_values);
            double value = worst(found.value, exact.value_gradient, scene.key_values);
            cr_expect(query < 1e-5, "shape %d, %s: dQ is off by %g", s, name, query);
            cr_expect(key < 1e-5, "shape %d, %s: dK is off by %g", s, name, key);
            cr_expect(value < 1e-5, "shape %d, %s: dV is off by %g", s, name, value);
            free_gradients(&found);
        }
        free_results(&exact);
        dense_oracle_deinit(&scene);
    }
    thread_pool_destroy(pool);
}

Test(attention_backward, bits_depend_on_neither_threads_nor_tasks) {
    struct thread_pool *one = pool_of(1), *three = pool_of(3);
    struct cpu_features features = cpu_features_detect();
    const struct attention_dense_kernels *dense = attention_dense_select(&features);
    for (int s = 0; s < SHAPES; s++) {
        struct dense_scene scene;
        dense_oracle_init(&scene, &shapes[s], (uint64_t)s + 31);
        struct gradients a = backward(&scene, dense, one, true);
        struct gradients b = backward(&scene, dense, three, false);
        cr_expect_arr_eq(a.query, b.query, scene.query_values * sizeof(float), "shape %d", s);
        cr_expect_arr_eq(a.key, b.key, scene.key_values * sizeof(float), "shape %d", s);
        cr_expect_arr_eq(a.value, b.value, scene.key_values * sizeof(float), "shape %d", s);
        free_gradients(&a);
        free_gradients(&b);
        dense_oracle_deinit(&scene);
    }
    thread_pool_destroy(one);
    thread_pool_destroy(three);
}

Test(attention_variants, every_failed_allocation_is_an_error) {
    struct dense_scene scene;
    dense_oracle_init(&scene, &shapes[1], 1);
    bool reached = true;
    for (int n = 1; reached; n++) {
        struct attention_variants variants = {.shape = &scene.shape};
        struct attention_backward pass = {.shape = &scene.shape};
        struct error error;
        failing_malloc_arm(n);
        enum status status = attention_variants_open(&variants, ATTENTION_UNFUSED, 2, &error);
        if (status == STATUS_OK)
            status = attention_backward_open(&pass, 2, &error);
        reached = failing_malloc_disarm();
        attention_variants_close(&variants);
        attention_backward_close(&pass);
        cr_assert_eq(status, reached ? STATUS_NO_MEMORY : STATUS_OK, "allocation %d", n);
    }
    dense_oracle_deinit(&scene);
}
