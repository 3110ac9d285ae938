/* Appending, locking and syncing; reading back is in output_scan.c. */
#include "core/job/output_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"

static const int64_t SYNC_INTERVAL_NS = 1000000000;

static enum status count_lines(int fd, long long *count, struct error *error) {
    char buffer[1 << 16];
    off_t offset = 0;
    *count = 0;
    for (;;) {
        ssize_t length = pread(fd, buffer, sizeof buffer, offset);
        if (length < 0)
            return error_set_errno(error, STATUS_IO, errno, "cannot read the output");
        if (length == 0)
            return STATUS_OK;
        for (ssize_t i = 0; i < length; i++)
            *count += buffer[i] == '\n';
        offset += length;
    }
}

static enum status refuse_existing(int fd, const char *path, struct error *error) {
    long long rows = 0;
    TRY(count_lines(fd, &rows, error));
    return error_set(error, STATUS_BAD_INPUT,
                     "'%s' exists with %lld row%s: add --resume to continue it or --force to "
                     "overwrite it",
                     path, rows, rows == 1 ? "" : "s");
}

/* A pipe is opened for writing only: with an end to read held here, a reader that goes away would
 * never be noticed. */
static int open_existing(const char *path) {
    struct stat info;
    bool is_file = stat(path, &info) != 0 || S_ISREG(info.st_mode);
    return open(path, (is_file ? O_RDWR | O_CREAT : O_WRONLY) | O_APPEND | O_CLOEXEC, 0666);
}

static enum status open_file(struct output_log *log, const char *path, enum output_mode mode,
                             struct error *error) {
    log->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    log->is_made = log->fd >= 0;
    if (log->fd < 0 && errno == EEXIST)
        log->fd = open_existing(path);
    if (log->fd < 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot write '%s'", path);
    if (log->is_made)
        output_log_sync_folder(path);
    struct stat info;
    if (fstat(log->fd, &info) != 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot inspect '%s'", path);
    log->may_sync = S_ISREG(info.st_mode);
    if (!log->may_sync)
        return STATUS_OK;
    if (flock(log->fd, LOCK_EX | LOCK_NB) != 0)
        return error_set(error, STATUS_BAD_INPUT, "'%s' is being written by another run", path);
    /* The file may have been replaced between open and lock; sizes are read under the lock. */
    if (fstat(log->fd, &info) != 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot inspect '%s'", path);
    log->length = info.st_size;
    if (mode == OUTPUT_NEW && log->length > 0)
        return refuse_existing(log->fd, path, error);
    log->has_old_rows = mode == OUTPUT_FORCE && log->length > 0;
    if (log->has_old_rows)
        log->length = 0;
    return STATUS_OK;
}

enum status output_log_open(struct output_log *log, const char *path, enum output_mode mode,
                            struct error *error) {
    *log = (struct output_log){.fd = -1, .synced_ns = clock_now_ns()};
    if (!path) {
        log->fd = STDOUT_FILENO;
        log->is_stdout = true;
        return STATUS_OK;
    }
    log->path = strdup(path);
    if (!log->path)
        return error_no_memory(error, "the output path");
    enum status status = open_file(log, path, mode, error);
    if (status != STATUS_OK) {
        if (log->fd >= 0)
            close(log->fd);
        free(log->path);
        *log = (struct output_log){.fd = -1};
    }
    return status;
}

static enum status write_failed(struct output_log *log, int error_number, struct error *error) {
    if (error_number == EPIPE)
        return error_set(error, STATUS_CANCELLED, "the reader of the output has gone");
    /* What was written of the line is taken back, so that the file ends with a whole row. */
    if (log->may_sync && ftruncate(log->fd, log->length) != 0)
        return error_set_errno(error, STATUS_IO, error_number,
                               "cannot write '%s' (and its last line is torn)", log->path);
    return error_set_errno(error, STATUS_IO, error_number, "cannot write %s%s%s",
                           log->path ? "'" : "", log->path ? log->path : "to stdout",
                           log->path ? "'" : "");
}

enum status output_log_append(struct output_log *log, struct view line, struct error *error) {
    size_t written = 0;
    if (log->has_old_rows && ftruncate(log->fd, 0) != 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot empty '%s'", log->path);
    log->has_old_rows = false;
    while (written < line.length) {
        ssize_t count = write(log->fd, line.bytes + written, line.length - written);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return write_failed(log, errno, error);
        written += (size_t)count;
    }
    log->length += (int64_t)line.length;
    log->unsynced = true;
    return STATUS_OK;
}

void output_log_sync_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

enum status output_log_rename(struct output_log *log, const char *path, struct error *error) {
    char *copy = strdup(path);
    if (!copy)
        return error_no_memory(error, "the output path");
    if (rename(log->path, copy) != 0) {
        free(copy);
        return error_set_errno(error, STATUS_IO, errno, "cannot rename '%s'", log->path);
    }
    free(log->path);
    log->path = copy;
    output_log_sync_folder(copy);
    return STATUS_OK;
}

enum status output_log_sync(struct output_log *log, bool now, struct error *error) {
    if (!log->may_sync || !log->unsynced)
        return STATUS_OK;
    int64_t clock = clock_now_ns();
    if (!now && clock - log->synced_ns < SYNC_INTERVAL_NS)
        return STATUS_OK;
    log->synced_ns = clock;
    log->unsynced = false;
    if (fdatasync(log->fd) != 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot sync '%s'", log->path);
    return STATUS_OK;
}

enum status output_log_close(struct output_log *log, struct error *error) {
    if (log->fd < 0)
        return STATUS_OK;
    enum status status = output_log_sync(log, true, error);
    if (log->is_made && log->length == 0)
        unlink(log->path);
    if (!log->is_stdout && close(log->fd) != 0 && status == STATUS_OK)
        status = error_set_errno(error, STATUS_IO, errno, "cannot close '%s'", log->path);
    free(log->path);
    *log = (struct output_log){.fd = -1};
    return status;
}
