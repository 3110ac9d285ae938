/* The writing thread: finished items to rows, rows to the output, counted into the summary. */
#ifndef CORE_JOB_WRITER_H
#define CORE_JOB_WRITER_H

#include "core/job/finished_set.h"
#include "core/job/item_queue.h"
#include "core/job/job.h"

struct writer {
    const struct job *job;
    struct item_queue *finished; /* borrowed */
    struct summary *summary;     /* written by this thread only */
    struct text line;            /* reused */
    struct finished_set written; /* files of --format files, by the hash of their path */
    long long failed_by_warning;
    double write_ms;
    atomic_bool failed; /* the output cannot be written: the job must end */
    bool output_closed; /* a pipe whose reader has gone */
    struct error error;
};

/* `summary` is set before the thread starts. */
void writer_init(struct writer *writer, const struct job *job, struct item_queue *finished);
void writer_deinit(struct writer *writer);

/* Writes until the queue is closed and empty. Run on a thread of its own. */
void writer_run(struct writer *writer);

#endif
