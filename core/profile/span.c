/* Folding happens once a step, after its last stamp: sites add their times, and each kind of work
 * is counted once for all sites that share it. */
#include "core/profile/span.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/profile/span_state.h"

enum { STAMP_TRIALS = 2000 };

const char *span_phase_name(enum span_phase phase) {
    static const char *const names[PHASE_COUNT] = {"prefill", "decode", "mixed"};
    return names[phase];
}

/* ---- life ---- */

static enum status create_totals(struct span_recorder *recorder, struct error *error) {
    size_t sites = (size_t)recorder->sites.count, works = (size_t)recorder->sites.work_count;
    recorder->stamps = calloc(sites + 1, sizeof *recorder->stamps);
    bool fine = recorder->stamps != NULL;
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        recorder->totals[phase] = calloc(sites, sizeof *recorder->totals[phase]);
        recorder->works[phase] = calloc(works, sizeof *recorder->works[phase]);
        fine = fine && recorder->totals[phase] != NULL && recorder->works[phase] != NULL;
    }
    return fine ? STATUS_OK : error_no_memory(error, "the profile");
}

static enum status create(struct span_recorder *recorder, struct error *error) {
    TRY(op_site_list_create(recorder->model, &recorder->sites, error));
    TRY(create_totals(recorder, error));
    return recorder->options.detail ? span_detail_create(recorder, error) : STATUS_OK;
}

enum status span_recorder_create(const struct model *model, struct thread_pool *pool,
                                 const struct span_options *options,
                                 struct span_recorder **recorder, struct error *error) {
    struct span_recorder *made = calloc(1, sizeof *made);
    *recorder = NULL;
    if (made == NULL)
        return error_no_memory(error, "the profile");
    made->model = model;
    made->pool = pool;
    made->threads = thread_pool_count(pool);
    made->options = *options;
    enum status status = create(made, error);
    if (status != STATUS_OK)
        span_recorder_destroy(made);
    else
        *recorder = made;
    return status;
}

void span_recorder_destroy(struct span_recorder *recorder) {
    if (recorder == NULL)
        return;
    span_detail_destroy(recorder);
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        free(recorder->totals[phase]);
        free(recorder->works[phase]);
    }
    free(recorder->stamps);
    op_site_list_destroy(&recorder->sites);
    free(recorder);
}

/* ---- a step ---- */

static enum span_phase phase_of(const struct step_plan *plan) {
    bool prefill = false, decode = false;
    for (int i = 0; i < plan->run_count; i++)
        *(plan->runs[i].prefill ? &prefill : &decode) = true;
    return prefill && decode ? PHASE_MIXED : prefill ? PHASE_PREFILL : PHASE_DECODE;
}

static int prefill_rows(const struct step_plan *plan) {
    int rows = 0;
    for (int i = 0; i < plan->run_count; i++)
        rows += plan->runs[i].prefill ? plan->runs[i].row_count : 0;
    return rows;
}

void span_step_begin(struct span_recorder *recorder, const struct step_plan *plan) {
    recorder->phase = phase_of(plan);
    recorder->next_site = 0;
    if (recorder->options.detail)
        span_detail_begin(recorder, plan);
    else
        recorder->asked = (struct account_step){.rows = plan->row_count,
                                                .prefill_rows = prefill_rows(plan),
                                                .samples = plan->sample_count,
                                                .runs = plan->run_count};
    recorder->stamps[0] = clock_now_ns();
}

void span_site_end(struct span_recorder *recorder, enum op_site_kind kind) {
    int site = recorder->next_site++;
    assert(site < recorder->sites.count && recorder->sites.sites[site].kind == kind);
    (void)kind;
    recorder->stamps[site + 1] = clock_now_ns();
    if (recorder->options.detail)
        span_detail_site(recorder, site);
}

/* Two clocks: no op ends before the one in front of it, nor behind the step. */
void span_site_move(struct span_recorder *recorder, int site, int64_t ns) {
    int64_t *stamps = recorder->stamps;
    int64_t ended_ns = stamps[1] + ns, last_ns = stamps[recorder->sites.count];
    ended_ns = ended_ns < stamps[site] ? stamps[site] : ended_ns;
    stamps[site + 1] = ended_ns > last_ns ? last_ns : ended_ns;
}

static void add_phase(struct span_recorder *recorder) {
    struct span_phase_total *phase = &recorder->phases[recorder->phase];
    const struct account_step *asked = &recorder->asked;
    phase->steps++;
    phase->ns += recorder->stamps[recorder->sites.count] - recorder->stamps[0];
    if (recorder->last_end_ns != 0)
        phase->between_ns += recorder->stamps[0] - recorder->last_end_ns;
    phase->rows += asked->rows;
    phase->prefill_rows += asked->prefill_rows;
    phase->samples += asked->samples;
    phase->runs += asked->runs;
    phase->tokens_held += asked->tokens_held;
}

void span_step_end(struct span_recorder *recorder) {
    int sites = recorder->sites.count;
    struct span_total *totals = recorder->totals[recorder->phase];
    assert(recorder->next_site == sites);
    for (int i = 0; i < sites; i++)
        totals[i].ns += recorder->stamps[i + 1] - recorder->stamps[i];
    add_phase(recorder);
    if (recorder->options.detail)
        span_detail_end(recorder);
    if (recorder->step_count++ == 0)
        recorder->first_start_ns = recorder->stamps[0];
    recorder->last_end_ns = recorder->stamps[sites];
}

/* ---- reading ---- */

double span_kind_seconds(const struct span_recorder *recorder, enum op_site_kind kind) {
    int64_t ns = 0;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        for (int i = 0; i < recorder->sites.count; i++)
            if (recorder->sites.sites[i].kind == kind)
                ns += recorder->totals[phase][i].ns;
    return (double)ns * 1e-9;
}

double span_stamp_seconds(void) {
    int64_t start_ns = clock_now_ns(), end_ns = start_ns;
    for (int i = 0; i < STAMP_TRIALS; i++)
        end_ns = clock_now_ns();
    return (double)(end_ns - start_ns) * 1e-9 / STAMP_TRIALS;
}

/* Stamps of the engine's thread; workers stamp their sections beside it. A section has four on this
 * thread: its borders and its own work's. */
double span_overhead_seconds(const struct span_recorder *recorder) {
    int64_t stamps = recorder->step_count * (recorder->sites.count + 1);
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        for (int i = 0; i < recorder->sites.count; i++)
            stamps += 4 * recorder->totals[phase][i].sections;
    return (double)stamps * span_stamp_seconds();
}
