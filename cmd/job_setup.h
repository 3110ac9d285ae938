/* What run, plan and verify share in setting up a job: inputs, the hash of the settings, the job's
 * fields. */
#ifndef CMD_JOB_SETUP_H
#define CMD_JOB_SETUP_H

#include "cmd/questions.h"
#include "cmd/runtime.h"
#include "core/job/job.h"
#include "core/job/summary.h"

/* The inputs to read: those given, or stdin when it is a pipe or a file and none is given. */
enum status job_setup_inputs(const struct settings *settings, const struct path_list *given,
                             struct arena *arena, struct path_list *inputs, struct error *error);

/* No prompt anywhere: neither given, nor can the inputs bring their own. */
enum status job_setup_check_prompt(const struct settings *settings, const struct path_list *inputs,
                                   struct error *error);

/* The job's fields that follow from the runtime, with the settings' hash. */
void job_setup_fill(struct job *job, const struct runtime *runtime,
                    const struct questions *questions, const struct path_list *inputs);

/* The summary's facts about machine and model. */
void job_setup_facts(struct summary_facts *facts, const struct runtime *runtime);

/* Whether a file can be written is known before the work, not after it; NULL: nothing to write. */
enum status job_setup_check_writable(const char *path, struct error *error);

#endif
