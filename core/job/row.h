/* One output row: what is known of a document when it is finished, and its JSON form (one line).
 * The schema stands in core/job/row.schema.json. */
#ifndef CORE_JOB_ROW_H
#define CORE_JOB_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/job/codes.h"

/* Durations in milliseconds on a monotonic clock.
 * first_token = read + tokenize + queued + prefill; latency = first_token + decode. */
struct row_timing {
    double read_ms;
    double tokenize_ms;
    double queued_ms;  /* from tokenized to the first step that computed some of it */
    double prefill_ms; /* from there to the first token */
    double first_token_ms;
    double decode_ms; /* from the first token until the row was handed to the writer */
    double stalled_ms;
    double latency_ms;
    double tokens_per_second; /* (completion - 1) / decode; NaN at one token or less */
};

struct row {
    const char *id_json; /* the id as JSON text */
    long long index;
    const char *source_path; /* NULL: stdin */
    long long source_line;   /* of a JSONL file; 0: none */
    const char *error_code;  /* NULL: ok */
    const char *error_message;
    struct view text;
    const char *finish_reason;         /* "stop", "length" */
    const char *stop_string;           /* the one that ended it, or NULL */
    long long warnings[WARNING_COUNT]; /* counts; 0: not given */
    const char *kept;                  /* what of the document was kept, or NULL */
    bool has_tokens;
    long long document_tokens, used_tokens, prompt_tokens, completion_tokens;
    bool has_timing;
    struct row_timing timing;
    long long cached_tokens, computed_tokens, recomputed_tokens, chunks, preemptions;
    bool speculates; /* then the row says how many rows guesses took, and how many were right */
    long long guessed_tokens, accepted_tokens;
    const char *model, *numerics;
    char fingerprint[40];
    const json_t *input; /* unknown keys of the user's line, or NULL */
};

/* Append the row and a newline. false: out of memory or over the text's maximum. */
bool row_append_json(struct text *out, const struct row *row);

#endif
