/* Reads the counters only; a stuck document shows as a line that does not move. */
#include "cmd/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"

enum { TERMINAL_MS = 200, PLAIN_MS = 10000, TICK_MS = 50 };

/* Seconds left by tokens: what is known of the prompts against what is done. NaN while reading goes
 * on. */
static double seconds_left(const struct progress *progress) {
    const struct job_progress *counters = &progress->counters;
    double known = (double)atomic_load(&counters->prompt_tokens_known);
    double done = (double)atomic_load(&counters->prompt_tokens_done);
    double elapsed = clock_ms_between(progress->start_ns, clock_now_ns()) / 1e3;
    if (!atomic_load(&counters->reading_ended) || done <= 0)
        return NAN;
    return elapsed * (known - done) / done;
}

static void describe(const struct progress *progress, char *line, size_t line_bytes) {
    const struct job_progress *counters = &progress->counters;
    double elapsed = clock_ms_between(progress->start_ns, clock_now_ns()) / 1e3;
    char left[48] = "";
    double seconds = seconds_left(progress);
    if (isfinite(seconds))
        snprintf(left, sizeof left, ", about %.0f s left", seconds);
    bool reading = !atomic_load(&counters->reading_ended);
    snprintf(line, line_bytes,
             "%s%lld of %lld%s done, %lld failed, %lld running, %.0f tokens/s out%s",
             atomic_load(progress->stop) != JOB_GO_ON ? "stopping: " : "",
             atomic_load(&counters->done) + atomic_load(&counters->failed) +
                 atomic_load(&counters->resumed),
             atomic_load(&counters->expected), reading ? "+" : "", atomic_load(&counters->failed),
             atomic_load(&counters->running),
             elapsed > 0 ? (double)atomic_load(&counters->completion_tokens) / elapsed : 0, left);
}

static void print_line(const struct progress *progress) {
    char line[256];
    describe(progress, line, sizeof line);
    if (progress->on_terminal)
        fprintf(stderr, "\r\033[K%s", line);
    else
        fprintf(stderr, "sheaf: %s\n", line);
    fflush(stderr);
}

static void sleep_ms(int milliseconds) {
    struct timespec pause = {.tv_nsec = (long)milliseconds * 1000000};
    nanosleep(&pause, NULL);
}

/* Once, when the user first asks to stop: what happens now. */
static void say_stopping(const struct progress *progress) {
    const struct job_progress *counters = &progress->counters;
    long long running = atomic_load(&counters->running);
    double elapsed = clock_ms_between(progress->start_ns, clock_now_ns()) / 1e3;
    double rate = elapsed > 0 ? (double)atomic_load(&counters->completion_tokens) / elapsed : 0;
    char left[48] = "";
    if (rate > 0)
        snprintf(left, sizeof left, ", within %.0f s",
                 ceil((double)running * (double)progress->max_tokens / rate));
    fprintf(stderr,
            "%ssheaf: stopping: %lld running documents are finished and written%s, no new ones "
            "(again to stop at once)\n",
            progress->on_terminal ? "\r\033[K" : "", running, left);
}

static void *run(void *context) {
    struct progress *progress = context;
    int interval_ms = progress->on_terminal ? TERMINAL_MS : PLAIN_MS;
    int waited_ms = 0;
    bool said = false;
    while (!atomic_load(&progress->ended)) {
        sleep_ms(TICK_MS);
        waited_ms += TICK_MS;
        if (!said && atomic_load(progress->stop) == JOB_STOP_ADMITTING) {
            say_stopping(progress);
            said = true;
        }
        if (!progress->has_lines || waited_ms < interval_ms)
            continue;
        waited_ms = 0;
        print_line(progress);
    }
    return NULL;
}

void progress_start(struct progress *progress, const struct settings *settings, atomic_int *stop) {
    progress->stop = stop;
    progress->start_ns = clock_now_ns();
    progress->on_terminal = settings->progress == PROGRESS_AUTO && isatty(STDERR_FILENO);
    progress->max_tokens = settings->max_tokens;
    progress->has_lines = settings->progress == PROGRESS_PLAIN || progress->on_terminal;
    if (settings->quiet)
        return;
    progress->started = pthread_create(&progress->thread, NULL, run, progress) == 0;
}

void progress_stop(struct progress *progress) {
    if (!progress->started)
        return;
    atomic_store(&progress->ended, true);
    pthread_join(progress->thread, NULL);
    if (progress->on_terminal)
        fprintf(stderr, "\r\033[K");
}
