/* The rows are recomputed by the same job code into a temporary output, then compared by id. */
#include "cmd/verify_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/exit_code.h"
#include "cmd/job_setup.h"
#include "cmd/signals.h"
#include "core/base/json.h"

struct row_check {
    struct runtime runtime;
    struct settings alone; /* the run's settings, one sequence at a time */
    struct questions questions;
    struct path_list inputs;
    struct job job;
    struct job_run *job_run;
    struct job_progress progress;
    struct finished_set finished;
    struct output_log output;
    struct summary *summary;
    char path[32]; /* of the recomputed rows */
    long long equal, different, missing;
};

static enum status setup(struct row_check *check, const struct path_list *given,
                         struct arena *arena, struct error *error) {
    TRY(job_setup_inputs(&check->alone, given, arena, &check->inputs, error));
    TRY(questions_load(&check->runtime, &check->questions, error));
    TRY(job_setup_check_prompt(&check->alone, &check->inputs, error));
    TRY(runtime_open_model(&check->runtime, error));
    TRY(runtime_open_tokenizer(&check->runtime, error));
    TRY(runtime_open_template(&check->runtime, error));
    TRY(runtime_open_backend(&check->runtime, error));
    TRY(model_id_sha256(check->runtime.model->gguf, check->runtime.sha256, error));
    job_setup_fill(&check->job, &check->runtime, &check->questions, &check->inputs);
    TRY(runtime_plan_memory(&check->runtime, error));
    return runtime_open_engine(&check->runtime, 0, error);
}

static enum status recompute(struct row_check *check, struct arena *arena, struct error *error) {
    check->summary = arena_calloc(arena, 1, sizeof *check->summary);
    if (!check->summary)
        return error_no_memory(error, "the summary");
    int fd = mkstemp(check->path);
    if (fd < 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot make a temporary file");
    close(fd);
    TRY(output_log_open(&check->output, check->path, OUTPUT_FORCE, error));
    check->job.finished = &check->finished;
    check->job.output = &check->output;
    check->job.progress = &check->progress;
    struct job_outcome outcome = {.summary = check->summary};
    TRY(job_open(&check->job, &check->job_run, error));
    TRY(job_compute(check->job_run, check->runtime.engine, &outcome, error));
    return output_log_sync(&check->output, true, error);
}

static json_t *next_row(FILE *file, char **line, size_t *capacity) {
    ssize_t length;
    while ((length = getline(line, capacity, file)) > 0) {
        json_t *row = NULL;
        if (json_parse(*line, (size_t)length, &row, NULL) == STATUS_OK)
            return row;
    }
    return NULL;
}

/* Rows by id, without what differs between runs. */
static enum status load_rows(const char *path, json_t *rows, struct error *error) {
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(error, STATUS_IO, errno, "cannot read '%s'", path);
    char *line = NULL;
    size_t capacity = 0;
    json_t *row;
    while ((row = next_row(file, &line, &capacity)) != NULL) {
        char *id = json_dumps(json_object_get(row, "id"), JSON_ENCODE_ANY);
        if (id)
            json_object_set(rows, id, row);
        free(id);
        json_decref(row);
    }
    free(line);
    fclose(file);
    return STATUS_OK;
}

static bool same_outcome(const json_t *row, const json_t *again) {
    static const char *const keys[] = {"status", "text", "finish_reason", "tokens", "fingerprint"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *a = json_object_get(row, keys[i]), *b = json_object_get(again, keys[i]);
        if ((a || b) && !json_equal(a, b))
            return false;
    }
    return true;
}

static void compare_rows(struct row_check *check, json_t *rows, const json_t *again) {
    const char *id;
    json_t *row;
    json_object_foreach(rows, id, row) {
        const json_t *other = json_object_get(again, id);
        if (!other) {
            check->missing++;
            printf("%s: not among the inputs\n", id);
        } else if (same_outcome(row, other)) {
            check->equal++;
        } else {
            check->different++;
            printf("%s: differs\n", id);
        }
    }
}

static enum status check_rows(struct row_check *check, const struct path_list *inputs,
                              struct arena *arena, struct error *error) {
    TRY(setup(check, inputs, arena, error));
    TRY(recompute(check, arena, error));
    json_t *rows = json_object(), *again = json_object();
    enum status status = load_rows(check->alone.rows, rows, error);
    if (status == STATUS_OK)
        status = load_rows(check->path, again, error);
    if (status == STATUS_OK)
        compare_rows(check, rows, again);
    json_decref(rows);
    json_decref(again);
    return status;
}

/* Frees everything, unless a reader that cannot be woken still uses it: then the process ends here.
 */
static int finish(struct row_check *check, int code) {
    struct error ignored;
    bool ended = job_close(check->job_run);
    output_log_close(&check->output, &ignored);
    unlink(check->path);
    if (!ended) {
        fflush(stdout);
        _exit(code);
    }
    finished_set_deinit(&check->finished);
    questions_deinit(&check->questions);
    runtime_deinit(&check->runtime);
    return code;
}

static int exit_code_of(const struct row_check *check, enum status status) {
    if (signals_exit_code() != 0)
        return signals_exit_code();
    if (status != STATUS_OK)
        return EXIT_NOT_STARTED;
    return check->different + check->missing > 0 ? EXIT_SOME_FAILED : EXIT_ALL_DONE;
}

int verify_rows(const struct settings *settings, const struct path_list *inputs,
                struct arena *arena) {
    struct row_check check = {.alone = *settings, .output = {.fd = -1}};
    memcpy(check.path, "/tmp/sheaf-verify-XXXXXX", sizeof "/tmp/sheaf-verify-XXXXXX");
    check.alone.max_sequences = 1;
    check.alone.prefix_cache = 0;
    finished_set_init(&check.finished);
    runtime_init(&check.runtime, &check.alone, arena);
    check.job.stop = signals_install();
    struct error error;
    enum status status = check_rows(&check, inputs, arena, &error);
    if (status == STATUS_OK)
        printf("%lld rows equal, %lld different, %lld not among the inputs\n", check.equal,
               check.different, check.missing);
    else
        fprintf(stderr, "sheaf: %s\n", error.text);
    return finish(&check, exit_code_of(&check, status));
}
