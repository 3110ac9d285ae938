/* The detailed half of the recorder: accounting and floors, threads, memory, steps and samples. */
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/profile/span_state.h"

enum {
    SECTIONS_MAX = 64, /* between two ops */
    ACTIVATION_BYTES = 4,
};

/* ---- life ---- */

static enum status create_meter(struct span_recorder *recorder, struct error *error) {
    size_t threads = (size_t)recorder->threads;
    struct thread_pool_meter *meter = &recorder->meter;
    *meter = (struct thread_pool_meter){
        .capacity = SECTIONS_MAX,
        .sections = calloc(SECTIONS_MAX, sizeof *meter->sections),
        .slots = calloc(SECTIONS_MAX * threads, sizeof *meter->slots),
    };
    return meter->sections && meter->slots ? STATUS_OK : error_no_memory(error, "the profile");
}

static enum status create_sample(struct span_recorder *recorder, struct span_sample *sample,
                                 struct error *error) {
    size_t sections = SPAN_SAMPLE_SECTIONS_MAX, threads = (size_t)recorder->threads;
    sample->stamps = calloc((size_t)recorder->sites.count + 1, sizeof *sample->stamps);
    sample->slots = calloc(sections * threads, sizeof *sample->slots);
    sample->section_sites = calloc(sections, sizeof *sample->section_sites);
    return sample->stamps && sample->slots && sample->section_sites
               ? STATUS_OK
               : error_no_memory(error, "the profile's samples");
}

enum status span_detail_create(struct span_recorder *recorder, struct error *error) {
    const struct span_options *options = &recorder->options;
    struct account_shape shape =
        account_shape_of(recorder->model, options->page_bytes, options->block_positions);
    for (int g = 0; g < recorder->model->kv_group_count; g++)
        recorder->page_bytes[g] = options->page_bytes[g];
    TRY(account_init(&recorder->account, &shape, options->page_count, error));
    TRY(census_init(&recorder->census, options->page_count[0], error));
    TRY(create_meter(recorder, error));
    recorder->steps_stride = 1;
    recorder->steps = calloc(SPAN_STEPS_MAX, sizeof *recorder->steps);
    recorder->samples = calloc(SPAN_SAMPLES_MAX, sizeof *recorder->samples);
    if (recorder->steps == NULL || recorder->samples == NULL)
        return error_no_memory(error, "the profile's steps");
    for (int i = 0; i < SPAN_SAMPLES_MAX; i++)
        TRY(create_sample(recorder, &recorder->samples[i], error));
    thread_pool_measure(recorder->pool, &recorder->meter);
    return STATUS_OK;
}

void span_detail_destroy(struct span_recorder *recorder) {
    if (!recorder->options.detail)
        return;
    thread_pool_measure(recorder->pool, NULL);
    for (int i = 0; recorder->samples != NULL && i < SPAN_SAMPLES_MAX; i++) {
        free(recorder->samples[i].stamps);
        free(recorder->samples[i].slots);
        free(recorder->samples[i].section_sites);
    }
    free(recorder->samples);
    free(recorder->steps);
    free(recorder->meter.sections);
    free(recorder->meter.slots);
    census_deinit(&recorder->census);
    account_deinit(&recorder->account);
}

/* ---- a step ---- */

/* The n-th step of a phase, cold first step apart: a few early ones, then ever rarer. */
static bool is_sampled(int64_t number) {
    static const int64_t numbers[] = {1, 2, 3, 10, 30, 100, 300, 1000};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (number == numbers[i])
            return true;
    return false;
}

void span_detail_begin(struct span_recorder *recorder, const struct step_plan *plan) {
    account_add_step(&recorder->account, plan, &recorder->asked);
    census_add_step(&recorder->census, plan);
    recorder->sampling = NULL;
    if (recorder->sample_count < SPAN_SAMPLES_MAX &&
        is_sampled(recorder->phases[recorder->phase].steps)) {
        recorder->sampling = &recorder->samples[recorder->sample_count++];
        recorder->sampling->section_count = 0;
    }
    recorder->meter.count = 0; /* sampling tasks ran between the steps */
}

static void sample_section(struct span_recorder *recorder, int site,
                           const struct thread_pool_slot *slots) {
    struct span_sample *sample = recorder->sampling;
    if (sample == NULL || sample->section_count == SPAN_SAMPLE_SECTIONS_MAX)
        return;
    size_t threads = (size_t)recorder->threads;
    memcpy(sample->slots + (size_t)sample->section_count * threads, slots, threads * sizeof *slots);
    sample->section_sites[sample->section_count++] = site;
}

void span_detail_site(struct span_recorder *recorder, int site) {
    struct span_total *total = &recorder->totals[recorder->phase][site];
    struct thread_pool_meter *meter = &recorder->meter;
    for (int i = 0; i < meter->count; i++) {
        const struct thread_pool_slot *slots = meter->slots + (size_t)i * (size_t)recorder->threads;
        int64_t slowest = 0;
        for (int t = 0; t < recorder->threads; t++) {
            int64_t busy = slots[t].end_ns - slots[t].start_ns;
            total->busy_ns += busy;
            slowest = busy > slowest ? busy : slowest;
        }
        total->slowest_ns += slowest;
        total->section_ns += meter->sections[i].end_ns - meter->sections[i].start_ns;
        sample_section(recorder, site, slots);
    }
    total->sections += meter->count;
    meter->count = 0;
}

static void add_work(struct account_work *into, const struct account_work *from) {
    into->flops += from->flops;
    into->flops_issued += from->flops_issued;
    into->exponentials += from->exponentials;
    into->stream_min += from->stream_min;
    into->stream_moved += from->stream_moved;
    into->local += from->local;
}

/* What all sites of the step stream: whether it lies in the last cache level follows. */
static double stream_bytes(const struct span_recorder *recorder) {
    double bytes = 0;
    for (int i = 0; i < recorder->sites.count; i++) {
        const struct op_site *site = &recorder->sites.sites[i];
        if (site->linear != NULL || site->kind == SITE_ATTENTION)
            bytes += account_site(&recorder->account.shape, site, &recorder->asked).stream_min;
    }
    return bytes;
}

static void fold_works(struct span_recorder *recorder) {
    const struct span_options *options = &recorder->options;
    double bytes = stream_bytes(recorder);
    for (int i = 0; i < recorder->sites.work_count; i++) {
        const struct op_site *site = &recorder->sites.sites[recorder->sites.work_sites[i]];
        struct account_work work = account_site(&recorder->account.shape, site, &recorder->asked);
        bool int8 = options->int8_matmul && site->linear != NULL && site->kind != SITE_LOGITS;
        struct classify_floor floor = classify_floor_of(&options->roofs, int8, &work, bytes);
        struct span_work_total *total = &recorder->works[recorder->phase][i];
        add_work(&total->work, &work);
        total->floor.compute += floor.compute;
        total->floor.memory += floor.memory;
        total->floor.bound += floor.bound;
        total->floor.memory_cached += floor.memory_cached;
        total->floor.bound_cached += floor.bound_cached;
    }
}

static void fold_groups(struct span_recorder *recorder) {
    struct span_phase_total *phase = &recorder->phases[recorder->phase];
    for (int g = 0; g < recorder->model->kv_group_count; g++) {
        const struct account_step_group *from = &recorder->asked.groups[g];
        struct account_step_group *into = &phase->groups[g];
        into->pairs += from->pairs;
        into->pairs_issued += from->pairs_issued;
        into->decode_pairs += from->decode_pairs;
        into->keys += from->keys;
        into->keys_apart += from->keys_apart;
        into->pages_moved += from->pages_moved;
        into->pages_held += from->pages_held;
        into->pages_apart += from->pages_apart;
    }
    if (recorder->phase == PHASE_MIXED)
        phase->decode_rows_with_prefill += recorder->asked.rows - recorder->asked.prefill_rows;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static struct span_memory memory_now(const struct span_recorder *recorder) {
    const struct model *model = recorder->model;
    const struct account_step *asked = &recorder->asked;
    int row = 2 * model->width + 2 * (model->head_count + model->kv_head_count) * model->head_dim;
    struct span_memory memory = {.activations =
                                     (int64_t)asked->rows * ACTIVATION_BYTES *
                                     larger(row, 2 * model->width + 3 * model->ffn_width)};
    struct engine_pages pages = {0};
    if (recorder->options.engine != NULL)
        engine_read_pages(recorder->options.engine, &pages);
    for (int g = 0; g < model->kv_group_count; g++) {
        int64_t bytes = (int64_t)recorder->page_bytes[g];
        const struct account_step_group *group = &asked->groups[g];
        memory.kv_used += pages.used[g] * bytes;
        memory.kv_reserved += pages.reserved[g] * bytes;
        memory.kv_shared += (group->pages_apart - group->pages_held) * bytes;
        memory.kv_tokens += group->keys * bytes / KV_PAGE_TOKENS;
        memory.kv_contiguous += pages.positions_max * bytes / KV_PAGE_TOKENS;
    }
    return memory;
}

static void note_peak(struct span_memory *peak, const struct span_memory *now) {
    peak->kv_used = larger(peak->kv_used, now->kv_used);
    peak->kv_reserved = larger(peak->kv_reserved, now->kv_reserved);
    peak->kv_shared = larger(peak->kv_shared, now->kv_shared);
    peak->kv_tokens = larger(peak->kv_tokens, now->kv_tokens);
    peak->kv_contiguous = larger(peak->kv_contiguous, now->kv_contiguous);
    peak->activations = larger(peak->activations, now->activations);
}

static struct span_step step_now(struct span_recorder *recorder) {
    const struct account_step *asked = &recorder->asked;
    struct span_step step = {
        .number = recorder->step_count,
        .start_ns = recorder->stamps[0],
        .end_ns = recorder->stamps[recorder->sites.count],
        .between_ns = recorder->last_end_ns != 0 ? recorder->stamps[0] - recorder->last_end_ns : 0,
        .phase = recorder->phase,
        .rows = asked->rows,
        .prefill_rows = asked->prefill_rows,
        .samples = asked->samples,
        .runs = asked->runs,
        .memory = memory_now(recorder),
    };
    for (int i = 0; i < recorder->sites.count; i++)
        step.kind_ns[recorder->sites.sites[i].kind] +=
            recorder->stamps[i + 1] - recorder->stamps[i];
    return step;
}

/* Once the list is full every other step goes, and from then on only every other one comes. */
static void keep_step(struct span_recorder *recorder, const struct span_step *step) {
    if (step->number % recorder->steps_stride != 0)
        return;
    if (recorder->steps_kept == SPAN_STEPS_MAX) {
        for (int i = 0; i < SPAN_STEPS_MAX / 2; i++)
            recorder->steps[i] = recorder->steps[2 * i];
        recorder->steps_kept = SPAN_STEPS_MAX / 2;
        recorder->steps_stride *= 2;
        if (step->number % recorder->steps_stride != 0)
            return;
    }
    recorder->steps[recorder->steps_kept++] = *step;
}

void span_detail_end(struct span_recorder *recorder) {
    fold_works(recorder);
    fold_groups(recorder);
    struct span_step step = step_now(recorder);
    note_peak(&recorder->memory_peak, &step.memory);
    keep_step(recorder, &step);
    if (recorder->sampling == NULL)
        return;
    recorder->sampling->step = step;
    memcpy(recorder->sampling->stamps, recorder->stamps,
           ((size_t)recorder->sites.count + 1) * sizeof *recorder->stamps);
}
