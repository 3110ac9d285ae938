/* `sheaf tokenize`: ids of whole files as plain text, for comparing with other tokenizers. */
#include <stdio.h>

#include "cmd/commands.h"
#include "cmd/exit_code.h"
#include "cmd/job_setup.h"
#include "cmd/runtime.h"
#include "core/job/input.h"

struct tokenize {
    struct runtime runtime;
    struct tokenizer_scratch *scratch;
    struct token_list list;
    struct marked_text marked;
    struct text line;
    int failed;
};

static bool append_ids(struct text *line, const struct token_list *list, char separator) {
    bool fine = true;
    for (size_t i = 0; i < list->count && fine; i++) {
        if (i > 0)
            fine = text_append_char(line, separator);
        fine = fine && text_append_format(line, "%d", list->ids[i]);
    }
    return fine;
}

static bool append_line(struct tokenize *tokenize, const struct document *document) {
    struct text *line = &tokenize->line;
    text_clear(line);
    if (tokenize->runtime.settings->ids_only)
        return append_ids(line, &tokenize->list, ' ') && text_append_char(line, '\n');
    return text_append_string(line, "{\"id\":") && text_append_string(line, document->id_json) &&
           text_append_format(line, ",\"bytes\":%zu,\"tokens\":%zu,\"ids\":[",
                              document->text.length, tokenize->list.count) &&
           append_ids(line, &tokenize->list, ',') && text_append_string(line, "]}\n");
}

static enum status tokenize_document(struct tokenize *tokenize, const struct document *document,
                                     struct error *error) {
    marked_text_clear(&tokenize->marked);
    if (!marked_text_append(&tokenize->marked, document->text.bytes, document->text.length,
                            ORIGIN_DOCUMENT))
        return error_no_memory(error, "the document");
    struct tokenizer_options options = {.add_bos = true};
    TRY(tokenizer_encode(tokenize->runtime.tokenizer, &tokenize->marked, &options,
                         tokenize->scratch, &tokenize->list, error));
    if (!append_line(tokenize, document))
        return error_no_memory(error, "the output");
    fwrite(tokenize->line.bytes, 1, tokenize->line.length, stdout);
    return STATUS_OK;
}

static enum status tokenize_all(struct tokenize *tokenize, const struct path_list *inputs,
                                struct error *error) {
    struct input_options options = {
        .paths = inputs->items, .path_count = inputs->count, .replace_invalid = true};
    struct input *input = NULL;
    TRY(input_open(&options, &input, error));
    struct document document;
    document_init(&document);
    bool end = false;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !end) {
        status = input_next(input, &document, &end, error);
        if (status != STATUS_OK || end)
            break;
        if (document.error_code) {
            fprintf(stderr, "sheaf: %s: %s\n", document.id_json, document.error_message);
            tokenize->failed++;
        } else {
            status = tokenize_document(tokenize, &document, error);
        }
    }
    document_deinit(&document);
    input_close(input);
    return status;
}

static enum status prepare(struct tokenize *tokenize, const struct path_list *given,
                           struct arena *arena, struct path_list *inputs, struct error *error) {
    TRY(job_setup_inputs(tokenize->runtime.settings, given, arena, inputs, error));
    TRY(runtime_open_model(&tokenize->runtime, error));
    TRY(runtime_open_tokenizer(&tokenize->runtime, error));
    tokenize->scratch = tokenizer_scratch_create();
    return tokenize->scratch ? STATUS_OK : error_no_memory(error, "the tokenizer");
}

int command_tokenize(const struct settings *settings, const struct path_list *given,
                     struct arena *arena) {
    struct tokenize tokenize = {0};
    struct path_list inputs;
    struct error error;
    runtime_init(&tokenize.runtime, settings, arena);
    marked_text_init(&tokenize.marked, SIZE_MAX / 4);
    text_init(&tokenize.line, SIZE_MAX / 4);
    enum status status = prepare(&tokenize, given, arena, &inputs, &error);
    if (status == STATUS_OK)
        status = tokenize_all(&tokenize, &inputs, &error);
    if (status != STATUS_OK)
        fprintf(stderr, "sheaf: %s\n", error.text);
    tokenizer_scratch_destroy(tokenize.scratch);
    token_list_deinit(&tokenize.list);
    marked_text_deinit(&tokenize.marked);
    text_deinit(&tokenize.line);
    runtime_deinit(&tokenize.runtime);
    if (status != STATUS_OK)
        return EXIT_NOT_STARTED;
    return tokenize.failed > 0 ? EXIT_SOME_FAILED : EXIT_ALL_DONE;
}
