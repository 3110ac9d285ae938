/* The sampler: each filter by its definition, ties, draws against their probabilities, and that
 * nothing but the row, its history and its key matters. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/engine/sampler.h"

enum { VOCAB = 1000 };

static const struct sampling greedy = {.top_p = 1, .repeat_penalty = 1};

static struct sampling at(double temperature) {
    return (struct sampling){
        .temperature = temperature, .top_p = 1, .repeat_penalty = 1, .seed = 1};
}

static int32_t pick(struct sampler *sampler, const float *logits, struct sampling sampling,
                    uint64_t key) {
    int32_t token = -1;
    struct sampler_row row = {.logits = logits, .sampling = &sampling, .key = key};
    cr_assert(sampler_pick(sampler, &row, &token));
    return token;
}

static struct sampler sampler_of(int vocab_count) {
    struct sampler sampler;
    struct cpu_features features = cpu_features_detect();
    const struct elementwise_kernels *kernels = kernels_select(&features).elementwise;
    cr_assert_eq(sampler_init(&sampler, kernels, vocab_count, NULL), STATUS_OK);
    return sampler;
}

/* Draws many tokens; counts[i] is how often token i came. */
static void count_draws(const float *logits, int vocab_count, struct sampling sampling, int draws,
                        int *counts) {
    struct sampler sampler = sampler_of(vocab_count);
    memset(counts, 0, (size_t)vocab_count * sizeof(int));
    for (int i = 0; i < draws; i++)
        counts[pick(&sampler, logits, sampling, (uint64_t)i)]++;
    sampler_deinit(&sampler);
}

Test(sampler, exp_is_within_two_units_of_the_last_place) {
    for (double x = -700; x < 700; x += 0.0137) {
        double expected = exp(x), got = sampler_exp(x);
        cr_assert_leq(fabs(got - expected), expected * 4.5e-16, "at %g: %a, not %a", x, got,
                      expected);
    }
    cr_assert_eq(sampler_exp(0), 1);
    cr_assert_eq(sampler_exp(-709), 0);
    cr_assert_eq(sampler_exp(-INFINITY), 0);
}

/* The same bits on every machine: these are part of what a seed promises. */
Test(sampler, exp_and_uniform_keep_their_bits) {
    cr_assert_eq(sampler_exp(-1), 0x1.78b56362cef38p-2);
    cr_assert_eq(sampler_exp(-37.25), 0x1.3278bcd70e981p-54);
    cr_assert_eq(sampler_uniform(0, 0, 0), 0x1.d0f7e53b931e2p-2);
    cr_assert_eq(sampler_uniform(1, 2, 3), 0x1.f1a2d241b9fa8p-2);
}

Test(sampler, uniform_is_uniform_in_each_argument) {
    for (int argument = 0; argument < 3; argument++) {
        double sum = 0, square = 0;
        for (uint64_t i = 0; i < 20000; i++) {
            double u = sampler_uniform(argument == 0 ? i : 9, argument == 1 ? i : 9,
                                       argument == 2 ? i : 9);
            cr_assert(u >= 0 && u < 1);
            sum += u;
            square += u * u;
        }
        cr_assert_float_eq(sum / 20000, 0.5, 0.01);
        cr_assert_float_eq(square / 20000, 1.0 / 3, 0.01);
    }
}

Test(sampler, greedy_takes_the_largest_and_the_lowest_of_equals) {
    struct sampler sampler = sampler_of(VOCAB);
    float logits[VOCAB];
    for (int i = 0; i < VOCAB; i++)
        logits[i] = (float)-i;
    logits[0] = -5000;
    logits[700] = logits[300] = 3;
    cr_assert_eq(pick(&sampler, logits, greedy, 0), 300);
    for (int i = 0; i < VOCAB; i++)
        logits[i] = i % 2 ? -0.0F : 0.0F;
    logits[0] = -1;
    cr_assert_eq(pick(&sampler, logits, greedy, 0), 1, "negative zero is no less than zero");
    sampler_deinit(&sampler);
}

Test(sampler, not_a_number_is_found_wherever_it_is) {
    static const float bad[] = {NAN, -NAN, INFINITY};
    struct sampler sampler = sampler_of(VOCAB);
    float logits[VOCAB] = {0};
    int32_t token;
    struct sampler_row row = {.logits = logits, .sampling = &greedy};
    for (int i = 0; i < VOCAB; i++)
        for (int b = 0; b < 3; b++) {
            logits[i] = bad[b];
            cr_assert_not(sampler_pick(&sampler, &row, &token), "%g at %d", (double)bad[b], i);
            logits[i] = 0;
        }
    sampler_deinit(&sampler);
}

Test(sampler, minus_infinity_forbids_a_token) {
    struct sampler sampler = sampler_of(8);
    float logits[8];
    int32_t token;
    struct sampling hot = at(100);
    struct sampler_row row = {.logits = logits, .sampling = &hot};
    for (int i = 0; i < 8; i++)
        logits[i] = i == 3 ? -90.0F : -INFINITY;
    for (int i = 0; i < 100; i++)
        cr_assert_eq(pick(&sampler, logits, at(100), (uint64_t)i), 3);
    logits[3] = -INFINITY;
    cr_assert_not(sampler_pick(&sampler, &row, &token), "nothing is left");
    sampler_deinit(&sampler);
}

Test(sampler, draws_follow_the_softmax) {
    static const float logits[4] = {0.5F, 2.0F, -1.0F, 1.0F};
    enum { DRAWS = 40000 };
    int counts[4];
    for (double temperature = 0.5; temperature <= 2; temperature *= 2) {
        double sum = 0;
        for (int i = 0; i < 4; i++)
            sum += exp((double)logits[i] / temperature);
        count_draws(logits, 4, at(temperature), DRAWS, counts);
        for (int i = 0; i < 4; i++)
            cr_assert_float_eq(counts[i] / (double)DRAWS, exp(logits[i] / temperature) / sum, 0.01);
    }
}

Test(sampler, top_k_keeps_exactly_k_and_the_lowest_of_equals) {
    static const float logits[6] = {1, 2, 1, 1, 0, 1};
    int counts[6];
    struct sampling sampling = at(1);
    sampling.top_k = 3;
    count_draws(logits, 6, sampling, 3000, counts);
    cr_assert(counts[0] > 0 && counts[1] > counts[0] && counts[2] > 0);
    cr_assert_eq(counts[3] + counts[4] + counts[5], 0);
    sampling.top_k = 1;
    count_draws(logits, 6, sampling, 100, counts);
    cr_assert_eq(counts[1], 100);
}

Test(sampler, a_top_k_beyond_the_vocabulary_is_none) {
    static const float logits[6] = {1, 2, 1, 1, 0, 1};
    int wide[6], none[6];
    struct sampling sampling = at(1);
    count_draws(logits, 6, sampling, 500, none);
    sampling.top_k = 6;
    count_draws(logits, 6, sampling, 500, wide);
    cr_assert_arr_eq(wide, none, sizeof none);
}

/* Probabilities 0.5, 0.25, 0.125, 0.125. */
static const float halves[4] = {-1.3862944F, -0.6931472F, -2.0794415F, -2.0794415F};

Test(sampler, top_p_keeps_the_smallest_set_that_reaches_p) {
    int counts[4];
    struct sampling sampling = at(1);
    sampling.top_p = 0.49;
    count_draws(halves, 4, sampling, 1000, counts);
    cr_assert_eq(counts[1], 1000);
    sampling.top_p = 0.6;
    count_draws(halves, 4, sampling, 9000, counts);
    cr_assert_eq(counts[2] + counts[3], 0);
    cr_assert_float_eq(counts[1] / 9000.0, 2.0 / 3, 0.02, "the kept are drawn by their shares");
    sampling.top_p = 0.8;
    count_draws(halves, 4, sampling, 1000, counts);
    cr_assert(counts[2] > 0 && counts[3] == 0);
}

Test(sampler, top_p_counts_from_what_top_k_left) {
    int counts[4];
    struct sampling sampling = at(1);
    sampling.top_k = 2;
    sampling.top_p = 0.6; /* 0.5 of 0.75 is 0.67 */
    count_draws(halves, 4, sampling, 500, counts);
    cr_assert_eq(counts[1], 500);
}

Test(sampler, temperature_comes_before_top_p) {
    int counts[4];
    struct sampling sampling = at(0.5); /* squares: 16, 4, 1, 1 of 22 */
    sampling.top_p = 0.6;
    count_draws(halves, 4, sampling, 500, counts);
    cr_assert_eq(counts[1], 500);
}

Test(sampler, min_p_is_relative_to_the_likeliest) {
    int counts[4];
    struct sampling sampling = at(1);
    sampling.min_p = 0.3;
    count_draws(halves, 4, sampling, 1000, counts);
    cr_assert(counts[0] > 0 && counts[2] + counts[3] == 0);
    sampling.min_p = 0.2;
    count_draws(halves, 4, sampling, 1000, counts);
    cr_assert(counts[2] > 0 && counts[3] > 0);
    sampling.top_k = 3;
    sampling.min_p = 1;
    count_draws(halves, 4, sampling, 1000, counts);
    cr_assert_eq(counts[1], 1000);
}

/* The nucleus by sorting everything, against the heap. */
Test(sampler, top_p_agrees_with_a_full_sort) {
    struct sampler sampler = sampler_of(VOCAB);
    float logits[VOCAB];
    uint64_t state = 99;
    for (int round = 0; round < 40; round++) {
        struct sampling sampling = at(0.3 + 0.1 * round);
        sampling.top_p = 0.05 + 0.023 * round;
        double total = 0, above;
        for (int i = 0; i < VOCAB; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            logits[i] = (float)(state >> 56) / 16;
            total += exp(logits[i] / sampling.temperature);
        }
        int32_t token = pick(&sampler, logits, sampling, (uint64_t)round);
        above = 0;
        for (int i = 0; i < VOCAB; i++)
            if (logits[i] > logits[token] || (logits[i] == logits[token] && i < token))
                above += exp(logits[i] / sampling.temperature);
        cr_assert_lt(above / total, sampling.top_p + 1e-9);
    }
    sampler_deinit(&sampler);
}

Test(sampler, the_penalty_divides_positive_and_multiplies_negative_logits_once) {
    struct sampler sampler = sampler_of(4);
    static const float logits[4] = {4, 3, -1, 2.5F};
    static const int32_t history[] = {0, 2, 0, 0, 2};
    struct sampling sampling = greedy;
    struct sampler_row row = {
        .logits = logits, .history = history, .history_count = 5, .sampling = &sampling};
    int32_t token;
    sampling.repeat_penalty = 1.3;
    cr_assert(sampler_pick(&sampler, &row, &token));
    cr_assert_eq(token, 0, "4 / 1.3 is still above 3");
    cr_assert_float_eq((double)sampler.logits[0], 4 / 1.3, 1e-6);
    cr_assert_float_eq((double)sampler.logits[2], -1.3, 1e-6);
    sampling.repeat_penalty = 1.5;
    cr_assert(sampler_pick(&sampler, &row, &token));
    cr_assert_eq(token, 1);
    cr_assert_eq(logits[0], 4, "the row itself is left alone");
    cr_assert_eq(sampler.seen[0], 0);
    sampler_deinit(&sampler);
}

Test(sampler, a_draw_depends_on_nothing_but_its_arguments) {
    struct sampler used = sampler_of(VOCAB), fresh = sampler_of(VOCAB);
    float logits[VOCAB], noise[VOCAB];
    static const int32_t history[] = {5, 6, 7};
    struct sampling sampling = {
        .temperature = 0.9, .top_k = 50, .top_p = 0.95, .min_p = 0.01, .repeat_penalty = 1.2};
    for (int i = 0; i < VOCAB; i++) {
        logits[i] = (float)(i * 7919 % 1009) / 100;
        noise[i] = (float)(i * 104729 % 997) / 50;
    }
    for (int i = 0; i < 50; i++) {
        int32_t a, b;
        struct sampler_row row = {logits, history, i % 4, &sampling, (uint64_t)i};
        struct sampler_row other = {noise, history, 2, &sampling, 7};
        cr_assert(sampler_pick(&used, &other, &a));
        cr_assert(sampler_pick(&used, &row, &a));
        sampler_deinit(&fresh);
        fresh = sampler_of(VOCAB);
        cr_assert(sampler_pick(&fresh, &row, &b));
        cr_assert_eq(a, b);
    }
    sampler_deinit(&used);
    sampler_deinit(&fresh);
}

Test(sampler, tiny_temperatures_are_greedy) {
    struct sampler sampler = sampler_of(4);
    static const float logits[4] = {1, 2, 2.0001F, -3};
    for (double temperature = 1e-6; temperature > 0; temperature /= 1e40)
        cr_assert_eq(pick(&sampler, logits, at(temperature), 3), 2);
    sampler_deinit(&sampler);
}

Test(sampler, settings_out_of_range_are_named) {
    struct error error;
    struct sampling sampling = greedy;
    cr_assert_eq(sampler_check(&sampling, &error), STATUS_OK);
    sampling.temperature = NAN;
    cr_assert_eq(sampler_check(&sampling, &error), STATUS_BAD_INPUT);
    cr_assert_str_eq(error.text, "the temperature must be a number from 0");
    sampling = greedy;
    sampling.top_p = 0;
    cr_assert_eq(sampler_check(&sampling, &error), STATUS_BAD_INPUT);
    cr_assert_str_eq(error.text, "top-p must be above 0 and at most 1");
    sampling = greedy;
    sampling.top_k = -1;
    cr_assert_eq(sampler_check(&sampling, &error), STATUS_BAD_INPUT);
    sampling = greedy;
    sampling.min_p = 1.5;
    cr_assert_eq(sampler_check(&sampling, &error), STATUS_BAD_INPUT);
    sampling = greedy;
    sampling.repeat_penalty = 0;
    cr_assert_eq(sampler_check(&sampling, &error), STATUS_BAD_INPUT);
}
