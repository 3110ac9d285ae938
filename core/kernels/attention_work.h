/* What attention asks for and what each way of computing it spends: products and bytes, exactly.
 * A multiply-add is 2 FLOP. Useful pairs are those of a row and a key that it sees; issued ones are
 * what the way multiplies. Minimal bytes read queries, keys and values once and write the output
 * once; moved bytes count every array that a pass reads or writes, whether a cache holds it or not.
 */
#ifndef CORE_KERNELS_ATTENTION_WORK_H
#define CORE_KERNELS_ATTENTION_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/kernels/attention_dense.h"
#include "core/kernels/attention_page.h"
#include "core/kernels/attention_variants.h"

/* Pairs of one head over all sequences. */
int64_t attention_work_pairs(const struct attention_dense_shape *shape);
/* Of tiles of 64 rows and 64 keys that see each other. */
int64_t attention_work_pairs_tiled(const struct attention_dense_shape *shape);
/* Of rows and whole pages of 64 keys, as the shipped kernels take them. */
int64_t attention_work_pairs_paged(const struct attention_dense_shape *shape);
/* Of all rows and all keys, these rounded up to 16. */
int64_t attention_work_pairs_all(const struct attention_dense_shape *shape);
/* Keys that any row of their sequence sees. */
int64_t attention_work_keys(const struct attention_dense_shape *shape);

struct attention_work {
    double flops, flops_issued;
    double bytes, bytes_moved;
};

/* Minimal bytes are the same for every way: fp32 queries and output, keys and values of bf16 or
 * as int8 pages hold them. */
struct attention_work attention_work_variant(const struct attention_dense_shape *shape,
                                             enum attention_variant variant,
                                             enum attention_page_type page_type);
/* The shipped kernels; blocks of positions read their pages once. */
struct attention_work attention_work_paged(const struct attention_dense_shape *shape,
                                           enum attention_page_type page_type);
/* Backward: 5 products are useful, joint or not. Minimal bytes: fp32 inputs, output, its gradient
 * and log-sum-exps in, three gradients out. */
struct attention_work attention_work_backward(const struct attention_dense_shape *shape,
                                              bool joint);

#endif
