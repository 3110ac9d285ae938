/* The paths a job names: arguments, then the lines of --files-from, one at a time. */
#ifndef CORE_JOB_INPUT_LIST_H
#define CORE_JOB_INPUT_LIST_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/job/input.h"
#include "core/job/input_stream.h"

struct input_list {
    const char *const *paths; /* borrowed */
    int path_count;
    int next;
    struct input_stream stream; /* of --files-from */
    bool has_lines;
    char delimiter;
    struct text line;
};

/* Fails when the --files-from list cannot be opened. */
enum status input_list_open(struct input_list *list, const struct input_options *options,
                            struct error *error);
void input_list_close(struct input_list *list);

/* *path: the next one, borrowed until the next call, or NULL at the end. *is_argument: "-" means
 * stdin. A list that fails while being read sets *code. */
enum status input_list_next(struct input_list *list, const char **path, bool *is_argument,
                            const char **code, struct error *error);

#endif
