/* Paths of inputs: joined for opening, and as they are shown in ids, rows and messages. */
#ifndef CORE_JOB_INPUT_PATH_H
#define CORE_JOB_INPUT_PATH_H

#include <stdbool.h>

#include "core/base/text.h"

enum { INPUT_PATH_MAX = 64 * 1024 };

/* What a file's name says about its content. */
struct input_kind {
    bool gzip;  /* .gz */
    bool lines; /* .jsonl, before .gz */
};

/* `path` without leading "./" and trailing slashes; "." for the folder itself stays. */
bool input_path_normal(struct text *out, const char *path);

/* Appends folder/name to the cleared `out`; the folder "." adds nothing. */
bool input_path_join(struct text *out, const char *folder, const char *name);

/* The path as valid UTF-8 without control bytes (malloc'd, NULL when out of memory): itself if it
 * is so already, else such bytes, and '%', as %XX. */
char *input_path_shown(const char *path);

const char *input_path_name(const char *path); /* behind the last slash */
struct input_kind input_path_kind(const char *path);

/* The extension of the name in lower case with its dot (".pdf"), at most `bytes` - 1; "" if none.
 */
void input_path_extension(const char *path, char *extension, size_t bytes);

#endif
