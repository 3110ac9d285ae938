/* Each rule fires on facts made for it, and not without its symptom; the table as a whole ranks by
 * seconds and is silent below the noise. */
#include "core/profile/rules.h"

#include <criterion/criterion.h>
#include <string.h>

/* Ten seconds of a run with nothing wrong. */
static struct facts healthy(void) {
    struct facts facts = {
        .settings = {.threads = 2,
                     .batch_tokens = 512,
                     .max_sequences = 64,
                     .prefix_cache = true,
                     .kv_bytes = 1u << 30,
                     .kv_bytes_max = 8ull << 30,
                     .isa_used = "avx512",
                     .isa_best = "avx512"},
        .seconds = 10,
        .documents = 20,
        .documents_at_once = 20,
        .kv_peak_share = 0.3,
        .prompt_tokens = 100000,
        .prompt_pairs = 1e8,
        .tail_occupancy = 1,
        .gqa_group = 3,
        .layers = 30,
        .machine = {.threads = 2,
                    .threads_max = 2,
                    .step_count = 2,
                    .steps = {{1, 500e9, 40e9, 100e9}, {2, 1000e9, 45e9, 200e9}},
                    .cache_bytes = 200e9,
                    .cache_size = 32e6,
                    .dispatch_seconds = 1e-6},
        .whatif = {.matmul = {3, {1, 16, 512}, {30e-6, 5e-6, 3.5e-6}},
                   .attention = {3, {16, 64, 512}, {60e-6, 40e-6, 30e-6}},
                   .context = 4000,
                   .decoding = 8,
                   .decode_bf16 = 1e-3,
                   .decode_int8 = 0.6e-3,
                   .prefill_bf16 = 1e-3,
                   .prefill_int8 = 1.05e-3},
    };
    struct facts_phase *prefill = &facts.phases[PHASE_PREFILL];
    struct facts_phase *decode = &facts.phases[PHASE_DECODE];
    *prefill = (struct facts_phase){
        .steps = 195, .seconds = 7, .rows = 1e5, .prefill_rows = 1e5, .samples = 20, .runs = 195};
    prefill->ops[SITE_GATE_UP].seconds = 1e5 * 30 * 1.12 * 3.5e-6 / 4;
    prefill->ops[SITE_GATE_UP].result.imbalance = 1;
    prefill->ops[SITE_ATTENTION].seconds = 2;
    *decode = (struct facts_phase){.steps = 300,
                                   .seconds = 3,
                                   .rows = 6000,
                                   .decode_rows = 6000,
                                   .samples = 6000,
                                   .runs = 6000,
                                   .context = 4000};
    decode->ops[SITE_ATTENTION].seconds = 0.5;
    decode->ops[SITE_GATE_UP].seconds = 1;
    return facts;
}

static bool fires(int rule, const struct facts *facts, struct advice *advice) {
    bool found = rules_try(rule, facts, advice);
    if (found) {
        cr_expect_leq(advice->saved_low, advice->saved);
        cr_expect_leq(advice->saved, advice->saved_high);
        cr_expect_gt(strlen(advice->evidence), 20, "rule %d says what it saw", rule);
    }
    return found;
}

Test(rules, a_healthy_run_gets_no_advice) {
    struct facts facts = healthy();
    struct rules_advice advice;
    rules_run(&facts, &advice);
    for (int i = 0; i < advice.count; i++)
        cr_log_warn("rule %d: %s", advice.items[i].rule, advice.items[i].evidence);
    cr_expect_eq(advice.count, 0);
}

Test(rules, one_thread_of_two) {
    struct facts facts = healthy();
    struct advice advice;
    facts.settings.threads = facts.machine.threads = 1;
    facts.phases[PHASE_DECODE].ops[SITE_ATTENTION].result.leans_to_memory = true;
    cr_assert(fires(14, &facts, &advice));
    cr_expect_str_eq(advice.setting, "threads");
    cr_expect_str_eq(advice.to, "2");
    double compute = facts.phases[PHASE_PREFILL].ops[SITE_GATE_UP].seconds + 2 + 1;
    cr_expect_float_eq(advice.saved, compute / 2 + 0.5 * (1 - 40.0 / 45), 1e-6);
}

Test(rules, a_flat_ladder_frees_threads) {
    struct facts facts = healthy();
    struct advice advice;
    facts.settings.threads = facts.machine.threads = 4;
    facts.machine.threads_max = 4;
    facts.machine.step_count = 3;
    facts.machine.steps[2] = (struct ceilings_step){4, 900e9, 44e9, 200e9};
    cr_assert(fires(14, &facts, &advice));
    cr_expect_str_eq(advice.to, "2");
}

Test(rules, small_chunks) {
    struct facts facts = healthy();
    struct advice advice;
    struct facts_phase *prefill = &facts.phases[PHASE_PREFILL];
    cr_expect_not(fires(5, &facts, &advice));
    facts.settings.batch_tokens = 16;
    prefill->steps = 1e5 / 16;
    prefill->ops[SITE_GATE_UP].seconds = 1e5 * 30 * 1.12 * 5e-6;
    cr_assert(fires(5, &facts, &advice));
    cr_expect_str_eq(advice.setting, "batch-tokens");
    cr_expect_str_eq(advice.from, "16");
    double matmul = prefill->ops[SITE_GATE_UP].seconds * (1 - 3.5 / 5);
    cr_expect_float_eq(advice.saved, matmul + 2 * 0.5, 0.15 * advice.saved);
    /* Another reason for the same: */
    cr_expect_not(fires(6, &facts, &advice));
    prefill->ops[SITE_ATTENTION].work.stream_min = 3e9;
    prefill->ops[SITE_GATE_UP].work.stream_min = 5e9;
    cr_expect(fires(6, &facts, &advice));
}

Test(rules, prefix_cache_off) {
    struct facts facts = healthy();
    struct advice advice;
    facts.repeated_tokens = 80000;
    facts.repeated_pairs = 0.7e8;
    cr_expect(fires(17, &facts, &advice), "evicted, when it is on");
    cr_expect_str_eq(advice.setting, "kv-memory");
    facts.settings.prefix_cache = false;
    cr_expect_not(fires(17, &facts, &advice));
    cr_assert(fires(16, &facts, &advice));
    cr_expect_str_eq(advice.setting, "prefix-cache");
    cr_expect_float_eq(advice.saved, 2 * 0.7 + 5 * 0.8, 1e-6);
    facts.repeated_tokens = 5000;
    cr_expect_not(fires(16, &facts, &advice));
}

Test(rules, bf16_kv_in_long_decode) {
    struct facts facts = healthy();
    struct advice advice;
    struct facts_phase *decode = &facts.phases[PHASE_DECODE];
    cr_expect_not(fires(3, &facts, &advice), "a sixth of decode is attention");
    decode->ops[SITE_ATTENTION].seconds = 2;
    cr_assert(fires(3, &facts, &advice));
    cr_expect_eq(advice.consent, ADVICE_CONSENT);
    cr_expect_str_eq(advice.to, "int8");
    cr_expect_float_eq(advice.saved, 2 * 0.4 - 2 * 0.05, 1e-6);
    facts.whatif.decode_int8 = 1.1e-3;
    cr_expect_not(fires(3, &facts, &advice), "measured: int8 is not faster here");
    facts.whatif.decode_int8 = 0.6e-3;
    facts.settings.kv_int8 = true;
    cr_expect_not(fires(3, &facts, &advice));
}

Test(rules, few_sequences_at_once) {
    struct facts facts = healthy();
    struct advice advice;
    cr_expect_not(fires(1, &facts, &advice), "nobody waits");
    facts.settings.max_sequences = 1;
    facts.phases[PHASE_DECODE].rows = 300;
    facts.documents_at_once = 1;
    facts.documents_waiting = 19;
    facts.kv_peak_share = 0.02;
    cr_assert(fires(1, &facts, &advice));
    cr_expect_str_eq(advice.setting, "max-sequences");
    cr_expect_str_eq(advice.to, "8");
    cr_expect_gt(advice.saved, 0.5);
    facts.kv_peak_share = 0.95;
    cr_expect_not(fires(1, &facts, &advice), "the pool is full");
    facts.settings.max_sequences = 64;
    cr_expect(fires(4, &facts, &advice));
    cr_expect_str_eq(advice.to, "2048M");
}

Test(rules, memory_and_pages) {
    struct facts facts = healthy();
    struct advice advice;
    cr_expect_not(fires(7, &facts, &advice));
    facts.activation_bytes = 40e6;
    facts.phases[PHASE_PREFILL].ops[SITE_NORM].seconds = 1;
    cr_assert(fires(7, &facts, &advice));
    cr_expect_str_eq(advice.to, "256");
    cr_expect_not(fires(18, &facts, &advice));
    facts.fragmentation = 0.2;
    cr_assert(fires(18, &facts, &advice));
    cr_expect_eq(advice.consent, ADVICE_ONLY);
    cr_expect_not(fires(24, &facts, &advice));
    facts.major_faults = 1000;
    facts.fault_seconds = 0.5;
    cr_expect(fires(24, &facts, &advice));
    cr_expect_float_eq(advice.saved, 0.5, 1e-9);
}

Test(rules, steps_and_threads) {
    struct facts facts = healthy();
    struct advice advice;
    cr_expect_not(fires(8, &facts, &advice));
    facts.phases[PHASE_MIXED] = (struct facts_phase){.steps = 10, .seconds = 1};
    cr_expect(fires(8, &facts, &advice));
    cr_expect_eq(advice.saved, 0, "latency only");
    cr_expect_not(fires(10, &facts, &advice));
    facts.host = 2;
    cr_expect(fires(10, &facts, &advice));
    cr_expect_not(fires(13, &facts, &advice));
    cr_expect_not(fires(15, &facts, &advice));
    for (int kind = 0; kind < SITE_KIND_COUNT; kind++) {
        facts.phases[PHASE_PREFILL].ops[kind].result.wait_share = 0.4;
        facts.phases[PHASE_DECODE].ops[kind].result.wait_share = 0.4;
        facts.phases[PHASE_PREFILL].ops[kind].result.imbalance = 1.6;
    }
    cr_expect(fires(15, &facts, &advice));
    facts.settings.threads = 6;
    cr_assert(fires(13, &facts, &advice));
    cr_expect_str_eq(advice.to, "2", "as many as there are CPUs");
}

Test(rules, numbers_and_paths) {
    struct facts facts = healthy();
    struct advice advice;
    struct facts_op *down = &facts.phases[PHASE_DECODE].ops[SITE_DOWN];
    cr_expect_not(fires(2, &facts, &advice));
    down->seconds = 1;
    down->result.verdict = VERDICT_BANDWIDTH;
    cr_expect(fires(2, &facts, &advice));
    cr_expect_not(fires(22, &facts, &advice));
    facts.phases[PHASE_PREFILL].ops[SITE_LOGITS].seconds = 1;
    cr_expect(fires(22, &facts, &advice));
    cr_expect_not(fires(23, &facts, &advice));
    down->work.stream_min = 1e9;
    down->work.stream_moved = 2e9;
    cr_assert(fires(23, &facts, &advice));
    cr_expect_eq(advice.consent, ADVICE_ONLY);
    facts.settings.isa_used = "scalar";
    cr_assert(fires(23, &facts, &advice));
    cr_expect_str_eq(advice.setting, "isa");
    cr_expect_str_eq(advice.to, "avx512");
}

Test(rules, input_and_tail) {
    struct facts facts = healthy();
    struct advice advice;
    cr_expect_not(fires(25, &facts, &advice));
    facts.tail_share = 0.2;
    facts.tail_occupancy = 0.1;
    cr_expect(fires(25, &facts, &advice));
    cr_expect_not(fires(26, &facts, &advice));
    facts.waiting = 1;
    cr_expect(fires(26, &facts, &advice));
}

Test(rules, of_devices_only_where_there_is_one) {
    static const int numbers[] = {9, 11, 12, 19, 20, 21};
    struct facts facts = healthy();
    struct advice advice;
    facts.device = (struct facts_device){.units = 132,
                                         .gap_share = 0.3,
                                         .kernel_median = 5e-6,
                                         .combine_share = 0.2,
                                         .transfer_exposed = 1,
                                         .transfer_rate = 5e9,
                                         .transfer_ceiling = 20e9};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        cr_expect_not(fires(numbers[i], &facts, &advice), "rule %d", numbers[i]);
    facts.device.present = true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        cr_expect(fires(numbers[i], &facts, &advice), "rule %d", numbers[i]);
}

Test(rules, the_best_comes_first_and_noise_silences) {
    struct facts facts = healthy();
    struct rules_advice advice;
    facts.settings.prefix_cache = false;
    facts.repeated_tokens = 80000;
    facts.repeated_pairs = 0.7e8;
    facts.phases[PHASE_DECODE].ops[SITE_ATTENTION].seconds = 2;
    rules_run(&facts, &advice);
    cr_assert_geq(advice.count, 2);
    cr_expect_str_eq(advice.items[0].setting, "prefix-cache");
    cr_expect_str_eq(advice.items[1].setting, "kv-dtype");
    cr_expect_float_eq(advice.items[0].gain, 10 / (10 - advice.items[0].saved) - 1, 1e-9);
    facts.noise = 0.04;
    rules_run(&facts, &advice);
    cr_expect_eq(advice.count, 1, "7 % are within two sigma");
    facts.noise = 0.4;
    rules_run(&facts, &advice);
    cr_expect_eq(advice.count, 0);
}
