/* `sheaf verify`: this device, KV type and instruction set against the float64 reference,
 * teacher-forced on the user's own text; with --rows, finished rows recomputed alone
 * (verify_rows.c); with --against, another program's logits (verify_against.c). */
#include <stdio.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/exit_code.h"
#include "cmd/job_setup.h"
#include "cmd/runtime.h"
#include "cmd/verify_against.h"
#include "cmd/verify_report.h"
#include "cmd/verify_rows.h"
#include "core/engine/verify.h"
#include "core/job/input.h"

struct verify_command {
    struct runtime runtime;
    struct settings settings; /* the user's, but nothing is generated */
    struct backend *reference;
    struct token_list tokens;
    struct verify verify;
    bool verify_ready;
    int position_count;
};

/* All inputs one after the other, as one text. */
static enum status read_text(const struct path_list *inputs, struct marked_text *text,
                             struct error *error) {
    struct input_options options = {
        .paths = inputs->items, .path_count = inputs->count, .replace_invalid = true};
    struct input *input = NULL;
    TRY(input_open(&options, &input, error));
    struct document document;
    document_init(&document);
    bool end = false;
    enum status status = input_next(input, &document, &end, error);
    while (status == STATUS_OK && !end) {
        if (document.error_code)
            status = error_set(error, STATUS_BAD_INPUT, "%s: %s", document.id_json,
                               document.error_message);
        else if (!marked_text_append(text, document.text.bytes, document.text.length,
                                     ORIGIN_DOCUMENT))
            status = error_no_memory(error, "the text");
        if (status == STATUS_OK)
            status = input_next(input, &document, &end, error);
    }
    document_deinit(&document);
    input_close(input);
    return status;
}

static enum status encode_text(struct verify_command *command, const struct marked_text *text,
                               struct error *error) {
    struct tokenizer_scratch *scratch = tokenizer_scratch_create();
    if (!scratch)
        return error_no_memory(error, "the tokenizer");
    struct tokenizer_options options = {.add_bos = true};
    enum status status = tokenizer_encode(command->runtime.tokenizer, text, &options, scratch,
                                          &command->tokens, error);
    tokenizer_scratch_destroy(scratch);
    return status;
}

static enum status choose_positions(struct verify_command *command, struct error *error) {
    long long wanted = command->runtime.settings->positions;
    long long have = (long long)command->tokens.count;
    if (have < 2)
        return error_set(error, STATUS_BAD_INPUT, "the text has %lld tokens: at least 2 are needed",
                         have);
    if (wanted > have)
        wanted = have;
    if (wanted > command->runtime.context)
        wanted = command->runtime.context;
    command->position_count = (int)wanted;
    return STATUS_OK;
}

static enum status prepare_backend(struct verify_command *command, struct backend *backend,
                                   enum kv_type kv_type, struct error *error) {
    const struct model *model = command->runtime.model;
    int chunk = (int)command->runtime.settings->batch_tokens;
    struct backend_limits limits = verify_limits(model, command->position_count, chunk, kv_type);
    TRY(backend->ops->prepare(backend, model, error));
    return backend->ops->reserve(backend, &limits, error);
}

static enum status compare(struct verify_command *command, struct error *error) {
    struct runtime *runtime = &command->runtime;
    enum kv_type kv_type = runtime_engine_options(runtime).kv_type;
    TRY(runtime_create_backend(runtime, DEVICE_REFERENCE, &command->reference, error));
    TRY(prepare_backend(command, command->reference, KV_F64, error));
    TRY(prepare_backend(command, runtime->backend, kv_type, error));
    verify_init(&command->verify, runtime->model->vocab_count);
    command->verify_ready = true;
    struct verify_pair pair = {runtime->model, command->reference, runtime->backend};
    return verify_tokens(&command->verify, &pair, command->tokens.ids, command->position_count,
                         (int)runtime->settings->batch_tokens, error);
}

static enum status verify_text(struct verify_command *command, const struct path_list *given,
                               struct arena *arena, struct error *error) {
    struct path_list inputs;
    TRY(job_setup_inputs(command->runtime.settings, given, arena, &inputs, error));
    TRY(runtime_open_model(&command->runtime, error));
    TRY(runtime_open_tokenizer(&command->runtime, error));
    TRY(runtime_open_backend(&command->runtime, error));
    struct marked_text text;
    marked_text_init(&text, SIZE_MAX / 4);
    enum status status = read_text(&inputs, &text, error);
    if (status == STATUS_OK)
        status = encode_text(command, &text, error);
    marked_text_deinit(&text);
    TRY(status);
    TRY(choose_positions(command, error));
    return compare(command, error);
}

static void deinit(struct verify_command *command) {
    if (command->verify_ready)
        verify_deinit(&command->verify);
    if (command->reference)
        command->reference->ops->destroy(command->reference);
    token_list_deinit(&command->tokens);
    runtime_deinit(&command->runtime);
}

int command_verify(const struct settings *settings, const struct path_list *inputs,
                   struct arena *arena) {
    if (settings->rows)
        return verify_rows(settings, inputs, arena);
    if (settings->against)
        return verify_against(settings, arena);
    struct verify_command command = {.settings = *settings};
    struct error error;
    command.settings.max_tokens = 1;
    runtime_init(&command.runtime, &command.settings, arena);
    enum status status = verify_text(&command, inputs, arena, &error);
    int code = EXIT_NOT_STARTED;
    if (status != STATUS_OK) {
        fprintf(stderr, "sheaf: %s\n", error.text);
    } else {
        struct verify_report report = verify_finish(&command.verify);
        code = verify_report_print(&command.runtime, &report, command.runtime.numerics);
    }
    deinit(&command);
    return code;
}
