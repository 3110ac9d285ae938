/* Reading an output back: to resume it, and to publish it in order with one row an id. */
#ifndef CORE_JOB_OUTPUT_SCAN_H
#define CORE_JOB_OUTPUT_SCAN_H

#include "core/job/finished_set.h"
#include "core/job/output_log.h"

/* Read the rows of an earlier run into `finished`, and cut a torn last line. `settings_hash` (16
 * hex digits) is what each row's fingerprint must begin with, else the resume is refused. Counts
 * the distinct ids; *superseded tells whether an id has several rows. */
struct output_scan {
    long long rows;
    long long errors;
    bool superseded;
    int64_t torn_bytes;
};
enum status output_scan_rows(struct output_log *log, const char *settings_hash,
                             struct finished_set *finished, struct output_scan *scan,
                             struct error *error);

/* Rewrite the rows of `log` to `path` through a temporary file and a rename: one row an id (the
 * last), in file order or by index. The log's own path may be the target. */
enum status output_scan_publish(struct output_log *log, const char *path, bool by_index,
                                struct error *error);

/* Make `errors` hold the error rows that stand in `log`, one an id, and nothing else: what an
 * interrupted run left in it may be torn, and errors may have been retried. Refused when it holds
 * something that is no row. */
enum status output_scan_refill_errors(struct output_log *log, struct output_log *errors,
                                      struct error *error);

#endif
