/* Gathering: counters, histograms and the five slowest documents. The writing is in
 * summary_write.c. */
#include "core/job/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/job/document.h"

static const double BUCKET_GROWTH = 1.01;
static const double SMALLEST_MS = 1e-3;

void summary_histogram_add(struct histogram *histogram, double milliseconds) {
    int bucket = 0;
    if (milliseconds > SMALLEST_MS)
        bucket = (int)(log(milliseconds / SMALLEST_MS) / log(BUCKET_GROWTH)) + 1;
    if (bucket >= HISTOGRAM_BUCKETS)
        bucket = HISTOGRAM_BUCKETS - 1;
    histogram->buckets[bucket]++;
    histogram->count++;
    if (milliseconds > histogram->max)
        histogram->max = milliseconds;
}

double summary_histogram_percentile(const struct histogram *histogram, double percentile) {
    if (histogram->count == 0)
        return NAN;
    double wanted = percentile / 100 * (double)histogram->count;
    uint64_t seen = 0;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= wanted) {
            double value = i == 0 ? 0 : SMALLEST_MS * pow(BUCKET_GROWTH, i - 0.5);
            return value < histogram->max ? value : histogram->max;
        }
    }
    return histogram->max;
}

static void note_slowest(struct summary *summary, const struct row *row) {
    double latency = row->timing.latency_ms;
    int place = summary->slowest_count;
    while (place > 0 && summary->slowest[place - 1].latency_ms < latency)
        place--;
    if (place == SLOWEST_MAX)
        return;
    int last = summary->slowest_count < SLOWEST_MAX ? summary->slowest_count++ : SLOWEST_MAX - 1;
    for (int i = last; i > place; i--)
        summary->slowest[i] = summary->slowest[i - 1];
    summary->slowest[place].latency_ms = latency;
    document_short_id(row->id_json, summary->slowest[place].id, sizeof summary->slowest[place].id);
}

static void note_error(struct summary *summary, const struct row *row) {
    summary->failed++;
    for (size_t i = 0; i < codes_error_count(); i++)
        summary->errors[i] += strcmp(codes_error_at(i)->name, row->error_code) == 0;
    if (summary->reason_count < 3) {
        char id[80];
        char *reason = summary->first_reasons[summary->reason_count++];
        document_short_id(row->id_json, id, sizeof id);
        snprintf(reason, sizeof summary->first_reasons[0], "%s: %s: %.140s", row->error_code, id,
                 row->error_message);
    }
}

static void note_timing(struct summary *summary, const struct row *row) {
    const struct row_timing *timing = &row->timing;
    const double parts[PART_COUNT] = {
        [PART_READ] = timing->read_ms,
        [PART_TOKENIZE] = timing->tokenize_ms,
        [PART_QUEUED] = timing->queued_ms,
        [PART_PREFILL] = timing->prefill_ms,
        [PART_FIRST_TOKEN] = timing->first_token_ms,
        [PART_DECODE] = timing->decode_ms,
        [PART_STALLED] = timing->stalled_ms,
        [PART_LATENCY] = timing->latency_ms,
    };
    for (int i = 0; i < PART_COUNT; i++)
        summary_histogram_add(&summary->parts[i], parts[i]);
    note_slowest(summary, row);
}

void summary_add_row(struct summary *summary, const struct row *row) {
    if (row->error_code)
        note_error(summary, row);
    else
        summary->done++;
    for (int i = 0; i < WARNING_COUNT; i++)
        summary->warnings[i] += row->warnings[i] > 0;
    if (row->has_tokens) {
        summary->document_tokens += row->document_tokens;
        summary->prompt_tokens += row->prompt_tokens;
        summary->completion_tokens += row->completion_tokens;
    }
    if (!row->has_timing)
        return;
    summary->cached_tokens += row->cached_tokens;
    summary->computed_tokens += row->computed_tokens;
    summary->recomputed_tokens += row->recomputed_tokens;
    summary->guessed_tokens += row->guessed_tokens;
    summary->accepted_tokens += row->accepted_tokens;
    summary_work_add(&summary->work, row);
    note_timing(summary, row);
}
