/* Bytes of one input: a file, a FIFO or stdin, unpacked when it is gzip. What is at hand can be
 * looked at before it is taken, so that binary files are recognised without reading them twice. */
#ifndef CORE_JOB_INPUT_STREAM_H
#define CORE_JOB_INPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/text.h"

struct input_gzip;

struct input_stream {
    int fd; /* -1: closed */
    bool is_stdin;
    bool is_named;           /* by the user, not found in a folder */
    struct input_gzip *gzip; /* NULL: plain */
    uint64_t file_bytes;     /* of a plain regular file; 0: unknown */
    uint8_t *buffer;         /* [INPUT_STREAM_BYTES], kept between files */
    size_t start, end;       /* the bytes at hand */
    bool ended;              /* nothing follows them */
};

enum { INPUT_STREAM_BYTES = 256 * 1024, INPUT_STREAM_SAMPLE = 8 * 1024 };

void input_stream_init(struct input_stream *stream);
void input_stream_deinit(struct input_stream *stream);

/* Opens a file; `is_named`: by the user, then FIFOs are read too. Folders and devices are refused.
 * Failures of a file set *code (not_found, unreadable). */
enum status input_stream_open(struct input_stream *stream, const char *path, bool is_named,
                              const char **code, struct error *error);
enum status input_stream_open_stdin(struct input_stream *stream, const char **code,
                                    struct error *error);
void input_stream_close(struct input_stream *stream);

/* Makes at least `wanted` ≤ INPUT_STREAM_BYTES bytes be at hand, or all that are left. */
enum status input_stream_fill(struct input_stream *stream, size_t wanted, const char **code,
                              struct error *error);

/* Appends everything to `text`; more than `bytes_max` is too_large. */
enum status input_stream_read_all(struct input_stream *stream, size_t bytes_max, struct text *text,
                                  const char **code, struct error *error);

/* Appends bytes up to the delimiter, which is dropped, to the cleared `line`. *found is false when
 * nothing is left. A line over `bytes_max` is read to its end but not kept: too_large. */
enum status input_stream_read_line(struct input_stream *stream, char delimiter, size_t bytes_max,
                                   struct text *line, bool *found, const char **code,
                                   struct error *error);

#endif
