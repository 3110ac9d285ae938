/* The iterator: a stack of three sources (the paths named, the folder being walked, the JSONL file
 * being read), the innermost asked first. Each step gives a document, or a change of source, or the
 * end. A failing step gives an error document: who it is was settled before anything could fail. */
#include "core/job/input.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/clock.h"
#include "core/job/input_list.h"
#include "core/job/input_path.h"
#include "core/job/input_record.h"
#include "core/job/input_stream.h"
#include "core/job/input_text.h"
#include "core/job/input_walk.h"

static const size_t DOCUMENT_BYTES_DEFAULT = (size_t)256 << 20;
static const size_t DOCUMENT_BYTES_MAX = 0xfffffffe; /* what the tokenizer can address */
static const size_t BYTES_KEPT = (size_t)16 << 20;   /* buffers above this are not kept */

enum step { STEP_DOCUMENT, STEP_AGAIN, STEP_END };

struct input {
    struct input_list list;
    struct input_walk walk;
    struct input_skips skips;
    struct input_stream stream;
    struct text path; /* the named path in normal form */
    struct text line; /* of the JSONL file */
    bool in_lines;    /* JSONL is being read */
    char *lines_path; /* its shown path; NULL: stdin */
    long long line_number;
    long long next_index;
    const struct input_own *own;
    bool replace_invalid;
    bool stdin_lines;
    size_t bytes_max;
};

enum status input_open(const struct input_options *options, struct input **input,
                       struct error *error) {
    *input = NULL;
    struct input *opened = calloc(1, sizeof *opened);
    if (!opened)
        return error_no_memory(error, "the inputs");
    opened->replace_invalid = options->replace_invalid;
    opened->stdin_lines = options->stdin_lines;
    opened->bytes_max = options->document_bytes_max;
    if (opened->bytes_max == 0)
        opened->bytes_max = DOCUMENT_BYTES_DEFAULT;
    if (opened->bytes_max > DOCUMENT_BYTES_MAX)
        opened->bytes_max = DOCUMENT_BYTES_MAX;
    input_stream_init(&opened->stream);
    opened->own = options->own;
    input_walk_init(&opened->walk, &opened->skips, options->own);
    text_init(&opened->path, INPUT_PATH_MAX);
    text_init(&opened->line, DOCUMENT_BYTES_MAX);
    enum status status = input_list_open(&opened->list, options, error);
    if (status != STATUS_OK) {
        input_close(opened);
        return status;
    }
    *input = opened;
    return STATUS_OK;
}

void input_close(struct input *input) {
    if (!input)
        return;
    input_list_close(&input->list);
    input_walk_deinit(&input->walk);
    input_stream_deinit(&input->stream);
    text_deinit(&input->path);
    text_deinit(&input->line);
    free(input->lines_path);
    free(input);
}

long long input_skipped_count(const struct input *input) {
    return input_skips_total(&input->skips);
}

bool input_skipped_message(const struct input *input, struct text *out) {
    return input_skips_message(&input->skips, out);
}

/* --- who a document is ------------------------------------------------------------------------ */

/* "path" or "path:line" as JSON. */
static char *default_id(const char *path, long long line) {
    struct text plain;
    struct text quoted;
    text_init(&plain, 4 * INPUT_PATH_MAX);
    text_init(&quoted, 8 * INPUT_PATH_MAX);
    bool fine = text_append_string(&plain, path) &&
                (line == 0 || text_append_format(&plain, ":%lld", line)) &&
                json_append_string(&quoted, plain.bytes, plain.length);
    text_deinit(&plain);
    if (!fine)
        text_deinit(&quoted);
    return quoted.bytes;
}

/* `shown` NULL: stdin. */
static enum status set_identity(struct document *document, const char *shown, long long line,
                                struct error *error) {
    document->path = shown ? strdup(shown) : NULL;
    document->name = strdup(shown ? input_path_name(shown) : "stdin");
    document->id_json = default_id(shown ? shown : "-", line);
    document->line = line;
    if ((shown && !document->path) || !document->name || !document->id_json)
        return error_no_memory(error, "a document's name");
    return STATUS_OK;
}

static enum status set_file_identity(struct document *document, const char *path,
                                     struct error *error) {
    char *shown = input_path_shown(path);
    if (!shown)
        return error_no_memory(error, "a document's name");
    enum status status = set_identity(document, shown, 0, error);
    free(shown);
    return status;
}

/* Empties a document for its next use; its text keeps a buffer of ordinary size. */
static void recycle(struct document *document) {
    struct text text = document->text;
    text_init(&document->text, text.max);
    document_deinit(document);
    if (text.capacity > BYTES_KEPT)
        text_deinit(&text);
    else
        text_clear(&text);
    document->text = text;
}

/* --- steps ------------------------------------------------------------------------------------ */

static enum status read_whole(struct input *input, struct document *document, const char **code,
                              struct error *error) {
    TRY(input_stream_read_all(&input->stream, input->bytes_max, &document->text, code, error));
    return input_text_decode(&document->text, input->replace_invalid, &document->replaced_bytes,
                             code, error);
}

/* The open stream is a JSONL file: its lines come next. */
static enum status begin_lines(struct input *input, struct document *document, const char **code,
                               struct error *error) {
    struct input_stream *stream = &input->stream;
    const uint8_t *sample = stream->buffer + stream->start;
    size_t count = stream->end - stream->start;
    const char *encoding = input_text_other_encoding(sample, count);
    *code = "not_text";
    if (encoding)
        return error_set(error, STATUS_BAD_INPUT, "it is %s: convert it with iconv -f %s -t UTF-8",
                         encoding, encoding);
    if (input_text_looks_binary(sample, count))
        return error_set(error, STATUS_BAD_INPUT, "not text: it holds binary data");
    if (count >= 3 && memcmp(sample, "\xEF\xBB\xBF", 3) == 0)
        stream->start += 3;
    input->in_lines = true;
    input->lines_path = document->path;
    input->line_number = 0;
    document->path = NULL;
    return STATUS_OK;
}

/* Is the open stream a file that this run writes? */
static bool is_own(const struct input *input) {
    struct stat status;
    return fstat(input->stream.fd, &status) == 0 && input_own_has(input->own, &status);
}

static enum status refuse_own(const char **code, struct error *error) {
    *code = "unreadable";
    return error_set(error, STATUS_BAD_INPUT, "it is an output of this run");
}

static enum status open_file(struct input *input, struct document *document, const char *path,
                             bool is_named, enum step *step, const char **code,
                             struct error *error) {
    struct input_stream *stream = &input->stream;
    TRY(set_file_identity(document, path, error));
    TRY(input_stream_open(stream, path, is_named, code, error));
    if (is_own(input)) {
        if (is_named)
            return refuse_own(code, error);
        input->skips.own++;
        *step = STEP_AGAIN;
        return STATUS_OK;
    }
    TRY(input_stream_fill(stream, INPUT_STREAM_SAMPLE, code, error));
    if (!is_named && input_text_looks_binary(stream->buffer, stream->end)) {
        input_skips_add_binary(&input->skips, path);
        *step = STEP_AGAIN;
        return STATUS_OK;
    }
    if (!input_path_kind(path).lines)
        return read_whole(input, document, code, error);
    *step = STEP_AGAIN;
    return begin_lines(input, document, code, error);
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static enum status step_stdin(struct input *input, struct document *document, enum step *step,
                              const char **code, struct error *error) {
    TRY(set_identity(document, NULL, 0, error));
    TRY(input_stream_open_stdin(&input->stream, code, error));
    if (is_own(input))
        return refuse_own(code, error);
    if (!input->stdin_lines)
        return read_whole(input, document, code, error);
    TRY(input_stream_fill(&input->stream, INPUT_STREAM_SAMPLE, code, error));
    *step = STEP_AGAIN;
    return begin_lines(input, document, code, error);
}

static enum status step_list(struct input *input, struct document *document, enum step *step,
                             const char **code, struct error *error) {
    const char *path;
    bool is_argument;
    TRY(input_list_next(&input->list, &path, &is_argument, code, error));
    if (!path) {
        *step = STEP_END;
        return STATUS_OK;
    }
    if (is_argument && strcmp(path, "-") == 0)
        return step_stdin(input, document, step, code, error);
    if (path[0] == '\0') {
        *code = "not_found";
        return error_set(error, STATUS_NOT_FOUND, "an empty path names no file");
    }
    if (strlen(path) > INPUT_PATH_MAX)
        return error_set(error, STATUS_OVER_LIMIT, "a path of more than %d bytes", INPUT_PATH_MAX);
    if (!input_path_normal(&input->path, path))
        return error_no_memory(error, "a path");
    if (!is_folder(input->path.bytes))
        return open_file(input, document, input->path.bytes, true, step, code, error);
    *step = STEP_AGAIN;
    TRY(set_file_identity(document, input->path.bytes, error));
    return input_walk_enter(&input->walk, input->path.bytes, code, error);
}

static enum status step_walk(struct input *input, struct document *document, enum step *step,
                             const char **code, struct error *error) {
    bool found;
    enum status status = input_walk_next(&input->walk, &found, code, error);
    if (status != STATUS_OK) {
        struct error identity_error;
        if (input->walk.path.length > 0)
            set_file_identity(document, input->walk.path.bytes, &identity_error);
        return status;
    }
    if (found)
        return open_file(input, document, input->walk.path.bytes, false, step, code, error);
    *step = STEP_AGAIN;
    return STATUS_OK;
}

static enum status parse_line(struct input *input, struct document *document, const char **code,
                              struct error *error) {
    struct text *line = &input->line;
    TRY(input_text_repair(line, input->replace_invalid, &document->replaced_bytes, code, error));
    return input_record_parse(line, document, code, error);
}

static void end_lines(struct input *input) {
    free(input->lines_path);
    input->lines_path = NULL;
    input->in_lines = false;
}

static enum status step_line(struct input *input, struct document *document, enum step *step,
                             const char **code, struct error *error) {
    bool found;
    enum status status = input_stream_read_line(&input->stream, '\n', input->bytes_max,
                                                &input->line, &found, code, error);
    input->line_number++;
    if (status == STATUS_OK && !found) {
        end_lines(input);
        *step = STEP_AGAIN;
        return STATUS_OK;
    }
    if (status == STATUS_OK && input_text_is_blank(input->line.bytes, input->line.length)) {
        *step = STEP_AGAIN;
        return STATUS_OK;
    }
    struct error identity_error;
    if (set_identity(document, input->lines_path, input->line_number, &identity_error))
        return error_no_memory(error, "a document's name");
    if (status == STATUS_OK)
        status = parse_line(input, document, code, error);
    if (input->line.capacity > BYTES_KEPT)
        text_deinit(&input->line);
    return status;
}

static enum status take_step(struct input *input, struct document *document, enum step *step,
                             const char **code, struct error *error) {
    *step = STEP_DOCUMENT;
    *code = "unreadable";
    if (input->in_lines)
        return step_line(input, document, step, code, error);
    input_stream_close(&input->stream);
    if (input_walk_is_active(&input->walk))
        return step_walk(input, document, step, code, error);
    return step_list(input, document, step, code, error);
}

/* Turns a failed step into an error document. Running out of memory is the document's trouble too,
 * as long as there is enough to say so. */
static enum status fail_document(struct document *document, enum status status, const char *code,
                                 struct error *error) {
    text_deinit(&document->text);
    if (document->line > 0)
        error_context(error, "line %lld", document->line);
    if (document->id_json)
        error_context(error, document->path ? "'%s'" : "%s",
                      document->path ? document->path : "stdin");
    else if (status != STATUS_NO_MEMORY)
        TRY(set_identity(document, NULL, 0, error));
    document->error_code = status == STATUS_NO_MEMORY ? "out_of_memory" : code;
    document->error_message = strdup(error->text);
    if (!document->id_json || !document->error_message)
        return error_no_memory(error, "a document");
    return STATUS_OK;
}

enum status input_next(struct input *input, struct document *document, bool *end,
                       struct error *error) {
    enum step step;
    struct error reason = {0};
    const char *code = NULL;
    enum status status;
    int64_t started_ns;
    *end = false;
    do {
        recycle(document);
        started_ns = clock_now_ns();
        status = take_step(input, document, &step, &code, &reason);
    } while (status == STATUS_OK && step == STEP_AGAIN);
    if (status == STATUS_OK && step == STEP_END) {
        *end = true;
        return STATUS_OK;
    }
    if (status != STATUS_OK && fail_document(document, status, code, &reason)) {
        if (error)
            *error = reason;
        return STATUS_NO_MEMORY;
    }
    document->index = input->next_index++;
    document->ready_ns = clock_now_ns();
    document->read_ns = document->ready_ns - started_ns;
    return STATUS_OK;
}
