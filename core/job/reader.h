/* The reading thread: documents from the inputs, checked against what is finished, rendered,
 * tokenized and cut, into items. Used by run and plan alike. */
#ifndef CORE_JOB_READER_H
#define CORE_JOB_READER_H

#include "core/job/item_queue.h"
#include "core/job/job.h"

struct reader;

/* Opens the inputs (fails for what makes the job pointless). `ready` receives items for the engine,
 * `failed` error items; both borrowed. */
enum status reader_create(const struct job *job, struct item_queue *ready,
                          struct item_queue *failed, struct reader **reader, struct error *error);
void reader_destroy(struct reader *reader);

/* Reads everything; closes `ready` at the end. Run on a thread of its own. */
void reader_run(struct reader *reader);

/* After the thread has ended. */
struct reader_totals {
    long long documents;
    long long resumed;
    long long resumed_failed; /* of those, error rows */
    long long skipped;        /* files left out in directories */
    double read_ms, tokenize_ms;
    bool superseded;    /* a finished document changed and was redone */
    enum status status; /* our own trouble (memory) that ended reading early */
    struct error error;
};
const struct reader_totals *reader_result(const struct reader *reader);
/* The message about skipped files; empty when there were none. */
bool reader_skipped_message(const struct reader *reader, struct text *out);

#endif
