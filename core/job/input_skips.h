/* What a walk through directories left out, counted for one message at the end. */
#ifndef CORE_JOB_INPUT_SKIPS_H
#define CORE_JOB_INPUT_SKIPS_H

#include <stdbool.h>

#include "core/base/text.h"

enum { SKIPPED_EXTENSIONS_MAX = 64, SKIPPED_EXTENSION_BYTES = 16 };

struct skipped_extension {
    char name[SKIPPED_EXTENSION_BYTES];
    long long count;
};

struct input_skips {
    long long binary, hidden, special, loops, own;
    struct skipped_extension extensions[SKIPPED_EXTENSIONS_MAX]; /* of binary files */
    int extension_count;
};

void input_skips_add_binary(struct input_skips *skips, const char *path);
long long input_skips_total(const struct input_skips *skips);

/* Appends "skipped 4000 binary files (.pdf, .png), 3 hidden files or folders", or nothing. */
bool input_skips_message(const struct input_skips *skips, struct text *out);

#endif
