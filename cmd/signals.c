/* The handlers only set atomics. A process has one set of signal handlers, so this is the one place
 * with file-level state. */
#include "cmd/signals.h"

#include <signal.h>
#include <string.h>

#include "cmd/exit_code.h"
#include "core/job/job.h"

static atomic_int stop_level;
static atomic_int stop_exit_code;

static void on_interrupt(int signal_number) {
    (void)signal_number;
    int level = atomic_load(&stop_level);
    atomic_store(&stop_level, level == JOB_GO_ON ? JOB_STOP_ADMITTING : JOB_STOP_NOW);
    atomic_store(&stop_exit_code, EXIT_INTERRUPTED);
}

static void on_terminate(int signal_number) {
    (void)signal_number;
    atomic_store(&stop_level, JOB_STOP_NOW);
    atomic_store(&stop_exit_code, EXIT_TERMINATED);
}

static void install(int signal_number, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
}

/* What the parent had ignored stays ignored: by nohup, or for background jobs of scripts. */
static void install_unless_ignored(int signal_number, void (*handler)(int)) {
    struct sigaction current;
    if (sigaction(signal_number, NULL, &current) != 0 || current.sa_handler != SIG_IGN)
        install(signal_number, handler);
}

atomic_int *signals_install(void) {
    install_unless_ignored(SIGINT, on_interrupt);
    install(SIGTERM, on_terminate);
    install_unless_ignored(SIGHUP, on_terminate);
    install(SIGPIPE, SIG_IGN);
    install(SIGXFSZ, SIG_IGN); /* a file at its limit is an error of write() */
    return &stop_level;
}

int signals_exit_code(void) {
    return atomic_load(&stop_exit_code);
}
