/* Signals as a level the job looks at: Ctrl-C once stops admitting, twice (or SIGTERM, SIGHUP)
 * stops now, within two seconds in any case. */
#ifndef CMD_SIGNALS_H
#define CMD_SIGNALS_H

#include <stdatomic.h>

/* Installs the handlers; SIGPIPE is ignored, so that writing reports EPIPE. Returns the level's
 * place (enum job_stop), valid for the process's life. */
atomic_int *signals_install(void);

/* The exit code of the signal that stopped the run: 130, 143, or 0 when none did. */
int signals_exit_code(void);

#endif
