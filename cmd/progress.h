/* The progress line on stderr: a thread of its own, at most 5 updates a second on a terminal, a
 * line every 10 seconds otherwise. */
#ifndef CMD_PROGRESS_H
#define CMD_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/job/job.h"

struct progress {
    struct job_progress counters;
    pthread_t thread;
    bool started;
    bool has_lines; /* otherwise only the answer to Ctrl-C is said */
    bool on_terminal;
    long long max_tokens;
    atomic_bool ended;
    atomic_int *stop;
    int64_t start_ns;
};

/* `progress` is all zero, or its counters count already. Quiet settings: nothing is said. In auto
 * mode lines need a terminal. */
void progress_start(struct progress *progress, const struct settings *settings, atomic_int *stop);
/* Clears the line. */
void progress_stop(struct progress *progress);

#endif
