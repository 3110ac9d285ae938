/* `sheaf run`: the main job. Everything that can be refused is refused before weights are touched.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/exit_code.h"
#include "cmd/job_setup.h"
#include "cmd/progress.h"
#include "cmd/questions.h"
#include "cmd/runtime.h"
#include "cmd/signals.h"
#include "core/base/clock.h"
#include "core/job/output_scan.h"
#include "core/job/result_files.h"
#include "core/job/model_id.h"
#include "core/kernels/ceilings.h"
#include "core/profile/machine_cache.h"

struct run_command {
    struct runtime runtime;
    struct settings effective; /* the settings with what was chosen for those not given */
    struct questions questions;
    struct path_list inputs;
    struct job job;
    struct job_run *job_run;
    struct finished_set finished;
    struct output_log output, errors;
    struct text output_path; /* of the rows' log */
    struct output_scan scan;
    struct summary *summary;
    struct job_outcome outcome;
    struct progress progress;
    int64_t started_ns;
};

static enum output_mode mode_of(const struct settings *settings) {
    if (settings->resume)
        return OUTPUT_RESUME;
    return settings->force ? OUTPUT_FORCE : OUTPUT_NEW;
}

/* Where rows are appended: the output itself, a log beside an ordered one, or in the output
 * directory. */
static enum status choose_log_path(struct run_command *run, struct error *error) {
    const struct settings *settings = run->runtime.settings;
    text_init(&run->output_path, 1 << 14);
    if (settings->format == FORMAT_FILES)
        return result_files_log_path(settings->output, &run->output_path, error);
    if (!settings->output)
        return STATUS_OK;
    bool ordered = settings->order == ORDER_INPUT;
    if (!text_append_format(&run->output_path, "%s%s", settings->output, ordered ? ".part" : ""))
        return error_no_memory(error, "the output path");
    return STATUS_OK;
}

static bool has_rows(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && info.st_size > 0;
}

/* An ordered output that was finished before is refused, or it is the log to resume from: then it
 * keeps its name until there is something to compute. An interrupted log beside it comes first. */
static enum status open_rows(struct run_command *run, struct error *error) {
    const struct settings *settings = run->runtime.settings;
    const char *path = run->output_path.bytes;
    bool finished =
        settings->order == ORDER_INPUT && !settings->force && has_rows(settings->output);
    if (finished && !(settings->resume && has_rows(path)))
        path = settings->output;
    return output_log_open(&run->output, path, mode_of(settings), error);
}

/* What this run writes is not read as its documents, and not overwritten by its other outputs. */
static enum status check_own(struct run_command *run, struct error *error) {
    const struct settings *settings = run->runtime.settings;
    struct input_own *own = &run->job.own;
    input_own_add_descriptor(own, STDOUT_FILENO);
    input_own_add_descriptor(own, STDERR_FILENO);
    input_own_add(own, settings->output);
    input_own_add(own, settings->output ? run->output_path.bytes : NULL);
    input_own_add(own, settings->errors);
    if (settings->summary && input_own_has_path(own, settings->summary))
        return error_set(error, STATUS_BAD_INPUT, "--summary '%s' is the output, too",
                         settings->summary);
    input_own_add(own, settings->summary);
    for (int i = 0; i < run->inputs.count; i++) {
        if (input_own_has_path(own, run->inputs.items[i]))
            return error_set(error, STATUS_BAD_INPUT, "'%s' is an input and an output",
                             run->inputs.items[i]);
    }
    return STATUS_OK;
}

static enum status open_outputs(struct run_command *run, struct error *error) {
    const struct settings *settings = run->runtime.settings;
    TRY(choose_log_path(run, error));
    TRY(open_rows(run, error));
    if (settings->errors)
        TRY(output_log_open(&run->errors, settings->errors, mode_of(settings), error));
    TRY(job_setup_check_writable(settings->summary, error));
    return check_own(run, error);
}

static enum status scan_output(struct run_command *run, struct error *error) {
    if (!run->runtime.settings->resume)
        return STATUS_OK;
    char settings_hash[FINGERPRINT_BYTES];
    document_hash_fingerprint(run->job.settings_hash, 0, settings_hash);
    settings_hash[17] = '\0'; /* with the dash */
    TRY(output_scan_rows(&run->output, settings_hash, &run->finished, &run->scan, error));
    log_write(&run->runtime.log, LOG_INFO, "resuming: %lld rows are there, %lld of them errors%s",
              run->scan.rows, run->scan.errors,
              run->scan.torn_bytes > 0 ? "; a torn last line was cut off" : "");
    return run->runtime.settings->errors
               ? output_scan_refill_errors(&run->output, &run->errors, error)
               : STATUS_OK;
}

static enum status check_fail_on(const struct settings *settings, struct error *error) {
    for (int i = 0; i < settings->fail_on.count; i++) {
        const char *name = settings->fail_on.items[i];
        if (codes_warning_find(name, strlen(name)) == WARNING_COUNT)
            return error_set(error, STATUS_BAD_INPUT,
                             "--fail-on '%s': warnings are replaced_bytes, shortened, "
                             "empty_output, cut_at_max_tokens",
                             name);
    }
    return STATUS_OK;
}

/* Everything before weights are touched. */
static enum status prepare(struct run_command *run, const struct path_list *inputs,
                           struct arena *arena, struct error *error) {
    const struct settings *settings = run->runtime.settings;
    TRY(settings_check_run(settings, error));
    TRY(check_fail_on(settings, error));
    TRY(job_setup_inputs(settings, inputs, arena, &run->inputs, error));
    TRY(questions_load(&run->runtime, &run->questions, error));
    TRY(job_setup_check_prompt(settings, &run->inputs, error));
    TRY(runtime_open_model(&run->runtime, error));
    TRY(runtime_open_tokenizer(&run->runtime, error));
    TRY(runtime_open_template(&run->runtime, error));
    TRY(runtime_open_backend(&run->runtime, error));
    TRY(model_id_sha256(run->runtime.model->gguf, run->runtime.sha256, error));
    job_setup_fill(&run->job, &run->runtime, &run->questions, &run->inputs);
    TRY(open_outputs(run, error));
    return scan_output(run, error);
}

/* How long a run waits for a short queue to be read whole, to say exactly what it will need. */
enum { FORESEE_MS = 300 };

/* From here on the settings say what is used, and so does the summary. */
static void settle_settings(struct run_command *run) {
    struct runtime *runtime = &run->runtime;
    run->effective = *runtime->settings;
    run->effective.model = runtime->model_path;
    run->effective.context = runtime->context;
    run->effective.threads = thread_pool_count(runtime->pool);
    runtime->settings = &run->effective;
}

static enum status open_job(struct run_command *run, struct error *error) {
    struct runtime *runtime = &run->runtime;
    settle_settings(run);
    run->job.finished = &run->finished;
    run->job.output = &run->output;
    run->job.errors = runtime->settings->errors ? &run->errors : NULL;
    run->job.progress = &run->progress.counters;
    TRY(runtime_plan_memory(runtime, error));
    TRY(job_open(&run->job, &run->job_run, error));
    struct engine_options options = runtime_engine_options(runtime);
    struct job_forecast forecast;
    TRY(job_foresee(run->job_run, runtime->model, &options, runtime->budget.memory.kv_page,
                    FORESEE_MS, &forecast, error));
    if (!forecast.whole) {
        TRY(budget_add_queues(&runtime->budget, error));
        return runtime_open_engine(runtime, 0, error);
    }
    /* A short queue needs less than the settings allow. */
    if (run->effective.max_sequences > forecast.item_count)
        run->effective.max_sequences = forecast.item_count;
    TRY(runtime_plan_memory(runtime, error));
    return runtime_open_engine(runtime, forecast.kv_bytes, error);
}

static enum status compute(struct run_command *run, struct error *error) {
    if (run->output.path && strcmp(run->output.path, run->output_path.bytes) != 0)
        TRY(output_log_rename(&run->output, run->output_path.bytes, error));
    summary_work_init(&run->summary->work, run->runtime.model, run->runtime.budget.memory.kv_page);
    run->outcome =
        (struct job_outcome){.summary = run->summary, .superseded = run->scan.superseded};
    progress_start(&run->progress, run->runtime.settings, run->job.stop);
    enum status status = job_compute(run->job_run, run->runtime.engine, &run->outcome, error);
    progress_stop(&run->progress);
    return status;
}

/* Ordered outputs take their final name; a log with superseded rows is written once more. Errors
 * that were retried leave their file. */
static enum status publish(struct run_command *run, struct error *error) {
    const struct settings *settings = run->runtime.settings;
    if (settings->resume && settings->errors)
        TRY(output_scan_refill_errors(&run->output, &run->errors, error));
    bool ordered = settings->order == ORDER_INPUT && settings->format == FORMAT_JSONL;
    if (!settings->output || (!ordered && !run->outcome.superseded))
        return STATUS_OK;
    if (run->outcome.stopped_by_user || run->outcome.output_failed)
        return STATUS_OK;
    const char *target = ordered ? settings->output : run->output_path.bytes;
    TRY(output_scan_publish(&run->output, target, ordered, error));
    if (ordered && unlink(run->output_path.bytes) != 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot remove '%s'",
                               run->output_path.bytes);
    return STATUS_OK;
}

static int exit_code_of(const struct run_command *run, enum status status) {
    if (signals_exit_code() != 0)
        return signals_exit_code();
    if (run->outcome.output_closed)
        return EXIT_ALL_DONE;
    if (atomic_load(&run->progress.counters.expected) == 0)
        return EXIT_NOT_STARTED;
    if (status != STATUS_OK)
        return EXIT_STOPPED_EARLY;
    bool failed = run->summary->failed > 0 || run->outcome.failed_by_warning > 0 ||
                  run->outcome.resumed_failed > 0;
    return failed ? EXIT_SOME_FAILED : EXIT_ALL_DONE;
}

static void write_summary_file(struct run_command *run, const struct text *text) {
    const char *path = run->runtime.settings->summary;
    FILE *file = fopen(path, "we");
    bool fine = file && fwrite(text->bytes, 1, text->length, file) == text->length;
    if (file && fclose(file) != 0)
        fine = false;
    if (!fine)
        log_write(&run->runtime.log, LOG_ERROR, "cannot write the summary to '%s'", path);
}

/* As an earlier profile found them. */
static bool know_ceilings(const struct runtime *runtime, const struct kernels *kernels,
                          struct ceilings_step *known) {
    char folder[4096], key[MACHINE_CACHE_KEY_BYTES];
    if (!model_id_cache_folder(folder, sizeof folder))
        return false;
    machine_cache_key(SHEAF_VERSION, &runtime->features, kernels, thread_pool_count(runtime->pool),
                      key);
    return machine_cache_load(folder, key, known);
}

/* What the machine can do at most, for those who asked for figures. Where it is not known, it takes
 * some tenths of a second, and memory, which weights and KV cache leave to it. */
static void measure_ceilings(struct run_command *run) {
    struct runtime *runtime = &run->runtime;
    struct summary_facts *facts = &run->summary->facts;
    struct ceilings ceilings;
    struct error ignored;
    struct kernels kernels = kernels_select(&runtime->features);
    struct ceilings_step known;
    if (!runtime->settings->summary || !runtime_uses_cpu(runtime))
        return;
    if (know_ceilings(runtime, &kernels, &known)) {
        facts->flops_ceiling = known.flops;
        facts->bytes_ceiling = known.memory;
        return;
    }
    if (ceilings_measure(kernels.linear, runtime->pool, &ceilings, &ignored) != STATUS_OK)
        return;
    facts->flops_ceiling = ceilings.flops_all;
    facts->bytes_ceiling = ceilings.read[CEILINGS_READ_COUNT - 1].all;
}

static void report(struct run_command *run, int code) {
    struct summary *summary = run->summary;
    job_setup_facts(&summary->facts, &run->runtime);
    summary->facts.wall_ms = clock_ms_between(run->started_ns, clock_now_ns());
    runtime_close_engine(&run->runtime);
    measure_ceilings(run);
    summary->facts.exit_code = code;
    clock_wall_text(summary->facts.ended, sizeof summary->facts.ended);
    struct text text;
    text_init(&text, 1 << 22);
    if (!run->runtime.settings->quiet && summary_write_text(&text, summary, run->runtime.settings))
        fputs(text.bytes, stderr);
    text_clear(&text);
    if (run->runtime.settings->summary && summary_write_json(&text, summary, run->runtime.settings))
        write_summary_file(run, &text);
    text_deinit(&text);
}

/* Frees everything, unless a reader that cannot be woken still uses it: then the process ends here.
 */
static int finish(struct run_command *run, int code) {
    struct error ignored;
    bool ended = job_close(run->job_run);
    output_log_close(&run->output, &ignored);
    output_log_close(&run->errors, &ignored);
    if (!ended)
        _exit(code);
    questions_deinit(&run->questions);
    finished_set_deinit(&run->finished);
    text_deinit(&run->output_path);
    runtime_deinit(&run->runtime);
    return code;
}

static int fail(struct run_command *run, const struct error *error) {
    fprintf(stderr, "sheaf: %s\n", error->text);
    return finish(run, EXIT_NOT_STARTED);
}

int command_run(const struct settings *settings, const struct path_list *inputs,
                struct arena *arena) {
    struct run_command run = {
        .started_ns = clock_now_ns(), .output = {.fd = -1}, .errors = {.fd = -1}};
    struct error error;
    runtime_init(&run.runtime, settings, arena);
    finished_set_init(&run.finished);
    run.job.stop = signals_install();
    run.runtime.stop = run.job.stop;
    run.summary = arena_calloc(arena, 1, sizeof *run.summary);
    if (!run.summary)
        return EXIT_NOT_STARTED;
    clock_wall_text(run.summary->facts.started, sizeof run.summary->facts.started);
    if (prepare(&run, inputs, arena, &error) != STATUS_OK || open_job(&run, &error) != STATUS_OK)
        return fail(&run, &error);
    enum status status = compute(&run, &error);
    if (status == STATUS_OK)
        status = publish(&run, &error);
    int code = exit_code_of(&run, status);
    bool resumable = settings->output && code != EXIT_NOT_STARTED;
    if (status != STATUS_OK)
        fprintf(stderr, "sheaf: %s%s\n", error.text,
                resumable ? ": what is written stays; --resume continues" : "");
    else if (code == EXIT_NOT_STARTED)
        fprintf(stderr, "sheaf: no documents in the inputs\n");
    if (code != EXIT_NOT_STARTED)
        report(&run, code);
    return finish(&run, code);
}
