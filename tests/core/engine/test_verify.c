/* The comparison of logits, on rows whose figures can be worked out by hand. */
#include <math.h>

#include "tests/core/engine/reference_run.h"

enum { VOCAB = 4 };

static struct verify_report compare(const float (*reference)[VOCAB], const float (*tested)[VOCAB],
                                    int count) {
    struct verify verify;
    struct error error = {0};
    verify_init(&verify, VOCAB);
    for (int i = 0; i < count; i++)
        cr_assert_eq(verify_add(&verify, 10 + i, reference[i], tested[i], &error), STATUS_OK);
    struct verify_report report = verify_finish(&verify);
    verify_deinit(&verify);
    return report;
}

#define NEAR(a, b) cr_expect_float_eq(a, b, 1e-9, #a " is %.12g", (double)(a))

Test(verify, equal_rows_have_no_error) {
    static const float rows[][VOCAB] = {{1, 2, 3, 4}, {-1, 0, 0, -5}};
    struct verify_report report = compare(rows, rows, 2);
    cr_expect_eq(report.position_count, 2);
    cr_expect_eq(report.relative_l2, 0);
    cr_expect_eq(report.absolute_error_max, 0);
    cr_expect_eq(report.divergence_max, 0);
    cr_expect_eq(report.agree_count, 2);
    /* row 2 ties: its gap 0 is not above twice the error 0 */
    cr_expect_eq(report.clear_count, 1);
    cr_expect_eq(report.clear_agree_count, 1);
}

Test(verify, norms_are_over_all_positions_and_the_worst_is_named) {
    static const float reference[][VOCAB] = {{3, 0, 0, 4}, {0, 0, 0, 1}};
    static const float tested[][VOCAB] = {{3, 0, 0, 5}, {0, 0, 0, 1.5f}};
    struct verify_report report = compare(reference, tested, 2);
    NEAR(report.relative_l2, sqrt(1.25 / 26));
    NEAR(report.relative_l2_max, 0.5);
    cr_expect_eq(report.relative_l2_max_position, 11);
    NEAR(report.absolute_error_max, 1);
    cr_expect_eq(report.absolute_error_max_position, 10);
}

Test(verify, divergence_is_of_the_distributions) {
    /* p = (1/2, 1/6, 1/6, 1/6), q = 1/4 each; a constant added to q's logits changes nothing */
    const float reference[][VOCAB] = {{logf(3), 0, 0, 0}, {0, 0, 0, 0}};
    static const float tested[][VOCAB] = {{7, 7, 7, 7}, {0, 0, 0, 0}};
    double wanted = 0.5 * log(2) + 3 * (1.0 / 6) * log(4.0 / 6);
    struct verify_report report = compare(reference, tested, 2);
    cr_expect_float_eq(report.divergence_max, wanted, 1e-7);
    cr_expect_float_eq(report.divergence_mean, wanted / 2, 1e-7);
    cr_expect_eq(report.divergence_max_position, 10);
}

Test(verify, divergence_of_huge_logits_stays_finite) {
    static const float reference[][VOCAB] = {{30000, -30000, 0, 0}};
    static const float tested[][VOCAB] = {{29999, -30000, 0, 0}};
    struct verify_report report = compare(reference, tested, 1);
    cr_expect(isfinite(report.divergence_max));
    cr_expect_eq(report.divergence_max, 0);
}

Test(verify, argmax_counts_where_the_reference_is_clear) {
    static const float reference[][VOCAB] = {
        {5, 4.9f, 0, 0}, /* gap 0.1: not clear; the argmax changes */
        {5, 1, 0, 0},    /* gap 4: clear and equal */
        {5, 3, 0, 0},    /* gap 2: clear, and lost */
    };
    static const float tested[][VOCAB] = {{4.9f, 5, 0, 0}, {5, 1, 0, 0}, {4.1f, 4.2f, 0, 0}};
    struct verify_report report = compare(reference, tested, 3);
    cr_expect_eq(report.agree_count, 1);
    NEAR(report.absolute_error_max, (double)4.2f - 3);
    cr_expect_eq(report.clear_count, 1, "gap 2 is not above twice 1.2");
    cr_expect_eq(report.clear_agree_count, 1);
    struct verify_report small = compare(reference + 1, tested + 1, 1);
    cr_expect_eq(small.clear_count, 1);
}

/* What is not clear may turn, what is clear cannot: both errors together stay below the gap. */
Test(verify, the_border_of_clear_is_twice_the_largest_error) {
    static const float reference[][VOCAB] = {{5, 3, 0, 0}, {5, 2.5f, 0, 0}};
    static const float tested[][VOCAB] = {{4, 4, 0, 0}, {4, 2.5f, 0, 1}};
    struct verify_report report = compare(reference, tested, 2);
    NEAR(report.absolute_error_max, 1);
    cr_expect_eq(report.clear_count, 1, "2 is not above 2 x 1, 2.5 is");
    cr_expect_eq(report.clear_agree_count, 1);
}

Test(verify, ties_take_the_lowest_id) {
    static const float reference[][VOCAB] = {{2, 2, 0, 0}};
    static const float tested[][VOCAB] = {{2, 1, 0, 0}};
    static const float other[][VOCAB] = {{1, 2, 0, 0}};
    cr_expect_eq(compare(reference, tested, 1).agree_count, 1);
    cr_expect_eq(compare(reference, other, 1).agree_count, 0);
}

Test(verify, positions_that_are_not_finite_are_counted_apart) {
    const float reference[][VOCAB] = {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, INFINITY}};
    const float tested[][VOCAB] = {{1, 2, NAN, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}};
    struct verify_report report = compare(reference, tested, 3);
    cr_expect_eq(report.position_count, 3);
    cr_expect_eq(report.not_finite_count, 2);
    cr_expect_eq(report.relative_l2, 0);
    cr_expect_eq(report.agree_count, 1);
}

Test(verify, nothing_added_reports_nothing) {
    struct verify verify;
    verify_init(&verify, VOCAB);
    struct verify_report report = verify_finish(&verify);
    cr_expect_eq(report.position_count, 0);
    cr_expect_eq(report.divergence_mean, 0);
    verify_deinit(&verify);
}

Test(verify, tokens_run_through_both_backends_in_steps) {
    int32_t ids[150];
    struct error error = {0};
    struct reference_run a, b;
    struct verify verify;
    const char *path = SHEAF_SOURCE_DIR "/tests/golden/model/small-gemma3.gguf";
    reference_run_open(&a, path, NULL, 1);
    reference_run_open(&b, path, NULL, 1);
    struct backend_limits limits = verify_limits(a.model, 150, 70, KV_F64);
    cr_expect_eq(limits.page_count_max[0], 3);
    reference_run_reserve(&a, &limits);
    reference_run_reserve(&b, &limits);
    for (int i = 0; i < 150; i++)
        ids[i] = i * 7 % a.model->vocab_count;
    verify_init(&verify, a.model->vocab_count);
    struct verify_pair pair = {a.model, a.backend, b.backend};
    cr_assert_eq(verify_tokens(&verify, &pair, ids, 150, 70, &error), STATUS_OK, "%s", error.text);
    struct verify_report report = verify_finish(&verify);
    cr_expect_eq(report.position_count, 150);
    cr_expect_eq(report.relative_l2_max, 0);
    cr_expect_eq(report.agree_count, 150);
    verify_deinit(&verify);
    reference_run_close(&a);
    reference_run_close(&b);
}
