/* Documents in order from the inputs of a job: files, directories (recursive, sorted by bytes,
 * hidden and binary files skipped and counted), `-`, JSONL lines, OpenAI batch lines, .gz of all of
 * these, lists of paths. Streaming: memory is bounded by one document. A document that cannot be
 * read becomes an error document; the rest goes on. */
#ifndef CORE_JOB_INPUT_H
#define CORE_JOB_INPUT_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/job/document.h"
#include "core/job/input_own.h"

struct input_options {
    const char *const *paths;
    int path_count;
    const char *files_from; /* NULL: none; "-": stdin */
    bool files_from_nul;
    const struct input_own *own; /* what the run writes: left out; NULL: nothing */
    bool stdin_lines;            /* stdin is JSONL, not one document */
    bool replace_invalid;        /* else invalid UTF-8 is an error document */
    size_t document_bytes_max;   /* 0: the default, 256 MiB */
};

struct input;

/* Fails only for what makes the whole job pointless (an unreadable --files-from list). */
enum status input_open(const struct input_options *options, struct input **input,
                       struct error *error);
void input_close(struct input *input);

/* The next document into `document` (initialised by the caller, refilled here). *end is set instead
 * when there is none. Errors are our own troubles only (memory). */
enum status input_next(struct input *input, struct document *document, bool *end,
                       struct error *error);

/* Files skipped in directories so far, and a message such as
 * "skipped 4000 binary files (.pdf, .png), 3 hidden files"; empty when nothing was. */
long long input_skipped_count(const struct input *input);
bool input_skipped_message(const struct input *input, struct text *out);

#endif
