/* --prompts is JSONL with id and prompt; the document comes first in each, so that its KV is
 * shared. */
#include "cmd/questions.h"

#include <string.h>

#include "core/base/file_map.h"
#include "core/base/json.h"
#include "core/job/document_hash.h"

/* Compiles the next question's prompt. */
static enum status add_prompt(struct questions *questions, const char *id, const char *prompt,
                              struct error *error) {
    struct job_question *question = &questions->items[questions->count++];
    question->id = id;
    questions->hash = document_hash_more(questions->hash, prompt, strlen(prompt));
    if (id)
        questions->hash = document_hash_more(questions->hash, id, strlen(id));
    return prompt_compile(prompt, id != NULL, &question->prompt, error);
}

static enum status add_question(struct runtime *runtime, struct questions *questions,
                                const json_t *value, struct error *error) {
    const char *id = json_string_value(json_object_get(value, "id"));
    const char *prompt = json_string_value(json_object_get(value, "prompt"));
    if (!id || !prompt)
        return error_set(error, STATUS_BAD_INPUT, "a question needs \"id\" and \"prompt\" texts");
    for (int i = 0; i < questions->count; i++) {
        if (strcmp(questions->items[i].id, id) == 0)
            return error_set(error, STATUS_BAD_INPUT, "the id '%s' was used before", id);
    }
    const char *copy = arena_copy_text(runtime->arena, id, strlen(id));
    if (!copy)
        return error_no_memory(error, "the questions");
    return add_prompt(questions, copy, prompt, error);
}

static enum status add_line(struct runtime *runtime, struct questions *questions, struct view line,
                            struct error *error) {
    json_t *value = NULL;
    TRY(json_parse(line.bytes, line.length, &value, error));
    enum status status = add_question(runtime, questions, value, error);
    json_decref(value);
    return status;
}

static bool is_blank(struct view line) {
    return strspn(line.bytes, " \t\r") >= line.length;
}

static int count_lines(const char *text) {
    int count = 1;
    for (; (text = strchr(text, '\n')) != NULL; text++)
        count++;
    return count;
}

static enum status load_file(struct runtime *runtime, struct questions *questions,
                             struct error *error) {
    const char *path = runtime->settings->prompts;
    const char *text = NULL;
    TRY(runtime_read_text(runtime, path, &text, error));
    questions->items =
        arena_calloc(runtime->arena, (size_t)count_lines(text), sizeof *questions->items);
    if (!questions->items)
        return error_no_memory(error, "the questions");
    int number = 0;
    for (const char *at = text; at; number++) {
        const char *end = strchr(at, '\n');
        struct view line = {at, end ? (size_t)(end - at) : strlen(at)};
        if (!is_blank(line) && add_line(runtime, questions, line, error) != STATUS_OK)
            return error_context(error, "'%s': line %d", path, number + 1);
        at = end ? end + 1 : NULL;
    }
    if (questions->count == 0)
        return error_set(error, STATUS_BAD_INPUT, "'%s' holds no questions", path);
    return STATUS_OK;
}

enum status questions_load(struct runtime *runtime, struct questions *questions,
                           struct error *error) {
    *questions = (struct questions){0};
    const struct settings *settings = runtime->settings;
    if (settings->prompts && (settings->prompt || settings->prompt_file))
        return error_set(error, STATUS_BAD_INPUT, "give --prompts or --prompt, not both");
    if (settings->prompts)
        return load_file(runtime, questions, error);
    questions->items = arena_calloc(runtime->arena, 1, sizeof *questions->items);
    if (!questions->items)
        return error_no_memory(error, "the prompt");
    const char *prompt = settings->prompt;
    if (settings->prompt_file)
        TRY(runtime_read_text(runtime, settings->prompt_file, &prompt, error));
    if (prompt)
        return add_prompt(questions, NULL, prompt, error);
    questions->count = 1;
    return STATUS_OK;
}

void questions_deinit(struct questions *questions) {
    for (int i = 0; i < questions->count; i++)
        prompt_destroy(questions->items[i].prompt);
}
