/* What a run did, gathered row by row in bounded memory, and its two forms: lines for a person on
 * stderr and JSON (core/job/summary.schema.json) for --summary. */
#ifndef CORE_JOB_SUMMARY_H
#define CORE_JOB_SUMMARY_H

#include <stdint.h>

#include "core/base/text.h"
#include "core/engine/engine.h"
#include "core/job/row.h"
#include "core/job/settings.h"
#include "core/job/summary_work.h"

/* Durations in logarithmic buckets 1 % wide from 1 µs to 10^8 ms: percentiles within 1 %. */
enum { HISTOGRAM_BUCKETS = 2560 };
struct histogram {
    uint32_t buckets[HISTOGRAM_BUCKETS];
    uint64_t count;
    double max;
};
void summary_histogram_add(struct histogram *histogram, double milliseconds);
double summary_histogram_percentile(const struct histogram *histogram, double percentile);

enum summary_part {
    PART_READ,
    PART_TOKENIZE,
    PART_QUEUED,
    PART_PREFILL,
    PART_FIRST_TOKEN,
    PART_DECODE,
    PART_STALLED,
    PART_LATENCY,
    PART_COUNT
};

enum { SLOWEST_MAX = 5 };

struct slow_document {
    double latency_ms;
    char id[96]; /* the id's JSON text, cut */
};

/* Machine and model facts, filled by the command. */
struct summary_facts {
    const char *version, *build, *device, *isa, *numerics, *model_name, *model_path, *model_sha256;
    int threads;
    char started[24], ended[24];
    double load_ms, wall_ms;
    double attention_ms, matmul_ms, other_ops_ms; /* parts of computing */
    uint64_t peak_rss_bytes, stated_bytes;
    uint64_t weight_bytes, kv_bytes, scratch_bytes;
    uint64_t streamed_bytes; /* of weights, read in the steps; 0: all stay in memory */
    double streaming_ms, streaming_wait_ms; /* in reads; of the steps, waiting for reads */
    double flops_ceiling, bytes_ceiling;    /* a second, measured; 0: not measured */
    int exit_code;
};

struct summary {
    long long done, failed, skipped, resumed;
    long long errors[ERROR_CODES_MAX];
    long long warnings[WARNING_COUNT];
    long long document_tokens, prompt_tokens, completion_tokens, cached_tokens, computed_tokens,
        recomputed_tokens, guessed_tokens, accepted_tokens;
    double read_ms, tokenize_ms, write_ms, wait_ms; /* busy and waiting times of the threads */
    struct histogram parts[PART_COUNT];
    struct slow_document slowest[SLOWEST_MAX];
    int slowest_count;
    char first_reasons[3][256];
    int reason_count;
    struct engine_totals engine;
    struct summary_work work; /* initialised by the command, or all zero */
    struct summary_facts facts;
};

void summary_add_row(struct summary *summary, const struct row *row);

/* A few lines for a person. */
bool summary_write_text(struct text *out, const struct summary *summary,
                        const struct settings *settings);
/* One JSON object, pretty enough to read, every effective setting included. */
bool summary_write_json(struct text *out, const struct summary *summary,
                        const struct settings *settings);

#endif
