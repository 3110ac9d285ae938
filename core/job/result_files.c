/* Paths of documents become paths under the output directory: a leading "/" is dropped and ".."
 * becomes "__", so nothing is ever written outside. No document's file is overwritten by another's:
 * neither one of this run nor, unless asked for, one of an earlier run. */
#include "core/job/result_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file_map.h"
#include "core/job/document_hash.h"

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

static bool same_contents(const char *path, struct view text) {
    struct file_map map;
    if (file_map_open(&map, path, NULL) != STATUS_OK)
        return false;
    bool same = map.length == text.length &&
                (text.length == 0 || memcmp(map.bytes, text.bytes, text.length) == 0);
    file_map_close(&map);
    return same;
}

/* Whose file is it that may be there already? One of this run is another document's. With --force
 * those of earlier runs are replaced; a resume replaces what it redoes. */
static enum status may_replace(struct finished_set *written, const struct settings *settings,
                               const char *path, const struct item *item, bool *replace,
                               struct error *error) {
    struct finished_entry *entry =
        finished_set_get(written, document_hash_bytes(path, strlen(path)));
    if (!entry)
        return error_no_memory(error, "the set of output files");
    if (entry->state & FINISHED_SEEN)
        return error_set(error, STATUS_BAD_INPUT, "'%s' was written for another document", path);
    entry->state |= FINISHED_SEEN;
    *replace = settings->force || (settings->resume && item->replaces_row);
    return STATUS_OK;
}

/* link() refuses to replace, so that a collision is noticed without a race. A resume may find the
 * file of a row that was lost: it holds the same text then. */
static enum status publish(const char *temporary, const char *path, struct view text, bool replace,
                           bool resume, struct error *error) {
    int failed = replace ? rename(temporary, path) : link(temporary, path);
    int error_number = errno;
    if (!replace || failed)
        unlink(temporary);
    if (!failed || (resume && error_number == EEXIST && same_contents(path, text)))
        return STATUS_OK;
    if (error_number == EEXIST)
        return error_set(error, STATUS_BAD_INPUT,
                         "'%s' exists: another document has this name, or an earlier run made it",
                         path);
    return error_set_errno(error, STATUS_IO, error_number, "cannot write '%s'", path);
}

static enum status write_file(struct finished_set *written, const struct settings *settings,
                              const struct row *row, const struct item *item, struct error *error) {
    struct text path, temporary;
    bool replace = false;
    text_init(&path, PATH_BYTES_MAX);
    text_init(&temporary, PATH_BYTES_MAX);
    enum status status = STATUS_OK;
    if (!text_append_format(&path, "%s/", settings->output) || !append_relative(&path, item) ||
        !text_append_format(&temporary, "%s/.sheaf-writing", settings->output))
        status = error_no_memory(error, "the output path");
    if (status == STATUS_OK)
        status = may_replace(written, settings, path.bytes, item, &replace, error);
    if (status == STATUS_OK)
        status = make_parents(&path, strlen(settings->output) + 1, error);
    if (status == STATUS_OK)
        status = write_whole(temporary.bytes, row->text, error);
    if (status == STATUS_OK)
        status = publish(temporary.bytes, path.bytes, row->text, replace, settings->resume, error);
    text_deinit(&path);
    text_deinit(&temporary);
    return status;
}

void result_files_write(struct finished_set *written, const struct settings *settings,
                        const struct row *row, struct item *item) {
    struct error error;
    if (write_file(written, settings, row, item, &error) != STATUS_OK)
        item_fail(item, "output_exists", error.text);
}
