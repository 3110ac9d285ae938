/* A job: all documents of the inputs through the engine into rows. Three kinds of thread: a reader
 * (read, render, tokenize), the engine's (the caller's own thread), a writer (owns the output
 * file). Bounded queues between them: memory does not grow with the pile. */
#ifndef CORE_JOB_JOB_H
#define CORE_JOB_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/job/output_log.h"
#include "core/job/finished_set.h"
#include "core/job/input_own.h"
#include "core/job/prompt.h"
#include "core/job/settings.h"
#include "core/job/summary.h"
#include "tokenizer/tokenizer.h"

/* Limits of what waits between reader, engine and writer; with the order window they are part of
 * the memory that is stated before a run. One document may be larger than a limit. */
enum {
    JOB_READY_ITEMS_MAX = 2048,
    JOB_READY_BYTES_MAX = 16 << 20,
    JOB_FINISHED_ITEMS_MAX = 1024,
    JOB_FINISHED_BYTES_MAX = 16 << 20,
};

/* How a run is asked to stop; set by a signal handler. */
enum job_stop {
    JOB_GO_ON = 0,
    JOB_STOP_ADMITTING, /* Ctrl-C: what runs is finished and written */
    JOB_STOP_NOW,       /* Ctrl-C twice, SIGTERM, SIGHUP: write what is finished, no more */
};

/* Counters for the progress line, read while the job runs. */
struct job_progress {
    _Atomic long long expected; /* rows of the documents read so far, one a question */
    _Atomic long long done, failed, resumed;
    _Atomic long long running;
    _Atomic long long prompt_tokens_known, prompt_tokens_done, completion_tokens;
    _Atomic bool reading_ended;
};

/* One of --prompts' questions; a run with a single prompt has one without id. */
struct job_question {
    const char *id;                 /* NULL: the document's own id stands alone */
    struct prompt_template *prompt; /* NULL: documents bring their own */
};

struct job {
    const struct settings *settings;
    const struct path_list *inputs;
    struct input_own own; /* what the run writes is not read */
    const struct tokenizer *tokenizer;
    struct prompt_setting prompt_setting;
    const struct job_question *questions;
    int question_count;
    const char *model_name;
    const char *numerics; /* with the KV type: "cpu-avx512-bf16/kv-bf16" */
    int context;
    uint64_t settings_hash;
    struct log *log;
    struct job_progress *progress;
    atomic_int *stop;

    /* Resuming: filled by output_scan_rows before the run. */
    struct finished_set *finished;
    struct output_log *output;
    struct output_log *errors; /* NULL: none */
};

struct job_outcome {
    struct summary *summary;
    bool superseded;             /* an id got a new row: publish once more */
    bool stopped_by_user;        /* documents were left out */
    bool output_failed;          /* disk full and the like: `error` says what */
    bool output_closed;          /* the pipe's reader has gone */
    long long resumed_failed;    /* rows of an earlier run that are errors and stand */
    long long failed_by_warning; /* rows with a --fail-on warning */
};

struct job_run;

/* Open the inputs and start reading. Nothing is computed or written yet. */
enum status job_open(const struct job *job, struct job_run **run, struct error *error);

/* What the queue will need, when all of it is read within `wait_ms` and fits the order window: the
 * very scheduler of the engine is run on it, for outputs of full length. */
struct job_forecast {
    bool whole; /* false: the queue is longer; kv_bytes is not known */
    uint64_t kv_bytes;
    int item_count; /* of a whole queue: no more can run at once */
};
enum status job_foresee(struct job_run *run, const struct model *model,
                        const struct engine_options *options, const uint64_t *page_bytes,
                        int wait_ms, struct job_forecast *forecast, struct error *error);

/* Compute and write everything. An error is one that ends the whole job (engine, output); rows
 * written before it stand. */
enum status job_compute(struct job_run *run, struct engine *engine, struct job_outcome *outcome,
                        struct error *error);

/* Stops the reader where it is; NULL is fine. false: the reader waits for an input that does not
 * come and was left behind. Then all that the job refers to must stand until the process ends. */
bool job_close(struct job_run *run);

#endif
