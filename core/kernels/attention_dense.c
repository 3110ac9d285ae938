/* Places in the dense tensors, what a row sees, and the choice of the loops' variant. */
#include "core/kernels/attention_dense.h"

#include <assert.h>
#include <stdlib.h>

#include "core/kernels/kernels_variants.h"

struct attention_dense_range attention_dense_seen(const struct attention_dense_shape *shape,
                                                  const struct attention_dense_sequence *sequence,
                                                  int row) {
    int position = sequence->context - sequence->query_count + row;
    struct attention_dense_range range = {0, sequence->context};
    if (shape->causal)
        range.end = position + 1;
    if (shape->window > 0 && position >= shape->window)
        range.first = position - shape->window + 1;
    return range;
}

int attention_dense_dim(int head_dim) {
    return (head_dim + 15) / 16 * 16;
}

size_t attention_dense_query_values(const struct attention_dense_shape *shape) {
    const struct attention_dense_sequence *last = &shape->sequences[shape->sequence_count - 1];
    return (last->query_first + (size_t)last->query_count) * (size_t)shape->heads *
           (size_t)attention_dense_dim(shape->head_dim);
}

size_t attention_dense_key_values(const struct attention_dense_shape *shape) {
    const struct attention_dense_sequence *last = &shape->sequences[shape->sequence_count - 1];
    return (last->key_first + (size_t)last->context) * (size_t)shape->kv_heads *
           (size_t)attention_dense_dim(shape->head_dim);
}

size_t attention_dense_query_at(const struct attention_dense_shape *shape,
                                const struct attention_dense_sequence *sequence, int head) {
    size_t rows =
        sequence->query_first * (size_t)shape->heads + (size_t)head * (size_t)sequence->query_count;
    return rows * (size_t)attention_dense_dim(shape->head_dim);
}

size_t attention_dense_key_at(const struct attention_dense_shape *shape,
                              const struct attention_dense_sequence *sequence, int kv_head) {
    size_t rows =
        sequence->key_first * (size_t)shape->kv_heads + (size_t)kv_head * (size_t)sequence->context;
    return rows * (size_t)attention_dense_dim(shape->head_dim);
}

struct attention_dense_block *attention_dense_blocks(const struct attention_dense_shape *shape,
                                                     int rows, int *count) {
    size_t total = 0;
    for (int s = 0; s < shape->sequence_count; s++)
        total +=
            (size_t)shape->heads * (size_t)((shape->sequences[s].query_count + rows - 1) / rows);
    struct attention_dense_block *blocks = malloc(total * sizeof *blocks), *next = blocks;
    for (int s = 0; s < shape->sequence_count && blocks != NULL; s++)
        for (int head = 0; head < shape->heads; head++)
            for (int first = 0; first < shape->sequences[s].query_count; first += rows) {
                int left = shape->sequences[s].query_count - first;
                *next++ = (struct attention_dense_block){s, head, first, left < rows ? left : rows};
            }
    *count = (int)total;
    return blocks;
}

static const struct attention_dense_kernels *const variants[] = {
#if defined(__x86_64__)
    &attention_dense_avx512,
    &attention_dense_avx2,
#endif
    &attention_dense_scalar,
};

size_t attention_dense_variant_count(void) {
    return sizeof variants / sizeof variants[0];
}

const struct attention_dense_kernels *attention_dense_variant_at(size_t index) {
    return variants[index];
}

const struct attention_dense_kernels *attention_dense_select(const struct cpu_features *features) {
    for (size_t i = 0; i < attention_dense_variant_count(); i++)
        if (variants[i]->available(features))
            return variants[i];
    assert(!"the scalar variant is always available");
    return NULL;
}
