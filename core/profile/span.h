/* Where a run's time goes, by op, layer and phase. Neighbouring ops share a stamp: the end of one
 * is the beginning of the next, so a step costs one stamp an op and a fold at its end. Everything
 * is preallocated; a step allocates nothing.
 *
 * `detail` adds, for `sheaf profile`: accounting of FLOPs and bytes with floors, busy times of
 * threads, memory, a census of repeated prompt pages, a thinned list of steps, and whole stamps of
 * some steps for a trace. Without it only times are kept, for every run's summary. */
#ifndef CORE_PROFILE_SPAN_H
#define CORE_PROFILE_SPAN_H

#include "core/base/thread_pool.h"
#include "core/engine/engine.h"
#include "core/profile/account.h"
#include "core/profile/census.h"
#include "core/profile/classify.h"
#include "core/profile/op_site.h"

/* A step's rows are a prompt's, decoding sequences', or both. */
enum span_phase { PHASE_PREFILL, PHASE_DECODE, PHASE_MIXED, PHASE_COUNT };
const char *span_phase_name(enum span_phase phase);

struct span_total { /* of a site in a phase; nanoseconds */
    int64_t ns;
    int64_t sections;            /* parallel ones; the rest is only with detail: */
    int64_t section_ns;          /* of them, by the clock */
    int64_t busy_ns, slowest_ns; /* all threads' work; the slowest one's of each */
};

struct span_work_total { /* of one site with this work in a phase */
    struct account_work work;
    struct classify_floor floor;
};

struct span_phase_total {
    int64_t steps;
    int64_t ns;         /* from begin to end */
    int64_t between_ns; /* from the last step's end: sampling, planning, waiting */
    int64_t rows, prefill_rows, samples, runs;
    int64_t tokens_held; /* Σ positions of the steps' sequences */
    int64_t decode_rows_with_prefill;
    struct account_step_group groups[MODEL_KV_GROUPS_MAX];
};

struct span_memory {              /* at a step; bytes */
    int64_t kv_used, kv_reserved; /* pages held; and those promised to running sequences */
    int64_t kv_shared;            /* saved by pages that several sequences hold */
    int64_t kv_tokens;            /* of the positions in the step's sequences */
    int64_t kv_contiguous;        /* every sequence in one piece, as long as it may become */
    int64_t activations;          /* of the step's rows */
};

struct span_step {
    int64_t number; /* of the run */
    int64_t start_ns, end_ns, between_ns;
    enum span_phase phase;
    int rows, prefill_rows, samples, runs;
    int64_t kind_ns[SITE_KIND_COUNT];
    struct span_memory memory;
};

struct span_sample { /* a step with all its stamps */
    struct span_step step;
    int64_t *stamps; /* [site count + 1] */
    int section_count;
    struct thread_pool_slot *slots; /* [section_count][threads] */
    int *section_sites;             /* [section_count] */
};

struct span_options {
    bool detail;
    struct classify_roofs roofs; /* with detail */
    bool int8_matmul;
    bool prefix_cache;
    const uint64_t *page_bytes; /* [group], for detail */
    const int64_t *page_count;  /* [group] */
    int block_positions;
    const struct engine *engine; /* read for memory; NULL: not */
};

enum { SPAN_STEPS_MAX = 2048, SPAN_SAMPLES_MAX = 24, SPAN_SAMPLE_SECTIONS_MAX = 2048 };

struct span_recorder {
    const struct model *model;
    struct thread_pool *pool;
    int threads;
    struct op_site_list sites;
    struct span_options options;
    uint64_t page_bytes[MODEL_KV_GROUPS_MAX];

    /* of the step in progress */
    int64_t *stamps; /* [site count + 1] */
    int next_site;
    int64_t last_end_ns, first_start_ns;
    struct account_step asked;
    enum span_phase phase;
    struct span_sample *sampling; /* NULL: only aggregates are kept */

    struct span_total *totals[PHASE_COUNT];     /* [site count] */
    struct span_work_total *works[PHASE_COUNT]; /* [work count] */
    struct span_phase_total phases[PHASE_COUNT];
    int64_t step_count;

    struct account account;
    struct census census;
    struct thread_pool_meter meter;
    struct span_step *steps; /* [SPAN_STEPS_MAX], each `steps_stride`-th of the run */
    int steps_kept;
    int64_t steps_stride;
    struct span_sample *samples; /* [SPAN_SAMPLES_MAX] */
    int sample_count;
    struct span_memory memory_peak; /* each field's own peak */
    int64_t scratch_rows_max;
};

enum status span_recorder_create(const struct model *model, struct thread_pool *pool,
                                 const struct span_options *options,
                                 struct span_recorder **recorder, struct error *error);
void span_recorder_destroy(struct span_recorder *recorder);

/* Called by span_backend.c around the decoder's calls. */
void span_step_begin(struct span_recorder *recorder, const struct step_plan *plan);
void span_site_end(struct span_recorder *recorder, enum op_site_kind kind);
/* Ops that only queued their work ended when the device did them: `ns` after the first site, the
 * step's beginning. Before span_step_end; sites in ascending order. */
void span_site_move(struct span_recorder *recorder, int site, int64_t ns);
void span_step_end(struct span_recorder *recorder);

/* Seconds of an op kind in all phases; of a site in one. */
double span_kind_seconds(const struct span_recorder *recorder, enum op_site_kind kind);
/* A stamp's cost on this machine, and what recording has cost in all. */
double span_stamp_seconds(void);
double span_overhead_seconds(const struct span_recorder *recorder);

#endif
