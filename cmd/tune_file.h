/* The job file that `sheaf tune` writes: every setting of the job that is not its default, as
 * `sheaf run --config` reads them, and the trials as comments. */
#ifndef CMD_TUNE_FILE_H
#define CMD_TUNE_FILE_H

#include "cmd/tune_trial.h"
#include "core/base/text.h"

bool tune_file_write(struct text *out, const struct settings *settings,
                     const struct path_list *inputs, const struct tune_trial *trials,
                     int trial_count);

/* A trial as one line: setting, prediction and measurement side by side. */
bool tune_file_describe(struct text *out, const struct tune_trial *trial);

#endif
