/* Counting a run's work: against sums taken position by position. */
#include <criterion/criterion.h>

#include "core/job/summary_work.h"

enum { WIDTH = 8, HEADS = 2, HEAD_DIM = 4, VOCAB = 11 };

/* One layer that sees everything, one that sees the last 5 positions. */
static struct model two_layers(struct op *ops, const struct tensor *tensor) {
    const struct linear square = {.in = WIDTH, .out = WIDTH, .part_count = 1, .parts = {tensor}};
    const struct linear head = {.in = WIDTH, .out = VOCAB, .part_count = 1, .parts = {tensor}};
    ops[0] = (struct op){.kind = OP_ATTENTION,
                         .attention = {.kv_group = 0, .qkv = square, .out = square}};
    ops[1] = (struct op){.kind = OP_ATTENTION,
                         .attention = {.kv_group = 1, .window = 5, .qkv = square, .out = square}};
    ops[2] = (struct op){.kind = OP_LOGITS, .logits = {.head = head}};
    return (struct model){.op_count = 3,
                          .ops = ops,
                          .head_count = HEADS,
                          .head_dim = HEAD_DIM,
                          .kv_group_count = 2,
                          .kv_groups = {{.layer_count = 1}, {.layer_count = 1, .window = 5}}};
}

static int keys_of(int position, int window) {
    return window > 0 && position + 1 > window ? window : position + 1;
}

Test(summary_work, counts_are_those_of_every_position) {
    struct op ops[3];
    const struct tensor tensor = {.byte_count = 100};
    const struct model model = two_layers(ops, &tensor);
    const uint64_t page_bytes[] = {KV_PAGE_TOKENS * 3, KV_PAGE_TOKENS * 7};
    struct summary_work work;
    summary_work_init(&work, &model, page_bytes);
    const struct row row = {.prompt_tokens = 20, .cached_tokens = 8, .completion_tokens = 4};
    summary_work_add(&work, &row);
    double matmul = 0, attention = 0, kv_bytes = 20 * (3 + 7);
    for (int position = 8; position < 20 + 4 - 1; position++) {
        matmul += 4 * 2.0 * WIDTH * WIDTH;
        attention += 4.0 * HEADS * HEAD_DIM * (keys_of(position, 0) + keys_of(position, 5));
        if (position >= 20)
            kv_bytes += 3 * keys_of(position, 0) + 7 * keys_of(position, 5);
    }
    matmul += 4 * 2.0 * WIDTH * VOCAB;
    cr_expect_float_eq(work.matmul_flops, matmul, 0.5);
    cr_expect_float_eq(work.attention_flops, attention, 0.5);
    cr_expect_float_eq(work.kv_bytes, kv_bytes, 0.5);
    cr_expect_float_eq(summary_work_weight_bytes(&work, 3), 3 * 500.0, 0.5);
}

Test(summary_work, a_single_token_is_never_fed_back) {
    struct op ops[3];
    const struct tensor tensor = {.byte_count = 100};
    const struct model model = two_layers(ops, &tensor);
    const uint64_t page_bytes[] = {KV_PAGE_TOKENS, KV_PAGE_TOKENS};
    struct summary_work work;
    summary_work_init(&work, &model, page_bytes);
    const struct row row = {.prompt_tokens = 1, .completion_tokens = 1};
    summary_work_add(&work, &row);
    cr_expect_float_eq(work.matmul_flops, 4 * 2.0 * WIDTH * WIDTH + 2.0 * WIDTH * VOCAB, 0.5);
    cr_expect_float_eq(work.attention_flops, 2 * 4.0 * HEADS * HEAD_DIM, 0.5);
}
