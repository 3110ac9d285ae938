/* Reading an output back: for resuming, and for publishing it in order with one row an id. Lines
 * are read one at a time; of each row only hashes and places are kept. */
#include "core/job/output_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/job/document_hash.h"

/* What resuming and publishing need of a row. */
struct row_facts {
    uint64_t id_hash;
    long long index;
    bool is_error;
    char fingerprint[40];
};

static bool read_facts(const char *line, size_t length, struct row_facts *facts) {
    json_t *row = NULL;
    if (json_parse(line, length, &row, NULL) != STATUS_OK)
        return false;
    const json_t *id = json_object_get(row, "id");
    const char *status = json_string_value(json_object_get(row, "status"));
    const char *fingerprint = json_string_value(json_object_get(row, "fingerprint"));
    const json_t *index = json_object_get(row, "index");
    struct text id_text;
    text_init(&id_text, length);
    bool fine = id && status && json_is_integer(index) && fingerprint &&
                strlen(fingerprint) < sizeof facts->fingerprint && json_append(&id_text, id);
    if (fine) {
        const json_t *code = json_object_get(json_object_get(row, "error"), "code");
        const char *code_text = json_string_value(code);
        facts->index = json_integer_value(index);
        facts->id_hash = document_hash_id(id_text.bytes, id_text.length);
        if (code_text && strcmp(code_text, "duplicate_id") == 0)
            facts->id_hash = document_hash_duplicate(facts->id_hash, facts->index);
        facts->is_error = strcmp(status, "error") == 0;
        memcpy(facts->fingerprint, fingerprint, strlen(fingerprint) + 1);
    }
    text_deinit(&id_text);
    json_decref(row);
    return fine;
}

/* A second descriptor for reading: the log's own is for appending. */
static FILE *open_reader(const struct output_log *log) {
    int fd = open(log->path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 ? fdopen(fd, "r") : NULL;
}

static enum status cut_torn_line(struct output_log *log, int64_t keep, struct error *error) {
    if (ftruncate(log->fd, keep) != 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot cut the torn last line of '%s'",
                               log->path);
    log->length = keep;
    log->unsynced = true;
    return STATUS_OK;
}

static enum status settings_differ(const struct output_log *log, long long line,
                                   struct error *error) {
    return error_set(error, STATUS_BAD_INPUT,
                     "'%s' line %lld was made with another model or other settings: use the same "
                     "ones to resume, or another output",
                     log->path, line);
}

static enum status note_row(const struct row_facts *facts, struct finished_set *finished,
                            struct output_scan *scan, struct error *error) {
    struct finished_entry *entry = finished_set_get(finished, facts->id_hash);
    if (!entry)
        return error_no_memory(error, "the set of finished documents");
    scan->superseded |= (entry->state & FINISHED_ROW) != 0;
    scan->errors -= (entry->state & FINISHED_ERROR) != 0;
    scan->rows += (entry->state & FINISHED_ROW) == 0;
    scan->errors += facts->is_error;
    uint64_t hash = document_hash_of_fingerprint(facts->fingerprint);
    entry->state = finished_set_state(hash, FINISHED_ROW | (facts->is_error ? FINISHED_ERROR : 0));
    return STATUS_OK;
}

static enum status scan_lines(struct output_log *log, FILE *file, const char *settings_hash,
                              struct finished_set *finished, struct output_scan *scan,
                              struct error *error) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    int64_t complete = 0;
    long long number = 0;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && (length = getline(&line, &capacity, file)) > 0) {
        struct row_facts facts;
        number++;
        if (line[length - 1] != '\n')
            break;
        if (!read_facts(line, (size_t)length, &facts))
            status =
                error_set(error, STATUS_BAD_INPUT,
                          "'%s' line %lld is not a row of sheaf: not touched", log->path, number);
        else if (strncmp(facts.fingerprint, settings_hash, strlen(settings_hash)) != 0)
            status = settings_differ(log, number, error);
        else
            status = note_row(&facts, finished, scan, error);
        complete += length;
    }
    free(line);
    if (status == STATUS_OK && complete < log->length) {
        scan->torn_bytes = log->length - complete;
        status = cut_torn_line(log, complete, error);
    }
    return status;
}

enum status output_scan_rows(struct output_log *log, const char *settings_hash,
                             struct finished_set *finished, struct output_scan *scan,
                             struct error *error) {
    *scan = (struct output_scan){0};
    if (!log->may_sync)
        return error_set(error, STATUS_BAD_INPUT, "'%s' is not a regular file: cannot resume",
                         log->path);
    FILE *file = open_reader(log);
    if (!file)
        return error_set_errno(error, STATUS_IO, errno, "cannot read '%s'", log->path);
    enum status status = scan_lines(log, file, settings_hash, finished, scan, error);
    fclose(file);
    return status;
}

/* Where a row lies, for publishing. */
struct row_place {
    uint64_t id_hash;
    long long index;
    int64_t offset;
    int64_t length;
    bool is_error;
};

struct row_places {
    struct row_place *items;
    size_t count;
    size_t capacity;
};

static bool places_add(struct row_places *places, struct row_place place) {
    if (places->count == places->capacity) {
        size_t capacity = places->capacity ? places->capacity * 2 : 1024;
        struct row_place *items = realloc(places->items, capacity * sizeof *items);
        if (!items)
            return false;
        places->items = items;
        places->capacity = capacity;
    }
    places->items[places->count++] = place;
    return true;
}

static enum status collect_places(FILE *file, struct row_places *places, struct error *error) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    int64_t offset = 0;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && (length = getline(&line, &capacity, file)) > 0) {
        struct row_facts facts;
        if (!read_facts(line, (size_t)length, &facts))
            status = error_set(error, STATUS_CORRUPT, "the output has a line that is no row");
        else if (!places_add(places, (struct row_place){facts.id_hash, facts.index, offset, length,
                                                        facts.is_error}))
            status = error_no_memory(error, "ordering the output");
        offset += length;
    }
    free(line);
    return status;
}

static int by_id_then_offset(const void *left, const void *right) {
    const struct row_place *a = left, *b = right;
    if (a->id_hash != b->id_hash)
        return a->id_hash < b->id_hash ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static int by_offset(const void *left, const void *right) {
    const struct row_place *a = left, *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static int by_index(const void *left, const void *right) {
    const struct row_place *a = left, *b = right;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return by_offset(left, right);
}

/* The last row of an id stands: an earlier one was superseded by a resume. */
static void drop_superseded(struct row_places *places) {
    qsort(places->items, places->count, sizeof *places->items, by_id_then_offset);
    size_t kept = 0;
    for (size_t i = 0; i < places->count; i++) {
        bool last =
            i + 1 == places->count || places->items[i + 1].id_hash != places->items[i].id_hash;
        if (last)
            places->items[kept++] = places->items[i];
    }
    places->count = kept;
}

/* The log open for reading, and the places of its rows, one an id. */
static enum status find_standing_rows(const struct output_log *log, FILE **from,
                                      struct row_places *places, struct error *error) {
    *from = open_reader(log);
    if (!*from)
        return error_set_errno(error, STATUS_IO, errno, "cannot read '%s'", log->path);
    TRY(collect_places(*from, places, error));
    drop_superseded(places);
    return STATUS_OK;
}

/* A row's bytes, in a buffer that is used again. */
static enum status read_row(FILE *from, const struct row_place *place, struct text *row,
                            struct error *error) {
    size_t length = (size_t)place->length;
    text_clear(row);
    if (!text_reserve(row, length))
        return error_no_memory(error, "copying rows");
    if (fseeko(from, place->offset, SEEK_SET) != 0 || fread(row->bytes, 1, length, from) != length)
        return error_set_errno(error, STATUS_IO, errno, "cannot read rows back");
    row->length = length;
    return STATUS_OK;
}

static enum status copy_rows(FILE *from, FILE *to, const struct row_places *places,
                             struct error *error) {
    struct text row;
    text_init(&row, SIZE_MAX / 4);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < places->count && status == STATUS_OK; i++) {
        status = read_row(from, &places->items[i], &row, error);
        if (status == STATUS_OK && fwrite(row.bytes, 1, row.length, to) != row.length)
            status = error_set_errno(error, STATUS_IO, errno, "cannot copy rows");
    }
    text_deinit(&row);
    return status;
}

static enum status write_published(FILE *from, const char *temporary, const char *path,
                                   const struct row_places *places, struct error *error) {
    FILE *to = fopen(temporary, "we");
    if (!to)
        return error_set_errno(error, STATUS_IO, errno, "cannot write '%s'", temporary);
    enum status status = copy_rows(from, to, places, error);
    if (status == STATUS_OK && (fflush(to) != 0 || fdatasync(fileno(to)) != 0))
        status = error_set_errno(error, STATUS_IO, errno, "cannot write '%s'", temporary);
    if (fclose(to) != 0 && status == STATUS_OK)
        status = error_set_errno(error, STATUS_IO, errno, "cannot write '%s'", temporary);
    if (status == STATUS_OK && rename(temporary, path) != 0)
        status = error_set_errno(error, STATUS_IO, errno, "cannot rename '%s'", temporary);
    if (status != STATUS_OK)
        unlink(temporary);
    else
        output_log_sync_folder(path);
    return status;
}

enum status output_scan_publish(struct output_log *log, const char *path, bool in_index_order,
                                struct error *error) {
    TRY(output_log_sync(log, true, error));
    struct text temporary;
    text_init(&temporary, 1 << 16);
    if (!text_append_format(&temporary, "%s.sorting", path))
        return error_no_memory(error, "ordering the output");
    FILE *from = NULL;
    struct row_places places = {0};
    enum status status = find_standing_rows(log, &from, &places, error);
    if (status == STATUS_OK) {
        qsort(places.items, places.count, sizeof *places.items,
              in_index_order ? by_index : by_offset);
        status = write_published(from, temporary.bytes, path, &places, error);
    }
    if (from)
        fclose(from);
    free(places.items);
    text_deinit(&temporary);
    return status;
}

static enum status check_rows_only(const struct output_log *log, struct error *error) {
    FILE *file = open_reader(log);
    if (!file)
        return error_set_errno(error, STATUS_IO, errno, "cannot read '%s'", log->path);
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && (length = getline(&line, &capacity, file)) > 0) {
        struct row_facts facts;
        if (line[length - 1] == '\n' && !read_facts(line, (size_t)length, &facts))
            status =
                error_set(error, STATUS_BAD_INPUT,
                          "'%s' has a line that is not a row of sheaf: not touched", log->path);
    }
    free(line);
    fclose(file);
    return status;
}

static enum status append_errors(FILE *from, const struct row_places *places,
                                 struct output_log *errors, struct error *error) {
    struct text row;
    text_init(&row, SIZE_MAX / 4);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < places->count && status == STATUS_OK; i++) {
        if (!places->items[i].is_error)
            continue;
        status = read_row(from, &places->items[i], &row, error);
        if (status == STATUS_OK)
            status = output_log_append(errors, text_view(&row), error);
    }
    text_deinit(&row);
    return status;
}

enum status output_scan_refill_errors(struct output_log *log, struct output_log *errors,
                                      struct error *error) {
    if (!errors->may_sync)
        return STATUS_OK;
    TRY(check_rows_only(errors, error));
    FILE *from = NULL;
    struct row_places places = {0};
    enum status status = find_standing_rows(log, &from, &places, error);
    if (status == STATUS_OK && ftruncate(errors->fd, 0) != 0)
        status = error_set_errno(error, STATUS_IO, errno, "cannot empty '%s'", errors->path);
    if (status == STATUS_OK) {
        errors->length = 0;
        qsort(places.items, places.count, sizeof *places.items, by_offset);
        status = append_errors(from, &places, errors, error);
    }
    if (from)
        fclose(from);
    free(places.items);
    return status;
}
