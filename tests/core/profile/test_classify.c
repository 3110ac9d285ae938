/* Each verdict from numbers made for it. */
#include "core/profile/classify.h"

#include <criterion/criterion.h>

static const struct classify_roofs roofs = {.flops = 100e9,
                                            .int8_flops = 200e9,
                                            .exponentials = 10e9,
                                            .memory_bytes = 20e9,
                                            .cache_bytes = 80e9,
                                            .cache_size = 32e6};

Test(classify, a_floor_is_the_larger_of_its_terms) {
    struct account_work work = {.flops = 10e9, .exponentials = 0.5e9, .stream_min = 1e9};
    struct classify_floor floor = classify_floor_of(&roofs, false, &work, 1e9);
    cr_expect_float_eq(floor.compute, 0.1, 1e-9);
    cr_expect_float_eq(floor.memory, 0.05, 1e-9);
    cr_expect_float_eq(floor.bound, 0.1, 1e-9);
    floor = classify_floor_of(&roofs, true, &work, 1e9);
    cr_expect_float_eq(floor.compute, 0.05, 1e-9, "int8 products");
    floor = classify_floor_of(&roofs, false, &work, 20e6);
    cr_expect_float_eq(floor.memory, 0.05, 1e-9);
    cr_expect_float_eq(floor.memory_cached, 1.0 / 80, 1e-9, "a step's bytes fit the cache");
    struct classify_roofs shared = roofs;
    shared.units_shared = true;
    cr_expect_float_eq(classify_floor_of(&shared, false, &work, 1e9).compute, 0.15, 1e-9);
}

static struct classify_facts facts_of(double seconds, double compute, double memory) {
    return (struct classify_facts){
        .seconds = seconds,
        .floor = {compute, memory, compute > memory ? compute : memory, memory,
                  compute > memory ? compute : memory},
        .busy = 1.9 * seconds,
        .capacity = 2 * seconds,
        .slowest = seconds,
        .mean = 0.95 * seconds,
        .thread_seconds = 2 * seconds,
    };
}

static enum classify_verdict verdict(const struct classify_facts *facts) {
    return classify_op(facts).verdict;
}

Test(classify, verdicts) {
    struct classify_facts facts = facts_of(1, 0.8, 0.2);
    cr_expect_eq(verdict(&facts), VERDICT_COMPUTE);
    facts = facts_of(1, 0.2, 0.8);
    cr_expect_eq(verdict(&facts), VERDICT_BANDWIDTH);
    facts = facts_of(1, 0.2, 0.4);
    cr_expect_eq(verdict(&facts), VERDICT_POOR_KERNEL);
    cr_expect(classify_op(&facts).leans_to_memory);
    cr_expect_float_eq(classify_op(&facts).gap, 0.6, 1e-9);
    facts.dispatch = 0.55;
    cr_expect_eq(verdict(&facts), VERDICT_DISPATCH);
    facts = facts_of(1, 0.8, 0.2);
    facts.busy = 1.4;
    facts.slowest = 0.75;
    facts.mean = 0.7;
    cr_expect_eq(verdict(&facts), VERDICT_SYNC);
    facts.slowest = 0.95;
    cr_expect_eq(verdict(&facts), VERDICT_IMBALANCE);
}

Test(classify, faster_than_the_floor_is_an_alarm_never_a_success) {
    struct classify_facts facts = facts_of(1, 1.06, 0.2);
    cr_expect_eq(verdict(&facts), VERDICT_ALARM);
    facts = facts_of(1, 1.04, 0.2);
    cr_expect_eq(verdict(&facts), VERDICT_COMPUTE);
    facts = facts_of(1, 0.2, 1.5);
    cr_expect_eq(verdict(&facts), VERDICT_ALARM);
    facts.floor.memory_cached = facts.floor.bound_cached = 0.9;
    cr_expect_eq(verdict(&facts), VERDICT_BANDWIDTH, "it came from the cache");
    facts = facts_of(0, 0, 0);
    cr_expect_eq(verdict(&facts), VERDICT_UNKNOWN);
}
