/* Verdicts are tried from the ones that make others meaningless to the ordinary ones: an op beyond
 * its floor is never praised, and one that waits is not blamed for its arithmetic. */
#include "core/profile/classify.h"

static const double ALARM_EFFICIENCY = 1.05;
static const double DISPATCH_SHARE = 0.5;
static const double WAIT_SHARE = 0.2;
static const double IMBALANCE_RATIO = 1.2;
static const double BOUND_EFFICIENCY = 0.6;

static double over(double amount, double rate) {
    return rate > 0 ? amount / rate : 0;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

struct classify_floor classify_floor_of(const struct classify_roofs *roofs, bool int8,
                                        const struct account_work *work, double step_bytes) {
    double rate = int8 && roofs->int8_flops > 0 ? roofs->int8_flops : roofs->flops;
    double products = over(work->flops, rate);
    double exponentials = over(work->exponentials, roofs->exponentials);
    bool cached = roofs->cache_size > 0 && step_bytes <= roofs->cache_size;
    double local = over(work->local, roofs->cache_bytes);
    struct classify_floor floor = {
        .compute = roofs->units_shared ? products + exponentials : larger(products, exponentials),
        .memory = over(work->stream_min, roofs->memory_bytes) + local,
    };
    floor.memory_cached =
        cached ? over(work->stream_min, roofs->cache_bytes) + local : floor.memory;
    floor.bound = larger(floor.compute, floor.memory);
    floor.bound_cached = larger(floor.compute, floor.memory_cached);
    return floor;
}

static enum classify_verdict verdict_of(const struct classify_facts *facts,
                                        const struct classify_result *result) {
    if (facts->seconds <= 0 || facts->floor.bound <= 0)
        return VERDICT_UNKNOWN;
    if (result->efficiency > ALARM_EFFICIENCY)
        return VERDICT_ALARM;
    if (facts->dispatch >= DISPATCH_SHARE * facts->seconds)
        return VERDICT_DISPATCH;
    if (result->wait_share > WAIT_SHARE)
        return result->imbalance > IMBALANCE_RATIO ? VERDICT_IMBALANCE : VERDICT_SYNC;
    if (result->efficiency < BOUND_EFFICIENCY)
        return VERDICT_POOR_KERNEL;
    return result->leans_to_memory ? VERDICT_BANDWIDTH : VERDICT_COMPUTE;
}

static struct classify_result against(const struct classify_facts *facts, double memory,
                                      double bound) {
    struct classify_result result = {
        .leans_to_memory = memory > facts->floor.compute,
        .floor = bound + facts->dispatch,
        .imbalance = facts->mean > 0 ? facts->slowest / facts->mean : 1,
    };
    if (facts->thread_seconds > 0)
        result.wait_share = (facts->capacity - facts->busy) / facts->thread_seconds;
    if (facts->seconds > 0)
        result.efficiency = result.floor / facts->seconds;
    result.gap = larger(facts->seconds - result.floor, 0);
    result.verdict = verdict_of(facts, &result);
    return result;
}

struct classify_result classify_op(const struct classify_facts *facts) {
    const struct classify_floor *floor = &facts->floor;
    struct classify_result result = against(facts, floor->memory, floor->bound);
    if (result.verdict == VERDICT_ALARM && floor->bound_cached < floor->bound)
        return against(facts, floor->memory_cached, floor->bound_cached);
    return result;
}

const char *classify_verdict_name(enum classify_verdict verdict) {
    static const char *const names[VERDICT_COUNT] = {
        "unknown", "compute", "bandwidth", "dispatch", "sync", "imbalance", "poor_kernel", "alarm",
    };
    return names[verdict];
}
