/* Everything advice is computed from, in one struct of plain numbers: made from a recorded run, or
 * by a test. */
#ifndef CORE_PROFILE_FACTS_H
#define CORE_PROFILE_FACTS_H

#include "core/profile/machine.h"
#include "core/profile/span.h"
#include "core/profile/whatif.h"

struct facts_op { /* an op kind in a phase, all layers */
    double seconds;
    int64_t sections;
    struct account_work work;
    struct classify_result result;
};

struct facts_phase {
    double steps, seconds, between; /* between: from the last step's end */
    double rows, prefill_rows, samples, runs;
    double decode_rows; /* rows − prefill_rows */
    double context;     /* mean positions of a run's sequence */
    struct facts_op ops[SITE_KIND_COUNT];
};

struct facts_settings { /* of the run */
    int threads, batch_tokens, max_sequences;
    bool prefix_cache, kv_int8, matmul_int8;
    uint64_t kv_bytes;     /* the budget */
    uint64_t kv_bytes_max; /* what more the machine has for it, the budget included */
    const char *isa_used, *isa_best;
};

/* Only devices with their own queue have these; 0 on a CPU. */
struct facts_device {
    bool present;
    int units;                              /* multiprocessors */
    double gap_share;                       /* of the time, no kernel ran */
    double kernel_median;                   /* seconds */
    double combine_share;                   /* of attention, merging of splits */
    double transfer_exposed;                /* seconds of copies that no kernel hid */
    double transfer_rate, transfer_ceiling; /* bytes a second */
};

struct facts {
    struct facts_settings settings;
    struct facts_device device;
    struct facts_phase phases[PHASE_COUNT];
    double seconds;        /* of the run: from the first step to the last's end */
    double sampling, host; /* between steps: sampling; planning and everything else but waiting */
    double waiting;        /* for documents */
    double input_busy;     /* reading, tokenizing and writing, by their own threads */
    double overhead;       /* of recording */
    double documents, documents_at_once; /* profiled; running at the peak */
    double documents_waiting;            /* of the whole job, beyond those running at the peak */
    double kv_peak_share;                /* of the pool, used or promised */
    double fragmentation;                /* of pages held: slots without a token */
    double kv_table_share;               /* of attention: page tables and gathering */
    double prompt_tokens, prompt_pairs, repeated_tokens, repeated_pairs;
    double major_faults, fault_seconds;
    double tail_share, tail_occupancy; /* the last fifth of the run: running / at the peak */
    double activation_bytes;           /* of the largest step */
    int gqa_group, layers;
    double noise; /* of a run's time, one standard deviation, as a share */
    struct machine machine;
    struct whatif whatif;
};

/* Phases and ops, the census and memory of a detailed recorder; the rest is the caller's. */
void facts_from_spans(struct facts *facts, const struct span_recorder *recorder);

double facts_op_seconds(const struct facts *facts, enum op_site_kind kind);
/* Over the ops of a phase: matmuls without logits. */
double facts_matmul_seconds(const struct facts_phase *phase);

#endif
