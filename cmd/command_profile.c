/* `sheaf profile`: documents under the profiler. The summary goes to stdout, or the JSON with
 * --json; --report and --trace write files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/exit_code.h"
#include "cmd/job_setup.h"
#include "cmd/profile_documents.h"
#include "cmd/profile_facts.h"
#include "cmd/signals.h"
#include "core/profile/report_html.h"
#include "core/profile/trace.h"

struct profile_command {
    struct sample_run run;
    struct profile_facts profile;
    struct kernels kernels;
};

static const struct rules_advice no_advice;

static struct report report_of(struct profile_command *command) {
    const struct runtime *runtime = &command->run.runtime;
    command->kernels = kernels_select(&runtime->features);
    if (command->run.effective.matmul_dtype == MATMUL_INT8)
        kernels_add_int8(&command->kernels, &runtime->features);
    return (struct report){
        .facts = &command->profile.facts,
        .recorder = runtime->recorder,
        .advice = command->profile.unreliable == NULL ? &command->profile.advice : &no_advice,
        .kernels = &command->kernels,
        .drift = command->profile.drift,
        .others = command->profile.others,
        .unreliable = command->profile.unreliable,
        .version = SHEAF_VERSION,
        .cpu_name = runtime->features.model_name,
        .isa = cpu_features_isa_name(cpu_features_best(&runtime->features)),
        .numerics = runtime->numerics,
        .model_name = runtime->model->name,
        .load_seconds = runtime->load_ms * 1e-3,
        .weight_bytes = runtime->budget.memory.weights,
        .scratch_bytes = runtime->budget.memory.scratch,
        .kv_bytes = runtime->budget.kv_bytes,
    };
}

static enum status write_file(const char *path, const char *bytes, size_t length,
                              struct error *error) {
    FILE *file = fopen(path, "we");
    bool fine = file != NULL && fwrite(bytes, 1, length, file) == length;
    int failure = errno;
    if (file != NULL && fclose(file) != 0) {
        failure = errno;
        fine = false;
    }
    return fine ? STATUS_OK : error_set_errno(error, STATUS_IO, failure, "cannot write '%s'", path);
}

static bool is_html(const char *path) {
    size_t length = path != NULL ? strlen(path) : 0;
    return length > 5 && strcmp(path + length - 5, ".html") == 0;
}

static bool append_json(struct text *text, const json_t *json) {
    char *bytes = json_dumps(json, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    bool fine = bytes != NULL && text_append_string(text, bytes) && text_append_char(text, '\n');
    free(bytes);
    return fine;
}

/* To stdout when `path` is NULL; HTML where its name says so. */
static enum status write_report(const json_t *json, const char *path, struct error *error) {
    struct text text;
    text_init(&text, (size_t)1 << 30);
    bool fine = is_html(path) ? report_html_write(&text, json) : append_json(&text, json);
    enum status status = STATUS_OK;
    if (!fine)
        status = error_no_memory(error, "the report");
    else if (path != NULL)
        status = write_file(path, text.bytes, text.length, error);
    else
        fwrite(text.bytes, 1, text.length, stdout);
    text_deinit(&text);
    return status;
}

static enum status write_trace(const struct report *report, const char *path, struct error *error) {
    struct text text;
    text_init(&text, TRACE_BYTES_MAX);
    enum status status = STATUS_OK;
    if (!trace_write(&text, report))
        status = error_no_memory(error, "the trace");
    else
        status = write_file(path, text.bytes, text.length, error);
    text_deinit(&text);
    return status;
}

static enum status print_text(const struct report *report, struct error *error) {
    struct text text;
    text_init(&text, 1 << 20);
    bool fine = report_text_write(&text, report);
    if (fine)
        fputs(text.bytes, stdout);
    text_deinit(&text);
    return fine ? STATUS_OK : error_no_memory(error, "the report");
}

static json_t *whole_report(const struct profile_command *command, const struct report *report) {
    json_t *json = report_json(report);
    json_t *documents = json != NULL ? profile_documents_json(command->run.path) : NULL;
    if (documents != NULL && json_object_set_new(json, "documents", documents) == 0)
        return json;
    json_decref(json);
    return NULL;
}

static enum status write_reports(const struct profile_command *command, const struct report *report,
                                 const struct settings *settings, struct error *error) {
    if (!settings->json && settings->report == NULL)
        return STATUS_OK;
    json_t *json = whole_report(command, report);
    if (json == NULL)
        return error_no_memory(error, "the report");
    enum status status = settings->json ? write_report(json, NULL, error) : STATUS_OK;
    if (status == STATUS_OK && settings->report != NULL)
        status = write_report(json, settings->report, error);
    json_decref(json);
    return status;
}

static enum status publish(struct profile_command *command, const struct settings *settings,
                           struct error *error) {
    struct report report = report_of(command);
    if (!settings->json)
        TRY(print_text(&report, error));
    TRY(write_reports(command, &report, settings, error));
    return settings->trace != NULL ? write_trace(&report, settings->trace, error) : STATUS_OK;
}

static enum status profile(struct profile_command *command, const struct settings *settings,
                           const struct path_list *inputs, struct arena *arena,
                           struct error *error) {
    TRY(profile_facts_check(settings, error));
    TRY(job_setup_check_writable(settings->report, error));
    TRY(job_setup_check_writable(settings->trace, error));
    TRY(profile_facts_begin(&command->profile, settings, error));
    TRY(sample_run_compute(&command->run, settings, inputs, &command->profile.before, arena,
                           error));
    TRY(profile_facts_end(&command->profile, &command->run, error));
    return publish(command, settings, error);
}

static int exit_code_of(const struct profile_command *command, enum status status) {
    if (signals_exit_code() != 0)
        return signals_exit_code();
    if (status != STATUS_OK)
        return EXIT_NOT_STARTED;
    return command->run.summary->failed > 0 ? EXIT_SOME_FAILED : EXIT_ALL_DONE;
}

int command_profile(const struct settings *settings, const struct path_list *inputs,
                    struct arena *arena) {
    struct profile_command *command = arena_calloc(arena, 1, sizeof *command);
    struct error error;
    if (command == NULL)
        return EXIT_NOT_STARTED;
    command->run.output.fd = -1;
    enum status status = profile(command, settings, inputs, arena, &error);
    if (status != STATUS_OK)
        fprintf(stderr, "sheaf: %s\n", error.text);
    int code = exit_code_of(command, status);
    if (command->run.job.stop != NULL && !sample_run_close(&command->run)) {
        fflush(stdout);
        _exit(code);
    }
    return code;
}
