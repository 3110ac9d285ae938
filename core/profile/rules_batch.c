/* How much is computed together: chunks, sequences, pages. Times of matmuls and of attention in
 * other shapes come from whatif.h. */
#include <stdio.h>

#include "core/profile/rules_state.h"

static const double FULL = 0.8; /* of a limit: it is what limits */
static const double FLAT = 1.1; /* a row's time against the best: more rows hardly help */
static const double NEARLY_BEST = 0.98;
static const double REREAD_SHARE = 0.2;
static const double REPEATED_SHARE = 0.1;
static const double STALL_RATIO = 3;
static const double FRAGMENTED = 0.05;
static const double POOL_FULL = 0.9;
static const double RUN_OVER_BENCH = 1.12; /* a run's mean over a benchmark's best trial */

enum { CHUNK_MIN = 64, CHUNK_MAX = 2048, MORE_SEQUENCES = 8, BEST_ROWS = 1024 };

static double ratio(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

static double curve_ratio(const struct whatif_curve *curve, double rows_then, double rows_now) {
    double now = whatif_at(curve, rows_now);
    return now > 0 ? whatif_at(curve, rows_then) / now : 1;
}

/* Sections of all ops of a phase: each costs a dispatch, however few its rows. */
static double dispatch_of(const struct facts *facts, const struct facts_phase *phase) {
    double sections = 0;
    for (int kind = 0; kind < SITE_KIND_COUNT; kind++)
        sections += (double)phase->ops[kind].sections;
    return sections * facts->machine.dispatch_seconds;
}

/* ---- chunks ---- */

static double chunk_now(const struct facts *facts) {
    const struct facts_phase *prefill = &facts->phases[PHASE_PREFILL];
    const struct facts_phase *mixed = &facts->phases[PHASE_MIXED];
    return ratio(prefill->prefill_rows + mixed->prefill_rows, prefill->steps + mixed->steps);
}

/* Time of matmuls among `rows` rows over what it is now. What it is now was measured in the run, on
 * gate and up, which the benchmark computes, too. */
static double matmul_ratio(const struct facts *facts, const struct facts_phase *phase,
                           double rows) {
    double now = ratio(phase->ops[SITE_GATE_UP].seconds, phase->rows * facts->layers);
    double then = RUN_OVER_BENCH * whatif_at(&facts->whatif.matmul, rows);
    return now > 0 && then < now ? then / now : 1;
}

/* Ops on each row alone that are too small to be worth more than one thread. */
static double serial_saved(const struct facts *facts, const struct facts_phase *phase) {
    static const enum op_site_kind kinds[] = {SITE_NORM, SITE_RESIDUAL, SITE_ACTIVATION};
    double seconds = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        seconds += phase->ops[kinds[i]].sections == 0 ? phase->ops[kinds[i]].seconds : 0;
    return seconds * (1 - 1.0 / facts->settings.threads);
}

/* Rows that decode beside a chunk come together instead, as many as run at once. */
static double logits_saved(const struct facts *facts, const struct facts_phase *phase) {
    double now = ratio(phase->samples, phase->steps), then = facts->documents_at_once;
    bool apart = phase->decode_rows > 0 && now < then;
    return apart ? phase->ops[SITE_LOGITS].seconds * (1 - now / then) : 0;
}

/* Seconds that a phase's steps lose by chunks of `now` rows instead of `then`. */
static double phase_saved(const struct facts *facts, const struct facts_phase *phase, double now,
                          double then) {
    double rows = ratio(phase->rows, phase->steps), grown = rows + then - now;
    double prefill = ratio(phase->prefill_rows, phase->rows);
    if (phase->steps <= 0)
        return 0;
    double matmul = facts_matmul_seconds(phase) * (1 - matmul_ratio(facts, phase, grown));
    double attention = phase->ops[SITE_ATTENTION].seconds * prefill *
                       (1 - curve_ratio(&facts->whatif.attention, then, now));
    return matmul + attention + serial_saved(facts, phase) + logits_saved(facts, phase) +
           dispatch_of(facts, phase) * (1 - now / then);
}

static double chunk_saved(const struct facts *facts, double then) {
    double now = chunk_now(facts);
    double tokens = facts->prompt_tokens;
    then = then < tokens ? then : tokens;
    if (now <= 0 || then <= now)
        return 0;
    return phase_saved(facts, &facts->phases[PHASE_PREFILL], now, then) +
           phase_saved(facts, &facts->phases[PHASE_MIXED], now, then);
}

/* The smallest chunk that brings nearly all there is to be had. */
static int best_chunk(const struct facts *facts, double *saved) {
    int best = facts->settings.batch_tokens;
    *saved = 0;
    for (int chunk = CHUNK_MIN; chunk <= CHUNK_MAX; chunk *= 2) {
        double here = chunk > best ? chunk_saved(facts, chunk) : 0;
        if (here * NEARLY_BEST > *saved)
            best = chunk, *saved = here;
    }
    return best;
}

static bool predict_chunk(const struct facts *facts, struct advice *advice) {
    double saved;
    int chunk = best_chunk(facts, &saved);
    if (saved <= 0 || chunk_now(facts) < FULL * facts->settings.batch_tokens)
        return false;
    snprintf(advice->from, sizeof advice->from, "%d", facts->settings.batch_tokens);
    snprintf(advice->to, sizeof advice->to, "%d", chunk);
    rules_predict(advice, 0.7 * saved, saved, 1.2 * saved);
    advice->confidence = "high";
    return true;
}

bool rules_batch_chunk(const struct facts *facts, struct advice *advice) {
    double now = chunk_now(facts), here = whatif_at(&facts->whatif.matmul, now);
    double best = whatif_at(&facts->whatif.matmul, BEST_ROWS);
    if (here <= FLAT * best || !predict_chunk(facts, advice))
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "steps have %.0f prompt rows; measured: a row of gate and up takes %.2f us among "
             "%.0f rows and %.2f us among %d; matmuls with prompt rows take %.2f s",
             now, here * 1e6, now, best * 1e6, BEST_ROWS,
             facts_matmul_seconds(&facts->phases[PHASE_PREFILL]) +
                 facts_matmul_seconds(&facts->phases[PHASE_MIXED]));
    return true;
}

bool rules_batch_reread(const struct facts *facts, struct advice *advice) {
    const struct facts_phase *prefill = &facts->phases[PHASE_PREFILL];
    double kv = prefill->ops[SITE_ATTENTION].work.stream_min, bytes = 0;
    for (int kind = 0; kind < SITE_KIND_COUNT; kind++)
        bytes += prefill->ops[kind].work.stream_min;
    if (kv <= REREAD_SHARE * bytes || !predict_chunk(facts, advice))
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "chunks of %.0f rows read %.1f GB of KV again, %.0f %% of all bytes of prefill; "
             "attention takes %.2f s",
             chunk_now(facts), kv * 1e-9, 100 * kv / bytes, prefill->ops[SITE_ATTENTION].seconds);
    return true;
}

bool rules_batch_activations(const struct facts *facts, struct advice *advice) {
    const struct facts_phase *prefill = &facts->phases[PHASE_PREFILL];
    const struct machine *machine = &facts->machine;
    double cache = machine->cache_size, rows = chunk_now(facts);
    double memory = machine_with(machine, machine->threads).memory;
    int chunk = facts->settings.batch_tokens;
    if (cache <= 0 || facts->activation_bytes <= cache || memory >= machine->cache_bytes ||
        rows <= 0)
        return false;
    while (chunk > CHUNK_MIN && facts->activation_bytes * chunk / rows > cache)
        chunk /= 2;
    double best = whatif_at(&facts->whatif.matmul, BEST_ROWS);
    if (whatif_at(&facts->whatif.matmul, chunk) > FLAT * best)
        return false;
    double local = prefill->ops[SITE_NORM].seconds + prefill->ops[SITE_RESIDUAL].seconds +
                   prefill->ops[SITE_ACTIVATION].seconds;
    double saved = local * (1 - memory / machine->cache_bytes);
    snprintf(advice->from, sizeof advice->from, "%d", facts->settings.batch_tokens);
    snprintf(advice->to, sizeof advice->to, "%d", chunk);
    snprintf(advice->evidence, sizeof advice->evidence,
             "a step's activations take %.0f MB of %.0f MB of cache; norms, sums and gates take "
             "%.2f s at memory's %.1f GB/s instead of %.1f",
             facts->activation_bytes * 1e-6, cache * 1e-6, local, memory * 1e-9,
             machine->cache_bytes * 1e-9);
    rules_predict(advice, 0.2 * saved, 0.5 * saved, saved);
    return true;
}

/* Even steps make no work go away: the gain is latency's, and none in seconds. */
bool rules_batch_stalls(const struct facts *facts, struct advice *advice) {
    const struct facts_phase *mixed = &facts->phases[PHASE_MIXED];
    const struct facts_phase *decode = &facts->phases[PHASE_DECODE];
    double long_step = ratio(mixed->seconds, mixed->steps);
    double short_step = ratio(decode->seconds, decode->steps);
    if (short_step <= 0 || long_step <= STALL_RATIO * short_step)
        return false;
    snprintf(advice->from, sizeof advice->from, "%d", facts->settings.batch_tokens);
    snprintf(advice->to, sizeof advice->to, "%d", facts->settings.batch_tokens / 2);
    snprintf(advice->evidence, sizeof advice->evidence,
             "steps with prompt rows take %.1f ms, those without %.1f ms", long_step * 1e3,
             short_step * 1e3);
    rules_predict(advice, 0, 0, 0);
    return true;
}

/* ---- sequences ---- */

/* Seconds of decode steps that go when `then` sequences share what `now` do. */
static double sequences_saved(const struct facts *facts, double now, double then) {
    const struct facts_phase *decode = &facts->phases[PHASE_DECODE];
    double matmul = facts_matmul_seconds(decode) + decode->ops[SITE_LOGITS].seconds;
    return matmul * (1 - curve_ratio(&facts->whatif.matmul, then, now)) +
           dispatch_of(facts, decode) * (1 - now / then);
}

static double decoding(const struct facts *facts) {
    return ratio(facts->phases[PHASE_DECODE].rows, facts->phases[PHASE_DECODE].steps);
}

bool rules_batch_sequences(const struct facts *facts, struct advice *advice) {
    double now = decoding(facts), most = facts->documents_at_once + facts->documents_waiting;
    double room = facts->kv_peak_share > 0 ? facts->documents_at_once / facts->kv_peak_share : most;
    int then = facts->settings.max_sequences;
    if (now < FULL * then || facts->documents_waiting <= 0 || facts->kv_peak_share >= POOL_FULL)
        return false;
    while (2 * then <= MORE_SEQUENCES * facts->settings.max_sequences && then < most &&
           2 * then <= room)
        then *= 2;
    double saved = sequences_saved(facts, now, then < most ? then : most);
    if (then == facts->settings.max_sequences || saved <= 0)
        return false;
    snprintf(advice->from, sizeof advice->from, "%d", facts->settings.max_sequences);
    snprintf(advice->to, sizeof advice->to, "%d", then);
    snprintf(advice->evidence, sizeof advice->evidence,
             "decode steps have %.1f rows, %.0f documents wait and the KV pool is %.0f %% full; "
             "measured: a row of gate and up takes %.2f us among %.0f rows, %.2f among %d",
             now, facts->documents_waiting, facts->kv_peak_share * 100,
             whatif_at(&facts->whatif.matmul, now) * 1e6, now,
             whatif_at(&facts->whatif.matmul, then) * 1e6, then);
    rules_predict(advice, 0.6 * saved, saved, 1.2 * saved);
    advice->confidence = "high";
    return true;
}

static void set_pool(const struct facts *facts, struct advice *advice, double bytes) {
    snprintf(advice->from, sizeof advice->from, "%.0fM",
             (double)facts->settings.kv_bytes / (1 << 20));
    snprintf(advice->to, sizeof advice->to, "%.0fM", bytes / (1 << 20));
}

bool rules_batch_pool_full(const struct facts *facts, struct advice *advice) {
    double now = decoding(facts), pool = (double)facts->settings.kv_bytes;
    double bytes = 2 * pool < (double)facts->settings.kv_bytes_max
                       ? 2 * pool
                       : (double)facts->settings.kv_bytes_max;
    if (facts->kv_peak_share < POOL_FULL || facts->documents_waiting <= 0 || now <= 0 ||
        facts->documents_at_once >= facts->settings.max_sequences || bytes < 1.2 * pool)
        return false;
    double saved = sequences_saved(facts, now, now * bytes / pool);
    set_pool(facts, advice, bytes);
    snprintf(advice->evidence, sizeof advice->evidence,
             "the KV pool of %.0f MB is %.0f %% full with %.0f of %d sequences, and %.0f documents "
             "wait for it",
             pool * 1e-6, facts->kv_peak_share * 100, facts->documents_at_once,
             facts->settings.max_sequences, facts->documents_waiting);
    rules_predict(advice, 0.5 * saved, saved, 1.3 * saved);
    return true;
}

/* ---- prefixes ---- */

/* Seconds of prompt rows whose pages had been computed before. */
static double repeated_seconds(const struct facts *facts) {
    double seconds = 0, tokens = ratio(facts->repeated_tokens, facts->prompt_tokens);
    double pairs = ratio(facts->repeated_pairs, facts->prompt_pairs);
    for (int i = PHASE_PREFILL; i < PHASE_COUNT; i++) {
        const struct facts_phase *phase = &facts->phases[i];
        double prompt = ratio(phase->prefill_rows, phase->rows);
        double attention = phase->ops[SITE_ATTENTION].seconds;
        double rest = phase->seconds - attention - phase->ops[SITE_LOGITS].seconds;
        seconds += prompt * (attention * pairs + rest * tokens);
    }
    return seconds;
}

static bool predict_prefix(const struct facts *facts, struct advice *advice, double share) {
    double saved = repeated_seconds(facts);
    if (facts->repeated_tokens < REPEATED_SHARE * facts->prompt_tokens || saved <= 0)
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "%.0f of %.0f prompt tokens lie in whole pages that had been computed before; their "
             "share of prefill is %.2f s",
             facts->repeated_tokens, facts->prompt_tokens, saved);
    rules_predict(advice, 0.8 * share * saved, share * saved, share * 1.05 * saved);
    return true;
}

bool rules_batch_prefix(const struct facts *facts, struct advice *advice) {
    if (facts->settings.prefix_cache || !predict_prefix(facts, advice, 1))
        return false;
    snprintf(advice->from, sizeof advice->from, "off");
    snprintf(advice->to, sizeof advice->to, "on");
    advice->confidence = "high";
    return true;
}

bool rules_batch_evicted(const struct facts *facts, struct advice *advice) {
    double bytes = 2 * (double)facts->settings.kv_bytes;
    if (!facts->settings.prefix_cache || (double)facts->settings.kv_bytes_max < bytes)
        return false;
    set_pool(facts, advice, bytes);
    return predict_prefix(facts, advice, 0.5);
}

/* ---- pages and order ---- */

bool rules_batch_fragments(const struct facts *facts, struct advice *advice) {
    double table = facts->kv_table_share * facts_op_seconds(facts, SITE_ATTENTION);
    bool tight = facts->kv_peak_share >= POOL_FULL && facts->documents_waiting > 0;
    double now = decoding(facts);
    if (facts->fragmentation <= FRAGMENTED && facts->kv_table_share <= FRAGMENTED)
        return false;
    double more = tight ? sequences_saved(facts, now, now / (1 - facts->fragmentation)) : 0;
    snprintf(advice->evidence, sizeof advice->evidence,
             "%.1f %% of the slots of KV pages held no token; the pool was %.0f %% full",
             facts->fragmentation * 100, facts->kv_peak_share * 100);
    rules_predict(advice, 0, 0.5 * (more + table), more + table);
    advice->confidence = "low";
    return true;
}

bool rules_batch_tail(const struct facts *facts, struct advice *advice) {
    double idle = facts->tail_share * facts->seconds * (1 - facts->tail_occupancy);
    if (facts->tail_share <= 0 || facts->tail_occupancy >= 0.5)
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "in the last fifth of the run %.0f %% of the sequences at the peak were running",
             facts->tail_occupancy * 100);
    rules_predict(advice, 0.1 * idle, 0.3 * idle, idle);
    advice->confidence = "low";
    return true;
}
