/* The notation of batches: what it means and what it refuses. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/kernels/bench_batch.h"

static struct bench_batch parsed(const char *text) {
    struct bench_batch batch;
    struct error error;
    cr_assert_eq(bench_batch_parse(text, &batch, &error), STATUS_OK, "%s: %s", text, error.text);
    return batch;
}

static void expect_group(const struct bench_batch *batch, int index, int sequences, int queries,
                         int context) {
    cr_assert_lt(index, batch->group_count);
    cr_expect_eq(batch->groups[index].sequence_count, sequences);
    cr_expect_eq(batch->groups[index].query_count, queries);
    cr_expect_eq(batch->groups[index].context, context);
}

Test(bench_batch, groups) {
    struct bench_batch batch = parsed("q2k");
    expect_group(&batch, 0, 1, 2048, 2048);
    batch = parsed("q2kkv8k");
    expect_group(&batch, 0, 1, 2048, 8192);
    batch = parsed("8q1s1k");
    expect_group(&batch, 0, 8, 1, 1024);
    batch = parsed("q512s8k_32q1kv2k,3q7");
    cr_expect_eq(batch.group_count, 3);
    cr_expect_eq(batch.sequence_count, 36);
    expect_group(&batch, 0, 1, 512, 8192);
    expect_group(&batch, 1, 32, 1, 2048);
    expect_group(&batch, 2, 3, 7, 7);
}

Test(bench_batch, what_is_refused) {
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "batch '': expected 'q' and a number of queries at 'its end'"},
        {"2k", "batch '2k': expected 'q' and a number of queries at 'its end'"},
        {"q", "batch 'q': expected a number of queries at 'its end'"},
        {"q0", "batch 'q0': expected a number of queries at '0'"},
        {"q-1", "batch 'q-1': expected a number of queries at '-1'"},
        {"q01", "batch 'q01': expected a number of queries at '01'"},
        {"0q1", "batch '0q1': expected a number of sequences at '0q1'"},
        {"q1s", "batch 'q1s': expected a context at 'its end'"},
        {"q2ks1k", "batch 'q2ks1k': at 'q2ks1k': a context of 1024 holds no 2048 queries"},
        {"q1_", "batch 'q1_': expected 'q' and a number of queries at 'its end'"},
        {"q1__q1", "batch 'q1__q1': expected 'q' and a number of queries at '_q1'"},
        {"q1 q2", "batch 'q1 q2': expected '_', ',' or nothing more at ' q2'"},
        {"q1m", "batch 'q1m': expected '_', ',' or nothing more at 'm'"},
        {"Q1", "batch 'Q1': expected 'q' and a number of queries at 'Q1'"},
        {"q99999999999999999999", "batch 'q99999999999999999999': at '99999999999999999999': more "
                                  "than 16777216"},
        {"q17000k", "batch 'q17000k': at '17000k': more than 16777216"},
        {"4096q1_q1", "batch '4096q1_q1': more than 4096 sequences"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct bench_batch batch;
        struct error error;
        cr_assert_eq(bench_batch_parse(bad[i].text, &batch, &error), STATUS_BAD_INPUT, "%s",
                     bad[i].text);
        cr_expect_str_eq(error.text, bad[i].message);
    }
}

Test(bench_batch, too_many_groups) {
    char text[3 * (BENCH_BATCH_GROUPS_MAX + 1) + 1] = "q1";
    for (int i = 1; i <= BENCH_BATCH_GROUPS_MAX; i++)
        memcpy(text + 3 * i - 1, "_q1", 4);
    struct bench_batch batch;
    struct error error;
    cr_expect_eq(bench_batch_parse(text, &batch, &error), STATUS_BAD_INPUT);
    text[3 * BENCH_BATCH_GROUPS_MAX - 1] = '\0';
    cr_expect_eq(bench_batch_parse(text, &batch, &error), STATUS_OK);
}
