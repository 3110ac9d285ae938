/* `sheaf tune`: the profiler's advice, tried one setting at a time on the first documents. What
 * gains more than the noise stays, and the next profile is of the settings so far. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/exit_code.h"
#include "cmd/job_setup.h"
#include "cmd/profile_facts.h"
#include "cmd/signals.h"
#include "cmd/tune_file.h"

enum { TRIALS_MAX = 6, PROFILES_MAX = 8, TUNE_SECONDS = 15, TRIAL_SECONDS = 1000000 };

struct tune {
    const struct settings *given;
    const struct path_list *inputs;
    struct settings settings; /* with what was kept so far */
    struct tune_trial trials[TRIALS_MAX];
    int trial_count;
    long long documents;
    struct arena *arena;
};

static enum status profile(struct tune *tune, struct profile_facts *profile, struct error *error) {
    struct sample_run *run = arena_calloc(tune->arena, 1, sizeof *run);
    if (run == NULL)
        return error_no_memory(error, "the profile");
    TRY(profile_facts_begin(profile, &tune->settings, error));
    enum status status = sample_run_compute(run, &tune->settings, tune->inputs, &profile->before,
                                            tune->arena, error);
    if (status == STATUS_OK)
        status = profile_facts_end(profile, run, error);
    profile->facts.noise = 0; /* a trial measures it better */
    if (status == STATUS_OK)
        rules_run(&profile->facts, &profile->advice);
    if (status == STATUS_OK)
        tune->documents = sample_run_documents(run);
    if (!sample_run_close(run))
        _exit(EXIT_NOT_STARTED);
    return status;
}

static bool was_tried(const struct tune *tune, const struct advice *advice) {
    for (int i = 0; i < tune->trial_count; i++)
        if (strcmp(tune->trials[i].advice.setting, advice->setting) == 0 &&
            strcmp(tune->trials[i].advice.to, advice->to) == 0)
            return true;
    return false;
}

/* The first advice that may be tried and was not. */
static const struct advice *next_advice(const struct tune *tune,
                                        const struct rules_advice *advice) {
    for (int i = 0; i < advice->count; i++) {
        const struct advice *item = &advice->items[i];
        bool allowed = item->consent == ADVICE_AUTOMATIC ||
                       (item->consent == ADVICE_CONSENT && tune->given->consent);
        if (allowed && item->setting != NULL && item->to[0] != '\0' && !was_tried(tune, item))
            return item;
    }
    return NULL;
}

static void say(const struct tune_trial *trial) {
    struct text line;
    text_init(&line, 1 << 12);
    if (tune_file_describe(&line, trial))
        printf("%s\n", line.bytes);
    fflush(stdout);
    text_deinit(&line);
}

static enum status try_advice(struct tune *tune, const struct advice *advice, struct error *error) {
    struct tune_trial *trial = &tune->trials[tune->trial_count];
    const struct option *option =
        settings_option_find(advice->setting, strlen(advice->setting), NULL);
    struct settings tuned = tune->settings;
    *trial = (struct tune_trial){.advice = *advice};
    TRY(settings_assign(&tuned, option, advice->to, tune->arena, error));
    TRY(tune_trial_run(trial, &tune->settings, &tuned, tune->inputs, tune->arena, error));
    tune->trial_count++;
    say(trial);
    if (trial->kept)
        tune->settings = tuned;
    return STATUS_OK;
}

/* All runs after the first are of the same documents, and are not cut short. */
static void fix_documents(struct tune *tune) {
    if (tune->given->limit == 0 || tune->documents < tune->given->limit)
        tune->settings.limit = tune->documents;
    tune->settings.sample_seconds = TRIAL_SECONDS;
}

static enum status search(struct tune *tune, struct error *error) {
    struct profile_facts *facts = arena_calloc(tune->arena, 1, sizeof *facts);
    if (facts == NULL)
        return error_no_memory(error, "the profile");
    bool stale = true;
    for (int profiles = 0; tune->trial_count < TRIALS_MAX;) {
        if (stale && profiles++ == PROFILES_MAX)
            break;
        if (stale)
            TRY(profile(tune, facts, error));
        if (tune->trial_count == 0)
            fix_documents(tune);
        const struct advice *advice = next_advice(tune, &facts->advice);
        if (advice == NULL)
            break;
        TRY(try_advice(tune, advice, error));
        stale = tune->trials[tune->trial_count - 1].kept;
    }
    return STATUS_OK;
}

static enum status check_output(const struct settings *settings, struct error *error) {
    struct stat info;
    if (settings->output == NULL)
        return error_set(error, STATUS_BAD_INPUT, "say where the job file goes: -o JOB.yaml");
    TRY(profile_facts_check(settings, error));
    if (!settings->force && stat(settings->output, &info) == 0 && info.st_size > 0)
        return error_set(error, STATUS_BAD_INPUT, "'%s' is there already: --force overwrites it",
                         settings->output);
    return job_setup_check_writable(settings->output, error);
}

static enum status write_job(const struct tune *tune, struct error *error) {
    struct settings job = tune->settings;
    struct text text;
    text_init(&text, 1 << 20);
    FILE *file = NULL;
    bool fine = tune_file_write(&text, &job, tune->inputs, tune->trials, tune->trial_count);
    if (fine) {
        file = fopen(tune->given->output, "we");
        fine = file != NULL && fwrite(text.bytes, 1, text.length, file) == text.length;
    }
    int failure = errno;
    if (file != NULL && fclose(file) != 0)
        fine = false;
    text_deinit(&text);
    return fine ? STATUS_OK
                : error_set_errno(error, STATUS_IO, failure, "cannot write '%s'",
                                  tune->given->output);
}

static enum status run_tune(struct tune *tune, struct error *error) {
    TRY(check_output(tune->given, error));
    tune->settings.output = NULL;
    if (tune->settings.sample_seconds == 0)
        tune->settings.sample_seconds = TUNE_SECONDS;
    TRY(search(tune, error));
    if (tune->trial_count == 0)
        printf("nothing to change: no setting is predicted to gain more than the noise\n");
    return write_job(tune, error);
}

int command_tune(const struct settings *settings, const struct path_list *inputs,
                 struct arena *arena) {
    struct tune *tune = arena_calloc(arena, 1, sizeof *tune);
    struct error error;
    if (tune == NULL)
        return EXIT_NOT_STARTED;
    *tune =
        (struct tune){.given = settings, .inputs = inputs, .settings = *settings, .arena = arena};
    enum status status = run_tune(tune, &error);
    if (signals_exit_code() != 0)
        return signals_exit_code();
    if (status != STATUS_OK)
        fprintf(stderr, "sheaf: %s\n", error.text);
    return status == STATUS_OK ? EXIT_ALL_DONE : EXIT_NOT_STARTED;
}
