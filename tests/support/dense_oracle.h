/* Dense attention and its gradients in double, one row after the other. */
#ifndef TESTS_SUPPORT_DENSE_ORACLE_H
#define TESTS_SUPPORT_DENSE_ORACLE_H

#include <stdint.h>

#include "core/kernels/attention_dense.h"

/* Inputs in bf16 values, in the three forms that the variants take. */
struct dense_scene {
    struct attention_dense_shape shape;
    size_t query_values, key_values;
    float *queries, *keys, *values, *out_gradient;
    uint16_t *queries_bf16, *keys_bf16, *values_bf16;
};

void dense_oracle_init(struct dense_scene *scene, const struct attention_dense_shape *shape,
                       uint64_t seed);
void dense_oracle_deinit(struct dense_scene *scene);

/* out: [query_values]; gradients NULL or [query_values], [key_values], [key_values]. */
struct dense_results {
    double *out, *query_gradient, *key_gradient, *value_gradient;
};
void dense_oracle_run(const struct dense_scene *scene, struct dense_results *results);

/* Σ out × out_gradient: what the gradients are of. */
double dense_oracle_loss(const struct dense_scene *scene, const double *out);

#endif
