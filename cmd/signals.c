/* The handlers set atomics; where the program cannot heed them in time (it hashes or loads a model,
 * or is deep in a long step) an alarm ends it. Rows are written whole, so nothing is lost by that.
 * A process has one set of signal handlers, so this is the one place with file-level state. */
#include "cmd/signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cmd/exit_code.h"
#include "core/job/job.h"

enum { PATIENCE_S = 2 };

static atomic_int stop_level;
static atomic_int stop_exit_code;

static void stop_now(int exit_code) {
    atomic_store(&stop_exit_code, exit_code);
    if (atomic_exchange(&stop_level, JOB_STOP_NOW) != JOB_STOP_NOW)
        alarm(PATIENCE_S);
}

static void on_interrupt(int signal_number) {
    (void)signal_number;
    int go_on = JOB_GO_ON;
    if (atomic_compare_exchange_strong(&stop_level, &go_on, JOB_STOP_ADMITTING))
        atomic_store(&stop_exit_code, EXIT_INTERRUPTED);
    else
        stop_now(EXIT_INTERRUPTED);
}

static void on_terminate(int signal_number) {
    (void)signal_number;
    stop_now(EXIT_TERMINATED);
}

static void on_alarm(int signal_number) {
    (void)signal_number;
    _exit(atomic_load(&stop_exit_code));
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
    install(SIGALRM, on_alarm);
    install(SIGPIPE, SIG_IGN);
    install(SIGXFSZ, SIG_IGN); /* a file at its limit is an error of write() */
    return &stop_level;
}

int signals_exit_code(void) {
    return atomic_load(&stop_exit_code);
}
