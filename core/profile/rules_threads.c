/* Threads, and what else the process does between steps and beside them. */
#include <stdio.h>

#include "core/profile/rules_state.h"

static const double WAIT_SHARE = 0.2;
static const double IMBALANCE = 1.2;
static const double HOST_SHARE = 0.1;
static const double INPUT_SHARE = 0.05;

/* Thread seconds waited at the ends of sections, over all ops, as a share of all thread time. */
static double wait_share(const struct facts *facts, double *imbalance) {
    double seconds = 0, waited = 0, uneven = 0;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        for (int kind = 0; kind < SITE_KIND_COUNT; kind++) {
            const struct facts_op *op = &facts->phases[phase].ops[kind];
            seconds += op->seconds;
            waited += op->seconds * op->result.wait_share;
            uneven += op->seconds * (op->result.imbalance > 1 ? op->result.imbalance : 1);
        }
    *imbalance = seconds > 0 ? uneven / seconds : 1;
    return seconds > 0 ? waited / seconds : 0;
}

static void set_threads(struct advice *advice, int from, int to) {
    snprintf(advice->from, sizeof advice->from, "%d", from);
    snprintf(advice->to, sizeof advice->to, "%d", to);
}

/* More threads than CPUs wait for those that have none; otherwise one less is the next thing to
 * try. */
bool rules_threads_wait(const struct facts *facts, struct advice *advice) {
    double imbalance, share = wait_share(facts, &imbalance);
    int threads = facts->settings.threads;
    bool crowded = threads > facts->machine.threads_max;
    if (threads < 2 || share <= WAIT_SHARE)
        return false;
    set_threads(advice, threads, crowded ? facts->machine.threads_max : threads - 1);
    double waited = share * facts->seconds, fewer = facts->seconds / threads;
    snprintf(advice->evidence, sizeof advice->evidence,
             "%d threads on %d CPUs wait for each other %.0f %% of their time", threads,
             facts->machine.threads_max, share * 100);
    double most = crowded ? waited : waited - fewer;
    rules_predict(advice, 0.3 * most, 0.6 * most, most);
    advice->confidence = "low";
    return true;
}

/* Seconds of a phase's ops with other rates of arithmetic and of memory. */
static double scaled(const struct facts_phase *phase, double flops, double memory) {
    double seconds = 0;
    for (int kind = 0; kind < SITE_KIND_COUNT; kind++) {
        const struct facts_op *op = &phase->ops[kind];
        seconds += op->seconds / (op->result.leans_to_memory ? memory : flops);
    }
    return seconds;
}

static double saved_with(const struct facts *facts, int threads) {
    struct ceilings_step now = machine_with(&facts->machine, facts->settings.threads);
    struct ceilings_step then = machine_with(&facts->machine, threads);
    double saved = 0;
    if (now.flops <= 0 || now.memory <= 0 || then.flops <= 0 || then.memory <= 0)
        return 0;
    double flops = then.flops / now.flops, memory = then.memory / now.memory;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        saved += scaled(&facts->phases[phase], 1, 1) - scaled(&facts->phases[phase], flops, memory);
    return saved + facts->sampling * (1 - 1 / flops);
}

bool rules_threads_ladder(const struct facts *facts, struct advice *advice) {
    const struct machine *machine = &facts->machine;
    int threads = facts->settings.threads, best = threads;
    double most = 0;
    for (int i = 0; i < machine->step_count; i++) {
        int candidate = machine->steps[i].threads;
        double saved = candidate <= machine->threads_max ? saved_with(facts, candidate) : 0;
        if (saved > most)
            best = candidate, most = saved;
    }
    if (best == threads)
        return false;
    struct ceilings_step now = machine_with(machine, threads), then = machine_with(machine, best);
    set_threads(advice, threads, best);
    snprintf(advice->evidence, sizeof advice->evidence,
             "measured: %.0f GFLOP/s and %.1f GB/s with %d threads, %.0f and %.1f with %d; each op "
             "is scaled by the one it leans to",
             now.flops * 1e-9, now.memory * 1e-9, threads, then.flops * 1e-9, then.memory * 1e-9,
             best);
    rules_predict(advice, 0.8 * most, most, 1.1 * most);
    advice->confidence = "high";
    return true;
}

bool rules_threads_imbalance(const struct facts *facts, struct advice *advice) {
    double imbalance, share = wait_share(facts, &imbalance);
    if (facts->settings.threads < 2 || imbalance <= IMBALANCE)
        return false;
    double saved = facts->seconds * (1 - 1 / imbalance);
    snprintf(advice->evidence, sizeof advice->evidence,
             "the slowest thread of a section works %.2f times as long as the mean one; threads "
             "wait %.0f %% of their time",
             imbalance, share * 100);
    rules_predict(advice, 0.2 * saved, 0.5 * saved, saved);
    advice->confidence = "low";
    return true;
}

bool rules_threads_host(const struct facts *facts, struct advice *advice) {
    if (facts->seconds <= 0 || facts->host <= HOST_SHARE * facts->seconds)
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "planning and following take %.2f of %.2f s, between steps", facts->host,
             facts->seconds);
    rules_predict(advice, 0.2 * facts->host, 0.5 * facts->host, facts->host);
    return true;
}

bool rules_threads_faults(const struct facts *facts, struct advice *advice) {
    if (facts->major_faults <= 0)
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "%.0f pages were read from disk while computing, about %.2f s: memory is short",
             facts->major_faults, facts->fault_seconds);
    rules_predict(advice, 0.3 * facts->fault_seconds, facts->fault_seconds, facts->fault_seconds);
    return true;
}

bool rules_threads_input(const struct facts *facts, struct advice *advice) {
    if (facts->seconds <= 0 || facts->waiting <= INPUT_SHARE * facts->seconds)
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "the engine waited %.2f of %.2f s for documents; reading and tokenizing took %.2f s",
             facts->waiting, facts->seconds, facts->input_busy);
    rules_predict(advice, 0.3 * facts->waiting, 0.7 * facts->waiting, facts->waiting);
    return true;
}
