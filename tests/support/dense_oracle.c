/* Straight from the definitions; the probabilities of a row are kept while its gradients are added.
 * Inputs are bf16 values, so that variants over bf16 and over fp32 tensors see the same numbers. */
#include "tests/support/dense_oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/weights/quant_type.h"
#include "tests/support/random_tensor.h"

/* Random bf16 values in rows of head_dim, padded with zeros. */
static float *make_rows(size_t values, const struct attention_dense_shape *shape, uint64_t *seed,
                        uint16_t **bf16) {
    size_t dim = (size_t)attention_dense_dim(shape->head_dim);
    float *rows = aligned_alloc(64, (values * sizeof(float) + 63) / 64 * 64);
    *bf16 = calloc(values, sizeof **bf16);
    for (size_t i = 0; i < values; i++) {
        if (i % dim < (size_t)shape->head_dim)
            (*bf16)[i] = quant_type_f32_to_bf16(random_tensor_float(seed));
        rows[i] = quant_type_bf16_to_f32((*bf16)[i]);
    }
    return rows;
}

void dense_oracle_init(struct dense_scene *scene, const struct attention_dense_shape *shape,
                       uint64_t seed) {
    uint16_t *unused;
    scene->shape = *shape;
    scene->query_values = attention_dense_query_values(shape);
    scene->key_values = attention_dense_key_values(shape);
    scene->queries = make_rows(scene->query_values, shape, &seed, &scene->queries_bf16);
    scene->keys = make_rows(scene->key_values, shape, &seed, &scene->keys_bf16);
    scene->values = make_rows(scene->key_values, shape, &seed, &scene->values_bf16);
    scene->out_gradient = make_rows(scene->query_values, shape, &seed, &unused);
    free(unused);
}

void dense_oracle_deinit(struct dense_scene *scene) {
    free(scene->queries);
    free(scene->keys);
    free(scene->values);
    free(scene->out_gradient);
    free(scene->queries_bf16);
    free(scene->keys_bf16);
    free(scene->values_bf16);
}

static double dot(const float *a, const float *b, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Probabilities of the row over the keys seen, and the derivatives of the caps. */
static void weigh_keys(const struct dense_scene *scene, const float *query, const float *keys,
                       struct attention_dense_range seen, double *weights, double *slopes) {
    const struct attention_dense_shape *shape = &scene->shape;
    int dim = attention_dense_dim(shape->head_dim);
    double most = -INFINITY, sum = 0;
    for (int i = seen.first; i < seen.end; i++) {
        weights[i] = dot(query, keys + (size_t)i * (size_t)dim, dim) * (double)shape->scale;
        slopes[i] = 1;
        if (shape->softcap > 0) {
            double share = tanh(weights[i] / (double)shape->softcap);
            weights[i] = (double)shape->softcap * share;
            slopes[i] = 1 - share * share;
        }
        most = fmax(most, weights[i]);
    }
    for (int i = seen.first; i < seen.end; i++)
        sum += weights[i] = exp(weights[i] - most);
    for (int i = seen.first; i < seen.end; i++)
        weights[i] /= sum;
}

/* A row's share of the gradients. */
static void add_gradients(const struct dense_scene *scene, size_t query_at, size_t key_at,
                          struct attention_dense_range seen, const double *weights,
                          const double *slopes, struct dense_results *results) {
    int dim = attention_dense_dim(scene->shape.head_dim);
    const float *out_gradient = scene->out_gradient + query_at;
    double delta = 0;
    for (int i = seen.first; i < seen.end; i++)
        delta +=
            weights[i] * dot(out_gradient, scene->values + key_at + (size_t)i * (size_t)dim, dim);
    for (int i = seen.first; i < seen.end; i++) {
        size_t at = key_at + (size_t)i * (size_t)dim;
        double slope = weights[i] * (dot(out_gradient, scene->values + at, dim) - delta) *
                       slopes[i] * (double)scene->shape.scale;
        for (int d = 0; d < dim; d++) {
            results->value_gradient[at + d] += weights[i] * (double)out_gradient[d];
            results->key_gradient[at + d] += slope * (double)scene->queries[query_at + d];
            results->query_gradient[query_at + d] += slope * (double)scene->keys[at + d];
        }
    }
}

static void run_row(const struct dense_scene *scene,
                    const struct attention_dense_sequence *sequence, int head, int row,
                    struct dense_results *results) {
    const struct attention_dense_shape *shape = &scene->shape;
    int dim = attention_dense_dim(shape->head_dim);
    size_t query_at = attention_dense_query_at(shape, sequence, head) + (size_t)row * (size_t)dim;
    size_t key_at =
        attention_dense_key_at(shape, sequence, head / (shape->heads / shape->kv_heads));
    struct attention_dense_range seen = attention_dense_seen(shape, sequence, row);
    double *weights = calloc((size_t)sequence->context * 2, sizeof *weights);
    double *slopes = weights + sequence->context;
    weigh_keys(scene, scene->queries + query_at, scene->keys + key_at, seen, weights, slopes);
    for (int d = 0; d < dim; d++) {
        results->out[query_at + d] = 0;
        for (int i = seen.first; i < seen.end; i++)
            results->out[query_at + d] +=
                weights[i] * (double)scene->values[key_at + (size_t)i * (size_t)dim + d];
    }
    if (results->query_gradient != NULL)
        add_gradients(scene, query_at, key_at, seen, weights, slopes, results);
    free(weights);
}

void dense_oracle_run(const struct dense_scene *scene, struct dense_results *results) {
    if (results->query_gradient != NULL) {
        memset(results->query_gradient, 0, scene->query_values * sizeof(double));
        memset(results->key_gradient, 0, scene->key_values * sizeof(double));
        memset(results->value_gradient, 0, scene->key_values * sizeof(double));
    }
    for (int s = 0; s < scene->shape.sequence_count; s++)
        for (int head = 0; head < scene->shape.heads; head++)
            for (int row = 0; row < scene->shape.sequences[s].query_count; row++)
                run_row(scene, &scene->shape.sequences[s], head, row, results);
}

double dense_oracle_loss(const struct dense_scene *scene, const double *out) {
    double loss = 0;
    for (size_t i = 0; i < scene->query_values; i++)
        loss += out[i] * (double)scene->out_gradient[i];
    return loss;
}
