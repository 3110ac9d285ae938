/* The commands: each takes settings and inputs, writes results to stdout and returns the exit code.
 */
#ifndef CMD_COMMANDS_H
#define CMD_COMMANDS_H

#include "cmd/arguments.h"

int command_run(const struct settings *settings, const struct path_list *inputs,
                struct arena *arena);
int command_plan(const struct settings *settings, const struct path_list *inputs,
                 struct arena *arena);
int command_verify(const struct settings *settings, const struct path_list *inputs,
                   struct arena *arena);
int command_tokenize(const struct settings *settings, const struct path_list *inputs,
                     struct arena *arena);
int command_model(const struct settings *settings, const struct path_list *inputs,
                  struct arena *arena);
int command_bench(const struct settings *settings, const struct path_list *inputs,
                  struct arena *arena);
int command_profile(const struct settings *settings, const struct path_list *inputs,
                    struct arena *arena);
int command_tune(const struct settings *settings, const struct path_list *inputs,
                 struct arena *arena);

#endif
