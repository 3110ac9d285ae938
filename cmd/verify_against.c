/* The reference computes the tokens that the file names, a chunk at a time, while the file's logits
 * of the same chunk are read: neither side is ever held whole. */
#include "cmd/verify_against.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/exit_code.h"
#include "cmd/runtime.h"
#include "cmd/verify_report.h"
#include "core/engine/verify.h"
#include "core/model/decoder.h"

static const char MAGIC[8] = "logits1\n";
enum { CHUNK_ROWS = 64 };

struct header {
    char magic[sizeof MAGIC];
    int32_t vocab_count, token_count;
};

struct logits_check {
    struct runtime runtime;
    FILE *file;
    const char *path;
    struct backend *reference;
    struct verify verify;
    bool verify_ready;
    int token_count;
    int32_t *tokens;  /* [token_count] */
    int32_t *numbers; /* 0, 1, 2, ...: page table and sampled rows */
    float *logits;    /* [CHUNK_ROWS][vocab]: the file's */
};

static enum status read_all(struct logits_check *check, void *into, size_t size,
                            struct error *error) {
    if (fread(into, 1, size, check->file) == size)
        return STATUS_OK;
    return error_set(error, STATUS_CORRUPT, "'%s' ends before the logits it announces",
                     check->path);
}

static enum status check_header(const struct logits_check *check, const struct header *header,
                                struct error *error) {
    const struct model *model = check->runtime.model;
    if (memcmp(header->magic, MAGIC, sizeof MAGIC) != 0)
        return error_set(error, STATUS_CORRUPT, "'%s' is not a file of logits", check->path);
    if (header->vocab_count != model->vocab_count)
        return error_set(error, STATUS_BAD_INPUT, "'%s' has logits of %d tokens, the model has %d",
                         check->path, header->vocab_count, model->vocab_count);
    if (header->token_count < 1 || header->token_count > model->context_max)
        return error_set(error, STATUS_BAD_INPUT, "'%s' has %d positions, not 1 to the model's %d",
                         check->path, header->token_count, model->context_max);
    return STATUS_OK;
}

static enum status read_tokens(struct logits_check *check, struct error *error) {
    struct header header;
    TRY(read_all(check, &header, sizeof header, error));
    TRY(check_header(check, &header, error));
    size_t count = (size_t)header.token_count, vocab = (size_t)header.vocab_count;
    size_t number_count = count > CHUNK_ROWS ? count : CHUNK_ROWS;
    struct arena *arena = check->runtime.arena;
    check->token_count = header.token_count;
    check->tokens = arena_calloc(arena, count, sizeof *check->tokens);
    check->numbers = arena_calloc(arena, number_count, sizeof *check->numbers);
    check->logits = arena_calloc(arena, CHUNK_ROWS * vocab, sizeof *check->logits);
    if (!check->tokens || !check->numbers || !check->logits)
        return error_no_memory(error, "the comparison of logits");
    for (size_t i = 0; i < number_count; i++)
        check->numbers[i] = (int32_t)i;
    TRY(read_all(check, check->tokens, count * sizeof *check->tokens, error));
    for (size_t i = 0; i < count; i++) {
        if (check->tokens[i] < 0 || check->tokens[i] >= header.vocab_count)
            return error_set(error, STATUS_BAD_INPUT, "'%s' names token %d of %d", check->path,
                             check->tokens[i], header.vocab_count);
    }
    return STATUS_OK;
}

static enum status open_reference(struct logits_check *check, struct error *error) {
    struct runtime *runtime = &check->runtime;
    TRY(runtime_open_threads(runtime, error));
    TRY(runtime_create_backend(runtime, DEVICE_REFERENCE, &check->reference, error));
    struct backend_limits limits =
        verify_limits(runtime->model, check->token_count, CHUNK_ROWS, KV_F64);
    TRY(check->reference->ops->prepare(check->reference, runtime->model, error));
    return check->reference->ops->reserve(check->reference, &limits, error);
}

static enum status compare_chunk(struct logits_check *check, int first, int count,
                                 struct error *error) {
    const struct model *model = check->runtime.model;
    struct step_run run = {.row_count = count, .position_first = first};
    for (int group = 0; group < model->kv_group_count; group++)
        run.pages[group] = check->numbers;
    const struct step_plan plan = {
        .row_count = count,
        .tokens = check->tokens + first,
        .run_count = 1,
        .runs = &run,
        .sample_count = count,
        .sample_rows = check->numbers,
    };
    size_t vocab = (size_t)model->vocab_count;
    TRY(read_all(check, check->logits, (size_t)count * vocab * sizeof *check->logits, error));
    TRY(decoder_step(model, check->reference, &plan, error));
    const float *reference = check->reference->ops->logits_view(check->reference);
    for (int row = 0; row < count; row++) {
        size_t at = (size_t)row * vocab;
        TRY(verify_add(&check->verify, first + row, reference + at, check->logits + at, error));
    }
    return STATUS_OK;
}

static enum status check_logits(struct logits_check *check, struct error *error) {
    check->file = fopen(check->path, "re");
    if (!check->file)
        return error_set_errno(error, STATUS_IO, errno, "cannot read '%s'", check->path);
    TRY(runtime_open_model(&check->runtime, error));
    TRY(read_tokens(check, error));
    TRY(open_reference(check, error));
    verify_init(&check->verify, check->runtime.model->vocab_count);
    check->verify_ready = true;
    for (int first = 0; first < check->token_count; first += CHUNK_ROWS) {
        int left = check->token_count - first;
        TRY(compare_chunk(check, first, left < CHUNK_ROWS ? left : CHUNK_ROWS, error));
    }
    return STATUS_OK;
}

static void deinit(struct logits_check *check) {
    if (check->file)
        fclose(check->file);
    if (check->verify_ready)
        verify_deinit(&check->verify);
    if (check->reference)
        check->reference->ops->destroy(check->reference);
    runtime_deinit(&check->runtime);
}

int verify_against(const struct settings *settings, struct arena *arena) {
    struct logits_check check = {.path = settings->against};
    struct error error;
    runtime_init(&check.runtime, settings, arena);
    int code = EXIT_NOT_STARTED;
    if (check_logits(&check, &error) == STATUS_OK) {
        struct verify_report report = verify_finish(&check.verify);
        code = verify_report_print(&check.runtime, &report, check.path);
    } else {
        fprintf(stderr, "sheaf: %s\n", error.text);
    }
    deinit(&check);
    return code;
}
