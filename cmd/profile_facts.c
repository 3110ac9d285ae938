/* The ceilings are taken twice. When the second time differs by more than a tenth, it is taken once
 * more, because a moment's neighbour is no drift. */
#include "cmd/profile_facts.h"

#include <math.h>

#include "core/job/model_id.h"
#include "core/profile/machine_cache.h"

static const double DRIFT_MAX = 0.1;
static const double STOLEN_MAX = 0.02;
static const double OTHERS_MAX = 0.1;
static const double FAULT_SECONDS = 1e-4; /* a page from a disk */

enum { END_TRIALS = 3 };

static enum status features_of(const struct settings *settings, struct cpu_features *features,
                               struct error *error) {
    *features = cpu_features_detect();
    if (settings->isa == NULL)
        return STATUS_OK;
    enum isa isa;
    TRY(cpu_features_parse_isa(settings->isa, &isa, error));
    cpu_features_mask(features, isa);
    return STATUS_OK;
}

static enum status measure(const struct settings *settings, struct machine *machine,
                           struct error *error) {
    struct cpu_features features;
    TRY(features_of(settings, &features, error));
    struct kernels kernels = kernels_select(&features);
    int most = cpu_features_default_threads();
    int threads = settings->threads > 0 ? (int)settings->threads : most;
    return machine_measure(&kernels, &features, threads, most, machine, error);
}

enum status profile_facts_check(const struct settings *settings, struct error *error) {
    if (settings->device == DEVICE_AUTO || settings->device == DEVICE_CPU)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_INPUT, "only --device cpu can be profiled");
}

enum status profile_facts_begin(struct profile_facts *profile, const struct settings *settings,
                                struct error *error) {
    *profile = (struct profile_facts){0};
    return measure(settings, &profile->before, error);
}

static enum status measure_again(struct profile_facts *profile, const struct settings *settings,
                                 struct error *error) {
    TRY(measure(settings, &profile->after, error));
    for (int i = 1; i < END_TRIALS; i++) {
        if (machine_drift(&profile->before, &profile->after) <= DRIFT_MAX)
            break;
        struct machine again;
        TRY(measure(settings, &again, error));
        machine_merge(&profile->after, &again);
    }
    profile->drift = machine_drift(&profile->before, &profile->after);
    return STATUS_OK;
}

static void fill_settings(struct facts *facts, const struct sample_run *run) {
    const struct settings *settings = &run->effective;
    const struct budget *budget = &run->runtime.budget;
    uint64_t fixed = budget_fixed_bytes(budget);
    struct cpu_features all = cpu_features_detect();
    facts->settings = (struct facts_settings){
        .threads = (int)settings->threads,
        .batch_tokens = (int)settings->batch_tokens,
        .max_sequences = (int)settings->max_sequences,
        .prefix_cache = settings->prefix_cache != 0,
        .kv_int8 = settings->kv_dtype == KV_CHOICE_INT8,
        .matmul_int8 = settings->matmul_dtype == MATMUL_INT8,
        .kv_bytes = budget->kv_bytes,
        .kv_bytes_max =
            budget->available_bytes > fixed ? (budget->available_bytes - fixed) / 10 * 9 : 0,
        .isa_used = cpu_features_isa_name(cpu_features_best(&run->runtime.features)),
        .isa_best = cpu_features_isa_name(cpu_features_best(&all)),
    };
}

static double kv_peak_share(const struct engine_totals *totals) {
    double share = 0;
    for (int g = 0; g < MODEL_KV_GROUPS_MAX && totals->pages_max[g] > 0; g++) {
        double here = (double)totals->pages_peak[g] / (double)totals->pages_max[g];
        share = here > share ? here : share;
    }
    return share;
}

static void fill_run(struct facts *facts, const struct sample_run *run) {
    const struct summary *summary = run->summary;
    const struct engine_totals *totals = &summary->engine;
    double between = 0;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        between += facts->phases[phase].between;
    facts->sampling = (double)totals->sampling_ns * 1e-9;
    facts->waiting = summary->wait_ms * 1e-3;
    facts->host = fmax(between - facts->sampling - facts->waiting, 0);
    facts->input_busy = (summary->read_ms + summary->tokenize_ms + summary->write_ms) * 1e-3;
    facts->documents = (double)sample_run_documents(run);
    facts->documents_at_once = totals->running_peak;
    facts->documents_waiting =
        fmax((double)atomic_load(&run->progress.expected) - totals->running_peak, 0);
    facts->kv_peak_share = kv_peak_share(totals);
}

/* At the mean context of decode steps; a prompt's, where there are none. */
static enum status measure_whatifs(struct facts *facts, struct sample_run *run,
                                   struct error *error) {
    const struct facts_phase *decode = &facts->phases[PHASE_DECODE];
    const struct facts_phase *prefill = &facts->phases[PHASE_PREFILL];
    const struct runtime *runtime = &run->runtime;
    struct kernels kernels = kernels_select(&runtime->features);
    if (facts->settings.matmul_int8)
        kernels_add_int8(&kernels, &runtime->features);
    double context = decode->steps > 0 ? decode->context : prefill->context;
    return whatif_measure(runtime->model, &kernels, runtime->pool, (int)context, &facts->whatif,
                          error);
}

static const char *why_unreliable(const struct profile_facts *profile) {
    if (profile->others.stolen_share > STOLEN_MAX)
        return "the hypervisor took more than 2 % of the CPUs' time for others: measure again";
    if (profile->others.others_share > OTHERS_MAX)
        return "other programs took more than 10 % of the CPUs' time: measure again";
    if (profile->drift > DRIFT_MAX)
        return "the machine's ceilings changed by more than 10 % during the run: measure again";
    return NULL;
}

/* Kept for the summaries of runs: the better of what was and what is, as long as they agree. */
static void keep_ceilings(const struct machine *machine, const struct runtime *runtime) {
    char folder[4096], key[MACHINE_CACHE_KEY_BYTES];
    struct kernels kernels = kernels_select(&runtime->features);
    struct ceilings_step run = machine_with(machine, machine->threads), known;
    if (!model_id_cache_folder(folder, sizeof folder))
        return;
    machine_cache_key(SHEAF_VERSION, &runtime->features, &kernels, machine->threads, key);
    if (machine_cache_load(folder, key, &known) && known.flops > run.flops &&
        known.flops * (1 - DRIFT_MAX) <= run.flops)
        run = known;
    machine_cache_store(folder, key, &run);
}

enum status profile_facts_end(struct profile_facts *profile, struct sample_run *run,
                              struct error *error) {
    struct facts *facts = &profile->facts;
    facts_from_spans(facts, run->runtime.recorder);
    fill_settings(facts, run);
    fill_run(facts, run);
    runtime_close_engine(&run->runtime);
    TRY(measure_again(profile, &run->effective, error));
    profile->others = machine_others_between(&run->before, &run->after);
    facts->machine = profile->before;
    machine_merge(&facts->machine, &profile->after);
    facts->major_faults = (double)profile->others.major_faults;
    facts->fault_seconds = facts->major_faults * FAULT_SECONDS;
    facts->noise = machine_noise(&profile->before, &profile->after);
    TRY(measure_whatifs(facts, run, error));
    profile->unreliable = why_unreliable(profile);
    if (profile->unreliable == NULL)
        keep_ceilings(&facts->machine, &run->runtime);
    rules_run(facts, &profile->advice);
    return STATUS_OK;
}
