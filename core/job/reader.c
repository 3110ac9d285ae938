/* Each document becomes one item a question. Errors of a document stay with it: they become error
 * items and the next document is read. */
#include "core/job/reader.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/job/input.h"
#include "core/job/item_options.h"

/* What the tokenizer's 32-bit offsets can address. */
static const size_t MARKED_TEXT_MAX = 0xfffffff0;

struct reader {
    const struct job *job;
    struct item_queue *ready, *failed;
    struct input *input;
    struct prompt_scratch *prompt_scratch;
    struct tokenizer_scratch *tokenizer_scratch;
    struct token_list tokens;
    struct marked_text marked;
    struct reader_totals totals;
};

static struct input_options input_options_of(const struct job *job) {
    return (struct input_options){
        .paths = job->inputs->items,
        .path_count = job->inputs->count,
        .files_from = job->settings->files_from,
        .files_from_nul = job->settings->files_from_nul,
        .own = &job->own,
        .stdin_lines = job->settings->stdin_format == STDIN_JSONL,
        .replace_invalid = job->settings->invalid_bytes == INVALID_BYTES_REPLACE,
    };
}

enum status reader_create(const struct job *job, struct item_queue *ready,
                          struct item_queue *failed, struct reader **result, struct error *error) {
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return error_no_memory(error, "the reader");
    reader->job = job;
    reader->ready = ready;
    reader->failed = failed;
    marked_text_init(&reader->marked, MARKED_TEXT_MAX);
    reader->prompt_scratch = prompt_scratch_create();
    reader->tokenizer_scratch = tokenizer_scratch_create();
    struct input_options options = input_options_of(job);
    enum status status = reader->prompt_scratch && reader->tokenizer_scratch
                             ? input_open(&options, &reader->input, error)
                             : error_no_memory(error, "the reader");
    if (status != STATUS_OK) {
        reader_destroy(reader);
        return status;
    }
    *result = reader;
    return STATUS_OK;
}

void reader_destroy(struct reader *reader) {
    if (!reader)
        return;
    input_close(reader->input);
    prompt_scratch_destroy(reader->prompt_scratch);
    tokenizer_scratch_destroy(reader->tokenizer_scratch);
    token_list_deinit(&reader->tokens);
    marked_text_deinit(&reader->marked);
    free(reader);
}

const struct reader_totals *reader_result(const struct reader *reader) {
    return &reader->totals;
}

bool reader_skipped_message(const struct reader *reader, struct text *out) {
    return input_skipped_message(reader->input, out);
}

static char *copy_or_null(const char *text) {
    return text ? strdup(text) : NULL;
}

/* "doc" and question "q" give "doc#q"; a numeric id becomes text. */
static char *joined_id(const char *id_json, const char *question) {
    if (!question)
        return strdup(id_json);
    struct text joined;
    text_init(&joined, 1 << 20);
    size_t length = strlen(id_json);
    bool quoted = length >= 2 && id_json[0] == '"';
    bool fine =
        text_append_char(&joined, '"') &&
        text_append(&joined, quoted ? id_json + 1 : id_json, quoted ? length - 2 : length) &&
        text_append_char(&joined, '#');
    struct text question_json;
    text_init(&question_json, 1 << 20);
    fine = fine && json_append_string(&question_json, question, strlen(question)) &&
           text_append(&joined, question_json.bytes + 1, question_json.length - 1);
    text_deinit(&question_json);
    if (!fine)
        text_deinit(&joined);
    return joined.bytes;
}

/* What of a document each of its rows needs; the text itself is not copied. */
static bool copy_head(struct document *into, const struct document *from,
                      const struct job_question *question, int question_index, int question_count) {
    into->index = from->index * question_count + question_index;
    into->id_json = from->id_json ? joined_id(from->id_json, question->id) : strdup("null");
    into->path = copy_or_null(from->path);
    into->name = copy_or_null(from->name);
    into->line = from->line;
    into->input = from->input ? json_incref(from->input) : NULL;
    into->input_bytes = from->input_bytes;
    into->replaced_bytes = from->replaced_bytes;
    into->read_ns = from->read_ns;
    into->ready_ns = from->ready_ns;
    return into->id_json && (into->path || !from->path) && (into->name || !from->name);
}

static enum status render_and_tokenize(struct reader *reader, struct item *item,
                                       const struct document *document,
                                       const struct prompt_template *prompt, const char **code,
                                       struct error *error) {
    const struct job *job = reader->job;
    struct prompt_setting setting = job->prompt_setting;
    setting.system = item->settings.system;
    *code = "bad_template";
    TRY(prompt_render(prompt, &setting, document, reader->prompt_scratch, &reader->marked, error));
    item->document_hash = document_hash_more(item->document_hash, reader->marked.text.bytes,
                                             reader->marked.text.length);
    struct tokenizer_options options = {.prompt_trusted = !setting.chat, .add_bos = !setting.chat};
    *code = "out_of_memory";
    TRY(tokenizer_encode(job->tokenizer, &reader->marked, &options, reader->tokenizer_scratch,
                         &reader->tokens, error));
    *code = "too_long";
    return length_apply(&reader->tokens, &reader->marked, (enum too_long)job->settings->too_long,
                        job->context, item->settings.max_tokens, &item->length, error);
}

static enum status take_tokens(struct reader *reader, struct item *item, struct error *error) {
    item->token_count = (int)reader->tokens.count;
    if (item->token_count == 0)
        return error_set(error, STATUS_BAD_INPUT, "the prompt has no tokens");
    size_t bytes = reader->tokens.count * sizeof *item->tokens;
    item->tokens = malloc(bytes);
    if (!item->tokens)
        return error_no_memory(error, "the document's tokens");
    memcpy(item->tokens, reader->tokens.ids, bytes);
    return STATUS_OK;
}

/* The prompt of this item: the line's own, else the question's. */
static enum status prepare_tokens(struct reader *reader, struct item *item,
                                  const struct document *document,
                                  const struct job_question *question, const char **code,
                                  struct error *error) {
    struct prompt_template *own = NULL;
    *code = "no_prompt";
    const char *own_prompt = item->own_prompt ? item->own_prompt : document->prompt;
    if (!own_prompt && !question->prompt && !document->messages)
        return error_set(error, STATUS_BAD_INPUT,
                         "no prompt: give --prompt, or a prompt with the document");
    *code = "out_of_memory";
    if (own_prompt && !question->id)
        TRY(prompt_compile(own_prompt, false, &own, error));
    enum status status =
        render_and_tokenize(reader, item, document, own ? own : question->prompt, code, error);
    prompt_destroy(own);
    if (status != STATUS_OK)
        return status;
    *code = "empty";
    return take_tokens(reader, item, error);
}

/* Options, prompt and tokens of an item; a failure stays with the item. */
static void prepare_item(struct reader *reader, struct item *item, const struct document *document,
                         const struct job_question *question) {
    struct error error;
    const char *code = "bad_option";
    enum status status = item_options_apply(item, document->options, &code, &error);
    if (status != STATUS_OK && document->line > 0)
        error_context(&error, "'%s': line %lld", document->path, document->line);
    if (status == STATUS_OK)
        status = prepare_tokens(reader, item, document, question, &code, &error);
    if (status == STATUS_NO_MEMORY)
        code = "out_of_memory";
    if (status != STATUS_OK)
        item_fail(item, code, error.text);
}

static uint64_t row_hash_of(const struct item *item) {
    if (!item->error_code)
        return item->document_hash;
    return document_hash_more(item->document_hash, item->error_code, strlen(item->error_code));
}

/* Has this run met the id before? Has an earlier run finished the very same document? */
enum verdict { VERDICT_COMPUTE, VERDICT_FINISHED, VERDICT_NO_MEMORY };

static enum verdict check_finished(struct reader *reader, struct item *item) {
    struct finished_entry *entry = finished_set_get(reader->job->finished, item->id_hash);
    if (!entry)
        return VERDICT_NO_MEMORY;
    if (entry->state & FINISHED_SEEN) {
        item_fail(item, "duplicate_id", "an earlier document has the same id");
        item->id_hash = document_hash_duplicate(item->id_hash, item->document.index);
        entry = finished_set_get(reader->job->finished, item->id_hash);
        if (!entry)
            return VERDICT_NO_MEMORY;
    }
    item->row_hash = row_hash_of(item);
    uint64_t state = entry->state;
    entry->state |= FINISHED_SEEN;
    if (!(state & FINISHED_ROW))
        return VERDICT_COMPUTE;
    bool retry = (state & FINISHED_ERROR) && reader->job->settings->retry_errors;
    if (finished_set_matches(state, item->row_hash) && !retry) {
        reader->totals.resumed_failed += (state & FINISHED_ERROR) != 0;
        return VERDICT_FINISHED;
    }
    reader->totals.superseded = true;
    item->replaces_row = !(state & FINISHED_ERROR);
    return VERDICT_COMPUTE;
}

static bool hand_on(struct reader *reader, struct item *item) {
    switch (check_finished(reader, item)) {
    case VERDICT_FINISHED:
        reader->totals.resumed++;
        atomic_fetch_add(&reader->job->progress->resumed, 1);
        item_destroy(item);
        return true;
    case VERDICT_NO_MEMORY:
        item_fail(item, "out_of_memory", "out of memory for the set of ids");
        break;
    case VERDICT_COMPUTE:
        break;
    }
    item->tokenized_ns = clock_now_ns();
    if (item->error_code)
        return item_queue_push(reader->failed, item);
    atomic_fetch_add(&reader->job->progress->prompt_tokens_known, item->token_count);
    return item_queue_push(reader->ready, item);
}

static bool read_question(struct reader *reader, const struct document *document,
                          int question_index) {
    const struct job *job = reader->job;
    const struct job_question *question = &job->questions[question_index];
    struct item *item = item_create();
    if (!item ||
        !copy_head(&item->document, document, question, question_index, job->question_count)) {
        item_destroy(item);
        reader->totals.status = error_no_memory(&reader->totals.error, "a document");
        return false;
    }
    int64_t started_ns = clock_now_ns();
    item->settings = *job->settings;
    item->id_hash = document_hash_id(item->document.id_json, strlen(item->document.id_json));
    if (document->error_code)
        item_fail(item, document->error_code, document->error_message);
    else
        prepare_item(reader, item, document, question);
    item->tokenize_ns = clock_now_ns() - started_ns;
    reader->totals.tokenize_ms += (double)item->tokenize_ns * 1e-6;
    return hand_on(reader, item);
}

static bool read_document(struct reader *reader, const struct document *document) {
    reader->totals.documents++;
    reader->totals.read_ms += (double)document->read_ns * 1e-6;
    atomic_fetch_add(&reader->job->progress->expected, reader->job->question_count);
    for (int i = 0; i < reader->job->question_count; i++) {
        if (!read_question(reader, document, i))
            return false;
    }
    return true;
}

static bool wants_more(const struct reader *reader) {
    long long limit = reader->job->settings->limit;
    return (limit == 0 || reader->totals.documents < limit) &&
           atomic_load(reader->job->stop) == JOB_GO_ON;
}

void reader_run(struct reader *reader) {
    struct document document;
    document_init(&document);
    while (wants_more(reader)) {
        bool end = false;
        reader->totals.status = input_next(reader->input, &document, &end, &reader->totals.error);
        if (reader->totals.status != STATUS_OK || end || !read_document(reader, &document))
            break;
    }
    document_deinit(&document);
    reader->totals.skipped = input_skipped_count(reader->input);
    atomic_store(&reader->job->progress->reading_ended, true);
    item_queue_close(reader->ready);
}
