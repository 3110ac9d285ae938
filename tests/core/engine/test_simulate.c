/* The dry run: its schedule is the engine's, its clock the cost model, by hand. */
#include <criterion/criterion.h>

#include "core/engine/simulate.h"

enum { PAGE_BYTES = 1000 };

static const struct model model = {.kv_group_count = 2, .kv_groups = {{1, 0}, {1, 100}}};
static const uint64_t page_bytes[] = {PAGE_BYTES, PAGE_BYTES};

static struct simulate *simulate_of(int batch_tokens, int max_sequences, int pages,
                                    struct simulate_costs costs) {
    struct simulate *simulate;
    struct engine_options options = {.batch_tokens = batch_tokens,
                                     .max_sequences = max_sequences,
                                     .context = 2000,
                                     .kv_bytes = (uint64_t)pages * PAGE_BYTES,
                                     .prefix_cache = true};
    cr_assert_eq(simulate_create(&model, &options, page_bytes, &costs, &simulate, NULL), STATUS_OK);
    return simulate;
}

static void submit(struct simulate *simulate, int32_t first, int count, int max_tokens,
                   int expected) {
    int32_t tokens[2000];
    for (int i = 0; i < count; i++)
        tokens[i] = first + i;
    struct engine_request request = {
        .tokens = tokens, .token_count = count, .max_tokens = max_tokens};
    cr_assert_eq(simulate_submit(simulate, &request, expected, NULL), STATUS_OK);
}

static struct simulate_result run(struct simulate *simulate) {
    struct simulate_result result;
    while (simulate_step(simulate))
        ;
    simulate_read(simulate, &result);
    simulate_destroy(simulate);
    return result;
}

Test(simulate, counts_steps_rows_and_pages_of_one_document) {
    struct simulate *simulate = simulate_of(100, 4, 100, (struct simulate_costs){.step = 2});
    submit(simulate, 0, 250, 50, 50);
    struct simulate_result result = run(simulate);
    cr_assert_eq(result.steps, 3 + 49);
    cr_assert_eq(result.prefill_tokens, 250);
    cr_assert_eq(result.decode_tokens, 49);
    cr_assert_eq(result.output_tokens, 50);
    cr_assert_eq(result.finished, 1);
    cr_assert_eq(result.running_peak, 1);
    cr_assert_eq(result.pages_peak[0], 5);
    cr_assert_leq(result.pages_peak[1], 5);
    cr_assert_eq(result.seconds, 2.0 * 52);
}

Test(simulate, documents_end_where_they_are_expected_to) {
    struct simulate *simulate = simulate_of(100, 4, 100, (struct simulate_costs){.step = 1});
    submit(simulate, 0, 90, 500, 7);
    struct simulate_result result = run(simulate);
    cr_assert_eq(result.output_tokens, 7);
    cr_assert_eq(result.steps, 7);
}

Test(simulate, shared_prefixes_are_found_and_refusals_counted) {
    struct simulate *simulate = simulate_of(512, 4, 100, (struct simulate_costs){.step = 1});
    for (int i = 0; i < 5; i++)
        submit(simulate, 0, 640 + i, 20, 20);
    submit(simulate, 0, 1900, 100, 100);
    struct simulate_result result = run(simulate);
    cr_assert_eq(result.finished, 6);
    cr_assert_eq(result.refused, 0);
    cr_assert_eq(result.cached_tokens, 5 * 640);
    simulate = simulate_of(512, 4, 20, (struct simulate_costs){.step = 1});
    submit(simulate, 0, 1900, 100, 100);
    submit(simulate, 0, 100, 10, 10);
    result = run(simulate);
    cr_assert_eq(result.refused, 1);
    cr_assert_eq(result.finished, 1);
}

/* Attention's keys, one by one. */
Test(simulate, attention_is_charged_for_the_keys_a_row_sees) {
    for (int count = 1; count < 400; count += 37) {
        double global = 0, windowed = 0;
        for (int position = 0; position < count; position++) {
            global += position + 1;
            windowed += position < 100 ? position + 1 : 100;
        }
        for (int batch = 30; batch < 500; batch += 90) {
            struct simulate *simulate =
                simulate_of(batch, 1, 100, (struct simulate_costs){.attend = {1, 1000000}});
            submit(simulate, 0, count, 1, 1);
            cr_assert_eq(run(simulate).attention_seconds, global + 1000000 * windowed,
                         "%d tokens in chunks of %d", count, batch);
        }
    }
}

Test(simulate, reading_bounds_decoding_and_arithmetic_bounds_prefill) {
    struct simulate_costs costs = {
        .weights = 50, .row = 1, .sample = 2, .read_kv = {3, 0}, .attend = {1, 0}};
    struct simulate *simulate = simulate_of(100, 1, 100, costs);
    submit(simulate, 0, 100, 2, 2);
    struct simulate_result result = run(simulate);
    cr_assert_eq(result.matmul_seconds, (100 + 2) + 50);
    cr_assert_eq(result.attention_seconds, 100 * 101 / 2 + 3 * 101);
    cr_assert_eq(result.seconds, result.matmul_seconds + result.attention_seconds);
}

Test(simulate, costs_follow_from_shapes_and_ceilings) {
    static struct op ops[] = {
        {.kind = OP_EMBED},
        {.kind = OP_ATTENTION,
         .attention = {.kv_group = 1, .qkv = {.in = 10, .out = 30}, .out = {.in = 20, .out = 10}}},
        {.kind = OP_MLP, .mlp = {.gate_up = {.in = 10, .out = 80}, .down = {.in = 40, .out = 10}}},
        {.kind = OP_LOGITS, .logits = {.head = {.in = 10, .out = 500}}},
    };
    struct model shapes = {.op_count = 4,
                           .ops = ops,
                           .head_count = 5,
                           .head_dim = 4,
                           .weight_bytes = 9000,
                           .kv_group_count = 2};
    struct simulate_ceilings ceilings = {1000, 100, 64, 0.5};
    struct simulate_costs costs = simulate_costs_of(&shapes, page_bytes, &ceilings);
    cr_assert_float_eq(costs.row, 2 * (300 + 200 + 800 + 400) / 1000.0, 1e-12);
    cr_assert_float_eq(costs.sample, 10, 1e-12);
    cr_assert_float_eq(costs.weights, 9000 / 64.0, 1e-12);
    cr_assert_eq(costs.attend[0], 0);
    cr_assert_float_eq(costs.attend[1], 4 * 20 / 100.0, 1e-12);
    cr_assert_float_eq(costs.read_kv[0], 1000 / 64.0 / 64, 1e-12);
    cr_assert_eq(costs.step, 0.5);
}

Test(simulate, expectations_outside_the_limits_are_refused) {
    struct simulate *simulate = simulate_of(100, 4, 100, (struct simulate_costs){0});
    int32_t token = 0;
    struct engine_request request = {.tokens = &token, .token_count = 1, .max_tokens = 5};
    cr_assert_eq(simulate_submit(simulate, &request, 6, NULL), STATUS_BAD_INPUT);
    cr_assert_eq(simulate_submit(simulate, &request, 0, NULL), STATUS_BAD_INPUT);
    request.max_tokens = 5000;
    cr_assert_eq(simulate_submit(simulate, &request, 6, NULL), STATUS_OVER_LIMIT);
    cr_assert_eq(simulate_waiting_count(simulate), 0);
    simulate_destroy(simulate);
}
