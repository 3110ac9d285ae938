/* Both settings run in turns, so that a machine that slows down slows both. A gain counts when it
 * is larger than the noise of these very runs. */
#include "cmd/tune_trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/sample_run.h"

enum { PAIRS_MAX = 9, PAIRS_MIN = 3 };

static const double LEAST_GAIN = 0.03;
static const double ENOUGH_SECONDS = 30; /* of pairs: no more than the least number */

struct side {
    const struct settings *settings;
    double seconds[PAIRS_MAX];
    json_t *rows; /* of the first run: outcome by id */
};

static json_t *outcome_of(const json_t *row) {
    static const char *const keys[] = {"status", "text", "finish_reason"};
    json_t *outcome = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        json_object_set(outcome, keys[i], json_object_get(row, keys[i]));
    return outcome;
}

static json_t *read_rows(const char *path) {
    json_t *rows = json_object();
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    while (file != NULL && (length = getline(&line, &capacity, file)) > 0) {
        json_t *row = NULL;
        if (json_parse(line, (size_t)length, &row, NULL) != STATUS_OK)
            continue;
        char *id = json_dumps(json_object_get(row, "id"), JSON_ENCODE_ANY);
        if (id != NULL)
            json_object_set_new(rows, id, outcome_of(row));
        free(id);
        json_decref(row);
    }
    free(line);
    if (file != NULL)
        fclose(file);
    return rows;
}

static enum status run_side(struct side *side, int number, const struct path_list *inputs,
                            struct arena *arena, struct error *error) {
    struct sample_run *run = arena_calloc(arena, 1, sizeof *run);
    if (run == NULL)
        return error_no_memory(error, "a trial");
    enum status status = sample_run_compute(run, side->settings, inputs, NULL, arena, error);
    side->seconds[number] = run->seconds;
    if (status == STATUS_OK && atomic_load(run->stopped_by_user) != JOB_GO_ON)
        status = error_set(error, STATUS_CANCELLED, "stopped");
    if (status == STATUS_OK && number == 0)
        side->rows = read_rows(run->path);
    if (!sample_run_close(run))
        _exit(1);
    return status;
}

static int compare_seconds(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* The mean of the faster two thirds, because neighbours only ever slow a run down; and the error of
 * that mean, as a share of it. */
static double mean_of(const struct side *side, int count, double *error) {
    double sorted[PAIRS_MAX], sum = 0, squares = 0;
    int kept = (2 * count + 2) / 3;
    memcpy(sorted, side->seconds, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_seconds);
    for (int i = 0; i < kept; i++)
        sum += sorted[i];
    double mean = sum / kept;
    for (int i = 0; i < kept; i++)
        squares += (sorted[i] - mean) * (sorted[i] - mean);
    *error = sqrt(squares / (kept - 1) / kept) / mean;
    return mean;
}

static void compare(struct tune_trial *trial, const struct side *without, const struct side *with,
                    int count) {
    double a, b;
    trial->before = mean_of(without, count, &a);
    trial->after = mean_of(with, count, &b);
    trial->gain = trial->before / trial->after - 1;
    trial->sigma = (1 + trial->gain) * sqrt(a * a + b * b);
}

/* More pairs would hardly change the verdict. */
static bool is_clear(const struct tune_trial *trial) {
    return fabs(trial->gain - LEAST_GAIN) > 3 * trial->sigma;
}

static void judge(struct tune_trial *trial) {
    double least = 2 * trial->sigma > LEAST_GAIN ? 2 * trial->sigma : LEAST_GAIN;
    bool may_differ = trial->advice.consent == ADVICE_CONSENT;
    trial->kept = trial->gain > least && (trial->same_text || may_differ);
    if (trial->kept)
        trial->verdict = trial->same_text ? "kept" : "kept: texts differ, as consented";
    else if (trial->gain > least)
        trial->verdict = "reverted: texts differ";
    else
        trial->verdict = "reverted: not above the noise";
}

static enum status run_pairs(struct tune_trial *trial, struct side *without, struct side *with,
                             const struct path_list *inputs, struct arena *arena,
                             struct error *error) {
    int count = 0;
    double spent = 0;
    while (count < PAIRS_MIN || (count < PAIRS_MAX && spent < ENOUGH_SECONDS && !is_clear(trial))) {
        TRY(run_side(without, count, inputs, arena, error));
        TRY(run_side(with, count, inputs, arena, error));
        spent += without->seconds[count] + with->seconds[count];
        count++;
        if (count >= PAIRS_MIN)
            compare(trial, without, with, count);
    }
    trial->same_text = json_equal(without->rows, with->rows) == 1;
    judge(trial);
    return STATUS_OK;
}

enum status tune_trial_run(struct tune_trial *trial, const struct settings *settings,
                           const struct settings *tuned, const struct path_list *inputs,
                           struct arena *arena, struct error *error) {
    struct side without = {.settings = settings}, with = {.settings = tuned};
    enum status status = run_pairs(trial, &without, &with, inputs, arena, error);
    json_decref(without.rows);
    json_decref(with.rows);
    return status;
}
