/* Number formats and kernel paths: what changes results, so consent or a decision is needed. */
#include <stdio.h>
#include <string.h>

#include "core/profile/rules_state.h"

static const double ATTENTION_SHARE = 0.3;
static const double LOGITS_SHARE = 0.1;
static const double EXTRA_BYTES = 1.5;

/* Matmuls of decode steps that only read weights, and no more rows to be had. */
bool rules_numbers_weights(const struct facts *facts, struct advice *advice) {
    const struct facts_phase *decode = &facts->phases[PHASE_DECODE];
    double seconds = 0, bytes = 0;
    for (int kind = 0; kind < SITE_KIND_COUNT; kind++) {
        const struct facts_op *op = &decode->ops[kind];
        if (!op_site_is_matmul((enum op_site_kind)kind) || op->result.verdict != VERDICT_BANDWIDTH)
            continue;
        seconds += op->seconds;
        bytes += op->work.stream_min;
    }
    if (seconds <= 0 || facts->documents_waiting > 0)
        return false;
    snprintf(advice->from, sizeof advice->from, "as it is");
    snprintf(advice->to, sizeof advice->to, "half the bits");
    snprintf(advice->evidence, sizeof advice->evidence,
             "reading %.1f GB of weights bounds %.2f s of decode matmuls, and no more documents "
             "can share a read",
             bytes * 1e-9, seconds);
    rules_predict(advice, 0.2 * seconds, 0.4 * seconds, 0.5 * seconds);
    advice->confidence = "low";
    return true;
}

/* Attention reads half the bytes; whether it is faster by that was measured. */
bool rules_numbers_kv(const struct facts *facts, struct advice *advice) {
    const struct whatif *whatif = &facts->whatif;
    const struct facts_phase *decode = &facts->phases[PHASE_DECODE];
    const struct facts_phase *mixed = &facts->phases[PHASE_MIXED];
    const struct facts_phase *prefill = &facts->phases[PHASE_PREFILL];
    double attention = decode->ops[SITE_ATTENTION].seconds;
    if (facts->settings.kv_int8 || decode->seconds <= 0 || whatif->decode_bf16 <= 0 ||
        whatif->prefill_bf16 <= 0 || attention <= ATTENTION_SHARE * decode->seconds)
        return false;
    double ratio = whatif->decode_int8 / whatif->decode_bf16;
    double slower = whatif->prefill_int8 / whatif->prefill_bf16 - 1;
    double other = prefill->ops[SITE_ATTENTION].seconds + mixed->ops[SITE_ATTENTION].seconds;
    double saved = attention * (1 - ratio) - other * slower;
    if (saved <= 0)
        return false;
    snprintf(advice->from, sizeof advice->from, "bf16");
    snprintf(advice->to, sizeof advice->to, "int8");
    snprintf(
        advice->evidence, sizeof advice->evidence,
        "attention takes %.2f of %.2f s of decode (%s, %.1f GB/s); measured at %d sequences of "
        "%d tokens: bf16 %.2f ms a layer, int8 %.2f; in prefill int8 takes %.2f times as long",
        attention, decode->seconds,
        classify_verdict_name(decode->ops[SITE_ATTENTION].result.verdict),
        decode->ops[SITE_ATTENTION].work.stream_moved / attention * 1e-9, whatif->decoding,
        whatif->context, whatif->decode_bf16 * 1e3, whatif->decode_int8 * 1e3, 1 + slower);
    rules_predict(advice, 0.7 * saved, saved, 1.2 * saved);
    advice->confidence = "high";
    return true;
}

bool rules_numbers_logits(const struct facts *facts, struct advice *advice) {
    const struct facts_phase *prefill = &facts->phases[PHASE_PREFILL];
    double logits = prefill->ops[SITE_LOGITS].seconds;
    if (prefill->seconds <= 0 || logits <= LOGITS_SHARE * prefill->seconds)
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "logits of %.0f rows take %.2f of %.2f s of prefill; only sampled rows are computed",
             prefill->samples, logits, prefill->seconds);
    rules_predict(advice, 0, 0.3 * logits, 0.5 * logits);
    advice->confidence = "low";
    return true;
}

/* Narrower instructions than the CPU has, or bytes beyond need. */
bool rules_numbers_path(const struct facts *facts, struct advice *advice) {
    const struct facts_settings *settings = &facts->settings;
    double seconds = 0, moved = 0, least = 0;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        for (int kind = 0; kind < SITE_KIND_COUNT; kind++) {
            const struct facts_op *op = &facts->phases[phase].ops[kind];
            seconds += op->seconds;
            moved += op_site_is_matmul((enum op_site_kind)kind) ? op->work.stream_moved : 0;
            least += op_site_is_matmul((enum op_site_kind)kind) ? op->work.stream_min : 0;
        }
    bool narrow = settings->isa_used != NULL && strcmp(settings->isa_used, settings->isa_best) != 0;
    if (!narrow && moved <= EXTRA_BYTES * least)
        return false;
    if (narrow) {
        snprintf(advice->from, sizeof advice->from, "%s", settings->isa_used);
        snprintf(advice->to, sizeof advice->to, "%s", settings->isa_best);
        snprintf(advice->evidence, sizeof advice->evidence,
                 "%.2f s of kernels run with %s; this CPU has %s", seconds, settings->isa_used,
                 settings->isa_best);
        rules_predict(advice, 0.3 * seconds, 0.5 * seconds, 0.9 * seconds);
        advice->confidence = "low";
        return true;
    }
    advice->consent = ADVICE_ONLY;
    advice->setting = NULL;
    snprintf(advice->evidence, sizeof advice->evidence,
             "matmuls read %.1f GB for %.1f GB of weights: a format without a fast path, please "
             "report it",
             moved * 1e-9, least * 1e-9);
    rules_predict(advice, 0, 0.3 * seconds * (1 - least / moved), seconds * (1 - least / moved));
    return true;
}
