/* Paths of documents become paths under the output directory: a leading "/" is dropped and ".."
 * becomes
 * "__", so nothing is ever written outside. */
#include "core/job/result_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 1 << 14 };

static enum status make_directory(const char *path, struct error *error) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return STATUS_OK;
    return error_set_errno(error, STATUS_IO, errno, "cannot make the directory '%s'", path);
}

enum status result_files_log_path(const char *directory, struct text *path, struct error *error) {
    TRY(make_directory(directory, error));
    text_init(path, PATH_BYTES_MAX);
    if (!text_append_format(path, "%s/.sheaf-rows.jsonl", directory))
        return error_no_memory(error, "the output path");
    return STATUS_OK;
}

/* The document's path, or its id where several documents share a file. */
static bool append_relative(struct text *path, const struct item *item) {
    const struct document *document = &item->document;
    bool from_line = document->line > 0 || !document->path;
    const char *name = from_line ? document->id_json : document->path;
    while (*name == '/' || *name == '"')
        name++;
    size_t length = strlen(name);
    if (from_line && length > 0 && name[length - 1] == '"')
        length--;
    size_t start = path->length;
    if (!text_append(path, name, length) || !text_append_string(path, ".txt"))
        return false;
    for (char *at = path->bytes + start; (at = strstr(at, "..")) != NULL; at += 2)
        memcpy(at, "__", 2);
    return true;
}

static enum status make_parents(struct text *path, size_t root, struct error *error) {
    for (size_t i = root; i < path->length; i++) {
        if (path->bytes[i] != '/')
            continue;
        path->bytes[i] = '\0';
        enum status status = make_directory(path->bytes, error);
        path->bytes[i] = '/';
        TRY(status);
    }
    return STATUS_OK;
}

static enum status write_whole(const char *path, struct view text, struct error *error) {
    FILE *file = fopen(path, "we");
    if (!file)
        return error_set_errno(error, STATUS_IO, errno, "cannot write '%s'", path);
    size_t written = fwrite(text.bytes, 1, text.length, file);
    int failed = fflush(file) != 0 || fdatasync(fileno(file)) != 0;
    failed |= fclose(file) != 0;
    if (written != text.length || failed)
        return error_set_errno(error, STATUS_IO, errno, "cannot write '%s'", path);
    return STATUS_OK;
}

/* link() refuses to replace, so that a collision is noticed without a race; overwriting runs
 * rename. */
static enum status publish(const struct settings *settings, const char *temporary, const char *path,
                           struct error *error) {
    bool replace = settings->force || settings->resume;
    int failed = replace ? rename(temporary, path) : link(temporary, path);
    int error_number = errno;
    if (!replace || failed)
        unlink(temporary);
    if (!failed)
        return STATUS_OK;
    if (error_number == EEXIST)
        return error_set(error, STATUS_BAD_INPUT,
                         "'%s' exists: another document has this name, or an earlier run made it",
                         path);
    return error_set_errno(error, STATUS_IO, error_number, "cannot write '%s'", path);
}

static enum status write_file(const struct settings *settings, const struct row *row,
                              const struct item *item, struct error *error) {
    struct text path, temporary;
    text_init(&path, PATH_BYTES_MAX);
    text_init(&temporary, PATH_BYTES_MAX);
    enum status status = STATUS_OK;
    if (!text_append_format(&path, "%s/", settings->output) || !append_relative(&path, item) ||
        !text_append_format(&temporary, "%s/.sheaf-writing", settings->output))
        status = error_no_memory(error, "the output path");
    if (status == STATUS_OK)
        status = make_parents(&path, strlen(settings->output) + 1, error);
    if (status == STATUS_OK)
        status = write_whole(temporary.bytes, row->text, error);
    if (status == STATUS_OK)
        status = publish(settings, temporary.bytes, path.bytes, error);
    text_deinit(&path);
    text_deinit(&temporary);
    return status;
}

void result_files_write(const struct settings *settings, const struct row *row, struct item *item) {
    struct error error;
    if (write_file(settings, row, item, &error) != STATUS_OK)
        item_fail(item, "output_exists", error.text);
}
