/* Opening and reading. Everything that a file does wrong is its own error; only a missing buffer is
 * ours. */
#include "core/job/input_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/job/input_gzip.h"
#include "core/job/input_path.h"

void input_stream_init(struct input_stream *stream) {
    *stream = (struct input_stream){.fd = -1};
}

void input_stream_deinit(struct input_stream *stream) {
    input_stream_close(stream);
    free(stream->buffer);
    stream->buffer = NULL;
}

void input_stream_close(struct input_stream *stream) {
    if (stream->fd >= 0 && !stream->is_stdin)
        close(stream->fd);
    input_gzip_destroy(stream->gzip);
    stream->gzip = NULL;
    stream->fd = -1;
}

static enum status refuse(const char **code, struct error *error, const char *reason) {
    *code = "unreadable";
    return error_set(error, STATUS_IO, "%s", reason);
}

static enum status refuse_errno(const char **code, struct error *error, int error_number) {
    bool absent = error_number == ENOENT || error_number == ENOTDIR;
    *code = absent ? "not_found" : "unreadable";
    return error_set_errno(error, absent ? STATUS_NOT_FOUND : STATUS_IO, error_number,
                           "cannot read it");
}

/* Reads gzip when the bytes say so (`by_content`) or the name did. */
static enum status begin(struct input_stream *stream, bool gzip, bool by_content, const char **code,
                         struct error *error) {
    if (!stream->buffer)
        stream->buffer = malloc(INPUT_STREAM_BYTES);
    if (!stream->buffer)
        return error_no_memory(error, "the input buffer");
    stream->start = stream->end = 0;
    stream->ended = false;
    if (by_content) {
        TRY(input_stream_fill(stream, 2, code, error));
        gzip = stream->end >= 2 && stream->buffer[0] == 0x1f && stream->buffer[1] == 0x8b;
    }
    if (!gzip)
        return STATUS_OK;
    stream->gzip = input_gzip_create(stream->buffer, stream->end);
    stream->file_bytes = 0;
    stream->start = stream->end = 0;
    stream->ended = false;
    return stream->gzip ? STATUS_OK : error_no_memory(error, "a gzip reader");
}

/* Devices must not even be opened: that can have effects. What comes out of a folder is opened
 * without waiting, in case it was exchanged for a FIFO since it was listed. */
static enum status open_checked(struct input_stream *stream, const char *path, bool is_named,
                                struct stat *status, const char **code, struct error *error) {
    if (stat(path, status) != 0)
        return refuse_errno(code, error, errno);
    if (S_ISDIR(status->st_mode))
        return refuse(code, error, "it is a folder");
    if (!S_ISREG(status->st_mode) && !(S_ISFIFO(status->st_mode) && is_named))
        return refuse(code, error, "it is neither a file nor a pipe");
    stream->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (is_named ? 0 : O_NONBLOCK));
    if (stream->fd < 0 || fstat(stream->fd, status) != 0)
        return refuse_errno(code, error, errno);
    if (!S_ISREG(status->st_mode) && !(S_ISFIFO(status->st_mode) && is_named))
        return refuse(code, error, "it is neither a file nor a pipe");
    return STATUS_OK;
}

enum status input_stream_open(struct input_stream *stream, const char *path, bool is_named,
                              const char **code, struct error *error) {
    struct stat status;
    stream->is_stdin = false;
    stream->is_named = is_named;
    TRY(open_checked(stream, path, is_named, &status, code, error));
    bool regular = S_ISREG(status.st_mode);
    if (regular)
        posix_fadvise(stream->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    stream->file_bytes = regular ? (uint64_t)status.st_size : 0;
    return begin(stream, input_path_kind(path).gzip, !regular, code, error);
}

enum status input_stream_open_stdin(struct input_stream *stream, const char **code,
                                    struct error *error) {
    stream->fd = STDIN_FILENO;
    stream->is_stdin = true;
    stream->is_named = true;
    stream->file_bytes = 0;
    return begin(stream, false, true, code, error);
}

static enum status read_some(struct input_stream *stream, const char **code, struct error *error) {
    size_t room = INPUT_STREAM_BYTES - stream->end;
    size_t count = 0;
    if (stream->gzip) {
        TRY(input_gzip_read(stream->gzip, stream->fd, stream->buffer + stream->end, room, &count,
                            code, error));
    } else {
        ssize_t result;
        do
            result = read(stream->fd, stream->buffer + stream->end, room);
        while (result < 0 && errno == EINTR);
        if (result < 0)
            return refuse_errno(code, error, errno);
        count = (size_t)result;
    }
    stream->end += count;
    stream->ended = count == 0;
    return STATUS_OK;
}

enum status input_stream_fill(struct input_stream *stream, size_t wanted, const char **code,
                              struct error *error) {
    if (stream->start > 0 && stream->end - stream->start < wanted) {
        memmove(stream->buffer, stream->buffer + stream->start, stream->end - stream->start);
        stream->end -= stream->start;
        stream->start = 0;
    }
    while (!stream->ended && stream->end - stream->start < wanted) {
        enum status status = read_some(stream, code, error);
        if (status != STATUS_OK) {
            stream->ended = true; /* after a failure nothing more comes */
            stream->start = stream->end = 0;
            return status;
        }
    }
    return STATUS_OK;
}

static enum status too_large(size_t bytes_max, const char **code, struct error *error) {
    *code = "too_large";
    return error_set(error, STATUS_OVER_LIMIT, "it has more than %zu bytes", bytes_max);
}

enum status input_stream_read_all(struct input_stream *stream, size_t bytes_max, struct text *text,
                                  const char **code, struct error *error) {
    if (stream->file_bytes > bytes_max)
        return too_large(bytes_max, code, error);
    if (!text_reserve(text, (size_t)stream->file_bytes))
        return error_no_memory(error, "a document");
    for (;;) {
        TRY(input_stream_fill(stream, 1, code, error));
        size_t count = stream->end - stream->start;
        if (count == 0)
            return STATUS_OK;
        if (count > bytes_max - text->length)
            return too_large(bytes_max, code, error);
        if (!text_append(text, (const char *)stream->buffer + stream->start, count))
            return error_no_memory(error, "a document");
        stream->start = stream->end = 0;
    }
}

enum status input_stream_read_line(struct input_stream *stream, char delimiter, size_t bytes_max,
                                   struct text *line, bool *found, const char **code,
                                   struct error *error) {
    bool fits = true;
    bool no_memory = false;
    text_clear(line);
    *found = false;
    for (;;) {
        TRY(input_stream_fill(stream, 1, code, error));
        const uint8_t *bytes = stream->buffer + stream->start;
        size_t left = stream->end - stream->start;
        if (left == 0)
            break;
        const uint8_t *stop = memchr(bytes, delimiter, left);
        size_t count = stop ? (size_t)(stop - bytes) : left;
        *found = true;
        fits = fits && count <= bytes_max - line->length;
        if (fits && !no_memory)
            no_memory = !text_append(line, (const char *)bytes, count);
        stream->start += stop ? count + 1 : count;
        if (stop)
            break;
    }
    if (no_memory)
        return error_no_memory(error, "a line");
    return fits ? STATUS_OK : too_large(bytes_max, code, error);
}
