/* The job is the ordinary one with an output in a temporary file. A timer stops admission, as
 * Ctrl-C does, when the sample has taken long enough. */
#include "cmd/sample_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/job_setup.h"
#include "cmd/signals.h"
#include "core/base/clock.h"
#include "core/job/model_id.h"

enum { LOOK_MS = 100, SAMPLE_SECONDS = 60 };

/* ---- the timer ---- */

static bool wait_a_little(struct sample_run *run) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (run->timing)
        if (pthread_cond_timedwait(&run->ended, &run->lock, &until) == ETIMEDOUT)
            break;
    return run->timing;
}

static void *keep_time(void *context) {
    struct sample_run *run = context;
    int64_t seconds =
        run->effective.sample_seconds > 0 ? run->effective.sample_seconds : SAMPLE_SECONDS;
    int64_t end_ns = clock_now_ns() + seconds * 1000000000;
    pthread_mutex_lock(&run->lock);
    while (wait_a_little(run)) {
        int asked = atomic_load(run->stopped_by_user);
        if (asked != JOB_GO_ON)
            atomic_store(&run->stop, asked);
        else if (clock_now_ns() > end_ns)
            atomic_store(&run->stop, JOB_STOP_ADMITTING);
    }
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

static enum status start_timer(struct sample_run *run, struct error *error) {
    run->timing = true;
    if (pthread_create(&run->timer, NULL, keep_time, run) == 0)
        return STATUS_OK;
    run->timing = false;
    return error_set(error, STATUS_NO_MEMORY, "cannot start the timing thread");
}

static void stop_timer(struct sample_run *run) {
    pthread_mutex_lock(&run->lock);
    run->timing = false;
    pthread_cond_signal(&run->ended);
    pthread_mutex_unlock(&run->lock);
    pthread_join(run->timer, NULL);
}

/* ---- opening ---- */

static enum status open_inputs(struct sample_run *run, const struct path_list *given,
                               struct arena *arena, struct error *error) {
    TRY(job_setup_inputs(&run->effective, given, arena, &run->inputs, error));
    TRY(questions_load(&run->runtime, &run->questions, error));
    return job_setup_check_prompt(&run->effective, &run->inputs, error);
}

/* What was chosen for settings not given is written into them. */
static void settle(struct sample_run *run) {
    run->effective.model = run->runtime.model_path;
    run->effective.context = run->runtime.context;
    run->effective.threads = thread_pool_count(run->runtime.pool);
}

static enum status open_engine(struct sample_run *run, const struct machine *machine,
                               struct error *error) {
    struct runtime *runtime = &run->runtime;
    TRY(runtime_open_model(runtime, error));
    TRY(runtime_open_tokenizer(runtime, error));
    TRY(runtime_open_template(runtime, error));
    TRY(runtime_open_backend(runtime, error));
    TRY(model_id_sha256(runtime->model->gguf, runtime->sha256, error));
    job_setup_fill(&run->job, runtime, &run->questions, &run->inputs);
    settle(run);
    runtime->profile = machine != NULL;
    if (machine != NULL)
        runtime->roofs = machine_roofs(machine, run->effective.matmul_dtype == MATMUL_INT8);
    TRY(runtime_plan_memory(runtime, error));
    return runtime_open_engine(runtime, 0, error);
}

static enum status open_output(struct sample_run *run, struct arena *arena, struct error *error) {
    run->summary = arena_calloc(arena, 1, sizeof *run->summary);
    if (run->summary == NULL)
        return error_no_memory(error, "the summary");
    memcpy(run->path, "/tmp/sheaf-sample-XXXXXX", sizeof "/tmp/sheaf-sample-XXXXXX");
    int fd = mkstemp(run->path);
    if (fd < 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot make a temporary file");
    close(fd);
    return output_log_open(&run->output, run->path, OUTPUT_FORCE, error);
}

static enum status compute(struct sample_run *run, struct error *error) {
    struct job_outcome outcome = {.summary = run->summary};
    TRY(start_timer(run, error));
    enum status status = job_open(&run->job, &run->job_run, error);
    machine_load_now(&run->before);
    if (status == STATUS_OK)
        status = job_compute(run->job_run, run->runtime.engine, &outcome, error);
    machine_load_now(&run->after);
    stop_timer(run);
    const struct span_recorder *recorder = run->runtime.recorder;
    run->seconds = (double)(recorder->last_end_ns - recorder->first_start_ns) * 1e-9;
    if (status == STATUS_OK && recorder->step_count == 0)
        return error_set(error, STATUS_BAD_INPUT,
                         "nothing was computed: no documents, or each of them failed");
    return status == STATUS_OK ? output_log_sync(&run->output, true, error) : status;
}

enum status sample_run_compute(struct sample_run *run, const struct settings *settings,
                               const struct path_list *given, const struct machine *machine,
                               struct arena *arena, struct error *error) {
    *run = (struct sample_run){.effective = *settings, .output = {.fd = -1}};
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->ended, NULL);
    finished_set_init(&run->finished);
    runtime_init(&run->runtime, &run->effective, arena);
    run->stopped_by_user = signals_install();
    run->job.stop = &run->stop;
    run->runtime.stop = run->stopped_by_user;
    run->job.finished = &run->finished;
    run->job.output = &run->output;
    run->job.progress = &run->progress;
    TRY(open_inputs(run, given, arena, error));
    TRY(open_engine(run, machine, error));
    TRY(open_output(run, arena, error));
    return compute(run, error);
}

bool sample_run_close(struct sample_run *run) {
    struct error ignored;
    bool ended = job_close(run->job_run);
    output_log_close(&run->output, &ignored);
    if (run->path[0] != '\0')
        unlink(run->path);
    if (!ended)
        return false;
    questions_deinit(&run->questions);
    finished_set_deinit(&run->finished);
    runtime_deinit(&run->runtime);
    pthread_mutex_destroy(&run->lock);
    pthread_cond_destroy(&run->ended);
    return true;
}

long long sample_run_documents(const struct sample_run *run) {
    return run->summary->done + run->summary->failed;
}
