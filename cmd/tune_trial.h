/* One setting changed: runs without and with it in turns, and what came of it. */
#ifndef CMD_TUNE_TRIAL_H
#define CMD_TUNE_TRIAL_H

#include "core/base/error.h"
#include "core/job/settings.h"
#include "core/profile/rules.h"

struct tune_trial {
    struct advice advice;
    double before, after; /* seconds of a run: mean of the faster two thirds */
    double gain;          /* before / after − 1 */
    double sigma;         /* of the gain */
    bool same_text;       /* all rows, but for timing */
    bool kept;
    const char *verdict; /* "kept", "reverted: within the noise" */
};

/* `tuned` are the settings with the advice applied. */
enum status tune_trial_run(struct tune_trial *trial, const struct settings *settings,
                           const struct settings *tuned, const struct path_list *inputs,
                           struct arena *arena, struct error *error);

#endif
