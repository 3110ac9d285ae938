/* The accounting of attention against counts made pair by pair. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/kernels/attention_work.h"

enum { CONTEXT_MAX = 320, UNITS = CONTEXT_MAX / 64 };

static bool sees(const struct attention_dense_shape *shape,
                 const struct attention_dense_sequence *sequence, int row, int key) {
    int position = sequence->context - sequence->query_count + row;
    if (shape->causal && key > position)
        return false;
    return shape->window == 0 || key > position - shape->window;
}

/* Pairs, pairs in tiles of `rows` × 64 of which one is seen, and keys that are seen. */
struct counts {
    int64_t pairs, tiled, keys;
};

static struct counts count(const struct attention_dense_shape *shape, int rows) {
    struct counts counts = {0};
    for (int s = 0; s < shape->sequence_count; s++) {
        const struct attention_dense_sequence *sequence = &shape->sequences[s];
        bool seen[CONTEXT_MAX] = {false};
        for (int first = 0; first < sequence->query_count; first += rows) {
            bool touched[UNITS] = {false};
            int end = first + rows < sequence->query_count ? first + rows : sequence->query_count;
            for (int row = first; row < end; row++)
                for (int key = 0; key < sequence->context; key++)
                    if (sees(shape, sequence, row, key)) {
                        counts.pairs++;
                        touched[key / 64] = seen[key] = true;
                    }
            for (int unit = 0; unit < UNITS; unit++)
                counts.tiled += touched[unit] ? 64 * (end - first) : 0;
        }
        for (int key = 0; key < sequence->context; key++)
            counts.keys += seen[key];
    }
    return counts;
}

Test(attention_work, pairs_are_those_of_the_mask) {
    static const int windows[] = {0, 1, 17, 64, 65, 200};
    for (int context = 1; context <= CONTEXT_MAX; context += 13)
        for (int queries = 1; queries <= context; queries += 29)
            for (int i = 0; i < 7; i++) {
                struct attention_dense_sequence sequences[] = {{queries, context, 0, 0},
                                                               {1, 70, (size_t)queries, 0}};
                struct attention_dense_shape shape = {
                    .heads = 2,
                    .kv_heads = 1,
                    .head_dim = 64,
                    .causal = i < 6,
                    .window = i < 6 ? windows[i] : 0,
                    .sequences = sequences,
                    .sequence_count = 2,
                };
                struct counts tiled = count(&shape, 64), paged = count(&shape, 1);
                cr_assert_eq(attention_work_pairs(&shape), tiled.pairs);
                cr_assert_eq(attention_work_keys(&shape), tiled.keys);
                cr_assert_eq(attention_work_pairs_tiled(&shape), tiled.tiled);
                cr_assert_eq(attention_work_pairs_paged(&shape), paged.tiled);
            }
}

/* 8 sequences, 16 heads, 1024 positions, head_dim 64, causal: 17.2 GFLOP. */
Test(attention_work, a_known_shape) {
    struct attention_dense_sequence sequences[8];
    for (int s = 0; s < 8; s++)
        sequences[s] =
            (struct attention_dense_sequence){1024, 1024, 1024 * (size_t)s, 1024 * (size_t)s};
    struct attention_dense_shape shape = {
        .heads = 16,
        .kv_heads = 16,
        .head_dim = 64,
        .causal = true,
        .sequences = sequences,
        .sequence_count = 8,
    };
    struct attention_work work =
        attention_work_variant(&shape, ATTENTION_NAIVE, ATTENTION_PAGE_BF16);
    double scores = 8.0 * 16 * 1024 * 1024 * 4, array = 8.0 * 16 * 1024 * 64 * 4;
    cr_expect_eq(work.flops, 4.0 * 64 * 16 * 8 * (1024.0 * 1025 / 2));
    cr_expect_eq(work.flops_issued, 4.0 * 64 * 16 * 8 * 1024 * 1024);
    cr_expect_eq(work.bytes, 2 * array + array);
    cr_expect_eq(work.bytes_moved, 8 * scores + 4 * array);
    work = attention_work_variant(&shape, ATTENTION_NAIVE_COPY, ATTENTION_PAGE_BF16);
    cr_expect_eq(work.bytes_moved, 10 * scores + 4 * array);
    work = attention_work_backward(&shape, true);
    cr_expect_eq(work.flops, 2.5 * 4.0 * 64 * 16 * 8 * (1024.0 * 1025 / 2));
    cr_expect_eq(work.flops_issued, 10.0 * 64 * 16 * 8 * 64 * 64 * (16 * 17 / 2));
    work = attention_work_backward(&shape, false);
    cr_expect_eq(work.flops_issued, 14.0 * 64 * 16 * 8 * 64 * 64 * (16 * 17 / 2));
}

/* A decode step reads whole pages once a KV head. */
Test(attention_work, decode_over_pages) {
    struct attention_dense_sequence sequences[] = {{1, 1000, 0, 0}, {1, 65, 1, 1000}};
    struct attention_dense_shape shape = {
        .heads = 9,
        .kv_heads = 3,
        .head_dim = 64,
        .causal = true,
        .sequences = sequences,
        .sequence_count = 2,
    };
    for (int type = ATTENTION_PAGE_BF16; type <= ATTENTION_PAGE_INT8; type++) {
        struct attention_work work = attention_work_paged(&shape, type);
        double page = (double)attention_page_bytes(type, 64), queries = 2 * 2 * 9 * 64 * 4.0;
        cr_expect_eq(work.bytes_moved, queries + 3 * page * (16 + 2));
        cr_expect_float_eq(work.bytes, queries + 3 * page / 64 * 1065, 1e-6);
        cr_expect_eq(work.flops, 4.0 * 64 * 9 * 1065);
        cr_expect_eq(work.flops_issued, 4.0 * 64 * 9 * 18 * 64);
    }
}
