/* Lists of paths may be longer than memory, and are read as they are needed. */
#include "core/job/input_list.h"

#include <string.h>

#include "core/job/input_path.h"

static enum status open_lines(struct input_list *list, const char *path, struct error *error) {
    const char *code;
    bool is_stdin = strcmp(path, "-") == 0;
    enum status status = is_stdin ? input_stream_open_stdin(&list->stream, &code, error)
                                  : input_stream_open(&list->stream, path, true, &code, error);
    list->has_lines = status == STATUS_OK;
    return status ? error_context(error, "the list '%s'", is_stdin ? "stdin" : path) : STATUS_OK;
}

enum status input_list_open(struct input_list *list, const struct input_options *options,
                            struct error *error) {
    *list = (struct input_list){
        .paths = options->paths,
        .path_count = options->path_count,
        .delimiter = options->files_from_nul ? '\0' : '\n',
    };
    input_stream_init(&list->stream);
    text_init(&list->line, INPUT_PATH_MAX);
    return options->files_from ? open_lines(list, options->files_from, error) : STATUS_OK;
}

void input_list_close(struct input_list *list) {
    input_stream_deinit(&list->stream);
    text_deinit(&list->line);
}

/* A NUL inside a line of a newline-separated list cannot be part of a path. */
static enum status check_line(const struct text *line, const char **code, struct error *error) {
    if (!memchr(line->bytes, '\0', line->length))
        return STATUS_OK;
    *code = "not_text";
    return error_set(error, STATUS_BAD_INPUT, "the list of files holds a NUL: did you mean -0?");
}

enum status input_list_next(struct input_list *list, const char **path, bool *is_argument,
                            const char **code, struct error *error) {
    *path = NULL;
    *is_argument = list->next < list->path_count;
    if (*is_argument) {
        *path = list->paths[list->next++];
        return STATUS_OK;
    }
    while (list->has_lines) {
        bool found;
        enum status status = input_stream_read_line(&list->stream, list->delimiter, INPUT_PATH_MAX,
                                                    &list->line, &found, code, error);
        if (status != STATUS_OK)
            return error_context(error, "the list of files");
        list->has_lines = found;
        if (!found || list->line.length == 0)
            continue;
        TRY(check_line(&list->line, code, error));
        *path = list->line.bytes;
        return STATUS_OK;
    }
    return STATUS_OK;
}
