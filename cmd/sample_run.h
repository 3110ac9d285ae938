/* A run whose rows are thrown away: what `profile` and `tune` measure. Everything is opened anew
 * for each, so that one run leaves nothing behind for the next but what the disk cache holds. */
#ifndef CMD_SAMPLE_RUN_H
#define CMD_SAMPLE_RUN_H

#include <pthread.h>

#include "cmd/questions.h"
#include "cmd/runtime.h"
#include "core/job/job.h"
#include "core/profile/machine.h"

struct sample_run {
    struct runtime runtime;
    struct settings effective;
    struct questions questions;
    struct path_list inputs;
    struct job job;
    struct job_run *job_run;
    struct job_progress progress;
    struct finished_set finished;
    struct output_log output;
    struct summary *summary;
    char path[40];                     /* of the rows, removed at the end */
    double seconds;                    /* from the first step's begin to the end of the last */
    struct machine_load before, after; /* around the computing */
    atomic_int stop;                   /* enum job_stop: of time, or the user's */
    const atomic_int *stopped_by_user;
    pthread_t timer;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool timing;
};

/* Runs the documents; with `machine` in detail against its ceilings. On failure, too, close it. */
enum status sample_run_compute(struct sample_run *run, const struct settings *settings,
                               const struct path_list *given, const struct machine *machine,
                               struct arena *arena, struct error *error);
/* false: the reader could not be ended, and the process must end by _exit. */
bool sample_run_close(struct sample_run *run);

/* Documents that got a row, and those known of that did not run at the peak. */
long long sample_run_documents(const struct sample_run *run);

#endif
