/* From sites to op kinds: times add up, verdicts are made of the sums. */
#include "core/profile/facts.h"

static void add_work(struct account_work *into, const struct account_work *from) {
    into->flops += from->flops;
    into->flops_issued += from->flops_issued;
    into->exponentials += from->exponentials;
    into->stream_min += from->stream_min;
    into->stream_moved += from->stream_moved;
    into->local += from->local;
}

struct sums {
    struct classify_facts facts;
    int64_t sections;
};

/* A site's share of its op kind. */
static void add_site(const struct span_recorder *recorder, enum span_phase phase, int site,
                     struct facts_op *op, struct sums *sums) {
    const struct span_total *total = &recorder->totals[phase][site];
    const struct span_work_total *work = &recorder->works[phase][recorder->sites.sites[site].work];
    double threads = recorder->threads;
    sums->sections += total->sections;
    sums->facts.seconds += (double)total->ns * 1e-9;
    sums->facts.floor.compute += work->floor.compute;
    sums->facts.floor.memory += work->floor.memory;
    sums->facts.floor.bound += work->floor.bound;
    sums->facts.floor.memory_cached += work->floor.memory_cached;
    sums->facts.floor.bound_cached += work->floor.bound_cached;
    sums->facts.dispatch += (double)total->sections * recorder->options.roofs.dispatch_seconds;
    sums->facts.busy += (double)total->busy_ns * 1e-9;
    sums->facts.capacity += (double)total->section_ns * 1e-9 * threads;
    sums->facts.slowest += (double)total->slowest_ns * 1e-9;
    sums->facts.mean += (double)total->busy_ns * 1e-9 / threads;
    add_work(&op->work, &work->work);
}

static void fill_ops(struct facts_phase *phase, const struct span_recorder *recorder,
                     enum span_phase number) {
    struct sums sums[SITE_KIND_COUNT] = {0};
    for (int i = 0; i < recorder->sites.count; i++) {
        enum op_site_kind kind = recorder->sites.sites[i].kind;
        add_site(recorder, number, i, &phase->ops[kind], &sums[kind]);
    }
    for (int kind = 0; kind < SITE_KIND_COUNT; kind++) {
        struct facts_op *op = &phase->ops[kind];
        sums[kind].facts.thread_seconds = sums[kind].facts.seconds * recorder->threads;
        op->seconds = sums[kind].facts.seconds;
        op->sections = sums[kind].sections;
        op->result = classify_op(&sums[kind].facts);
    }
}

static void fill_phase(struct facts *facts, const struct span_recorder *recorder,
                       enum span_phase number) {
    const struct span_phase_total *total = &recorder->phases[number];
    struct facts_phase *phase = &facts->phases[number];
    *phase = (struct facts_phase){
        .steps = (double)total->steps,
        .seconds = (double)total->ns * 1e-9,
        .between = (double)total->between_ns * 1e-9,
        .rows = (double)total->rows,
        .prefill_rows = (double)total->prefill_rows,
        .decode_rows = (double)(total->rows - total->prefill_rows),
        .samples = (double)total->samples,
        .runs = (double)total->runs,
        .context = total->runs > 0 ? (double)total->tokens_held / (double)total->runs : 0,
    };
    fill_ops(phase, recorder, number);
}

/* Slots of held pages that no position has. */
static double fragmentation_of(const struct span_recorder *recorder) {
    double slots = 0, keys = 0;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        for (int g = 0; g < recorder->model->kv_group_count; g++) {
            const struct account_step_group *group = &recorder->phases[phase].groups[g];
            if (recorder->model->kv_groups[g].window > 0)
                continue;
            slots += (double)group->pages_held * KV_PAGE_TOKENS;
            keys += (double)group->keys;
        }
    return slots > 0 ? 1 - keys / slots : 0;
}

/* The last fifth of the run's time: how many sequences ran, against the most. */
static void fill_tail(struct facts *facts, const struct span_recorder *recorder) {
    int most = 0;
    double steps = 0, runs = 0, seconds = 0;
    if (recorder->steps_kept == 0)
        return;
    int64_t start_ns = recorder->first_start_ns, end_ns = recorder->last_end_ns;
    int64_t tail_ns = end_ns - (end_ns - start_ns) / 5;
    for (int i = 0; i < recorder->steps_kept; i++) {
        const struct span_step *step = &recorder->steps[i];
        most = step->runs > most ? step->runs : most;
        if (step->start_ns < tail_ns)
            continue;
        steps++;
        runs += step->runs;
        seconds += (double)(step->end_ns - step->start_ns) * 1e-9 * (double)recorder->steps_stride;
    }
    facts->tail_occupancy = steps > 0 && most > 0 ? runs / steps / most : 1;
    facts->tail_share = facts->seconds > 0 ? seconds / facts->seconds : 0;
}

void facts_from_spans(struct facts *facts, const struct span_recorder *recorder) {
    const struct model *model = recorder->model;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        fill_phase(facts, recorder, (enum span_phase)phase);
    facts->seconds = (double)(recorder->last_end_ns - recorder->first_start_ns) * 1e-9;
    facts->prompt_tokens = (double)recorder->census.tokens;
    facts->prompt_pairs = (double)recorder->census.pairs;
    facts->repeated_tokens = (double)recorder->census.repeated_tokens;
    facts->repeated_pairs = (double)recorder->census.repeated_pairs;
    facts->fragmentation = fragmentation_of(recorder);
    facts->activation_bytes = (double)recorder->memory_peak.activations;
    facts->gqa_group = model->head_count / model->kv_head_count;
    facts->layers = model->layer_count;
    facts->overhead = span_overhead_seconds(recorder);
    fill_tail(facts, recorder);
}

double facts_op_seconds(const struct facts *facts, enum op_site_kind kind) {
    double seconds = 0;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        seconds += facts->phases[phase].ops[kind].seconds;
    return seconds;
}

double facts_matmul_seconds(const struct facts_phase *phase) {
    return phase->ops[SITE_QKV].seconds + phase->ops[SITE_ATTENTION_OUT].seconds +
           phase->ops[SITE_GATE_UP].seconds + phase->ops[SITE_DOWN].seconds;
}
