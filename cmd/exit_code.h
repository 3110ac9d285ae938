/* What the program's exit status means. */
#ifndef CMD_EXIT_CODE_H
#define CMD_EXIT_CODE_H

enum exit_code {
    EXIT_ALL_DONE = 0,
    EXIT_SOME_FAILED = 1,
    EXIT_NOT_STARTED = 2,
    EXIT_STOPPED_EARLY = 3,
    EXIT_INTERRUPTED = 130,
    EXIT_TERMINATED = 143,
};

#endif
