/* The output file as an append log: one row a line, appended whole, synced each second and at the
 * end. A run killed at any moment leaves complete rows and at most one torn line, which resuming
 * cuts off.
 *
 * The file is locked while it is written (flock: a second run on it is refused). Refuses to touch a
 * file that does not look like rows of ours. */
#ifndef CORE_JOB_OUTPUT_LOG_H
#define CORE_JOB_OUTPUT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/text.h"

struct output_log {
    int fd; /* -1: closed */
    bool is_stdout;
    bool may_sync;     /* a regular file */
    char *path;        /* owned; NULL for stdout */
    bool is_made;      /* this run made the file */
    bool has_old_rows; /* FORCE: they go when the first new row comes */
    int64_t length;
    int64_t synced_ns;
    bool unsynced;
};

enum output_mode { OUTPUT_NEW, OUTPUT_FORCE, OUTPUT_RESUME };

/* `path` NULL: stdout. NEW refuses an existing non-empty file with its row count; FORCE empties it
 * when the first row is appended, so that a run that never starts destroys nothing; RESUME keeps it
 * (a missing one is made). */
enum status output_log_open(struct output_log *log, const char *path, enum output_mode mode,
                            struct error *error);

/* Append one complete line. On failure (disk full) nothing of it remains. STATUS_CANCELLED: the
 * reader of a pipe has gone. */
enum status output_log_append(struct output_log *log, struct view line, struct error *error);

/* Sync when a second has passed since the last time (or `now`). */
enum status output_log_sync(struct output_log *log, bool now, struct error *error);

/* The log goes on under another name. */
enum status output_log_rename(struct output_log *log, const char *path, struct error *error);

/* A new name in a folder outlives a power loss once the folder is synced, as far as the file system
 * can: its refusal is no error. */
void output_log_sync_folder(const char *path);

/* Syncs and closes; a file that was made and has no row is removed. */
enum status output_log_close(struct output_log *log, struct error *error);

#endif
