/* The command line: argv to settings and inputs through the option table, and the help texts made
 * from the same table. */
#ifndef CMD_ARGUMENTS_H
#define CMD_ARGUMENTS_H

#include <stdio.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/job/settings.h"

struct command {
    const char *name;
    unsigned mask; /* enum command_mask */
    const char *synopsis;
    const char *summary;
    const char *examples; /* lines for --help, or NULL */
    /* Returns the exit code. */
    int (*run)(const struct settings *settings, const struct path_list *inputs,
               struct arena *arena);
};

struct arguments {
    struct settings settings;
    struct path_list inputs; /* positional arguments */
    bool is_set[SETTINGS_OPTIONS_MAX];
    bool long_help;
};

/* Parse argv[first..]; afterwards the job file of --config is applied. */
enum status arguments_parse(struct arguments *arguments, const struct command *command, int argc,
                            char **argv, struct arena *arena, struct error *error);

/* The help of one command; everything with `complete`. */
void arguments_print_help(FILE *out, const struct command *command, bool complete);

#endif
