/* Prompts. A prompt text is compiled to pieces once; rendering appends pieces and fields with their
 * origins, so what a document holds is never read as a field, a special token or a template. */
#include "core/job/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t PROMPT_BYTES_MAX = 0xfffffffe; /* what the tokenizer takes */

enum field { FIELD_TEXT, FIELD_DOCUMENT, FIELD_PATH, FIELD_NAME, FIELD_INDEX, FIELD_COUNT };

static const char *const field_names[FIELD_COUNT] = {
    [FIELD_TEXT] = "",       [FIELD_DOCUMENT] = "{document}", [FIELD_PATH] = "{path}",
    [FIELD_NAME] = "{name}", [FIELD_INDEX] = "{index}",
};

struct piece {
    enum field field;
    struct view text; /* FIELD_TEXT: points into the source */
};

struct prompt_template {
    char *source;
    struct piece *pieces;
    size_t count;
    size_t capacity;
};

struct prompt_scratch {
    struct marked_text system;
    struct marked_text *contents; /* [capacity], one a message */
    struct chat_message *messages;
    size_t capacity;
};

static bool add_piece(struct prompt_template *compiled, enum field field, struct view text) {
    if (field == FIELD_TEXT && text.length == 0)
        return true;
    if (compiled->count == compiled->capacity) {
        size_t capacity = compiled->capacity ? compiled->capacity * 2 : 8;
        struct piece *grown = realloc(compiled->pieces, capacity * sizeof *grown);
        if (!grown)
            return false;
        compiled->pieces = grown;
        compiled->capacity = capacity;
    }
    compiled->pieces[compiled->count++] = (struct piece){field, text};
    return true;
}

/* The field whose name in braces begins at `at`, or FIELD_TEXT. */
static enum field field_at(const char *at) {
    for (enum field field = FIELD_DOCUMENT; field < FIELD_COUNT; field++) {
        if (strncmp(at, field_names[field], strlen(field_names[field])) == 0)
            return field;
    }
    return FIELD_TEXT;
}

static bool is_escaped(const char *at, enum field field) {
    return field != FIELD_TEXT && at[1 + strlen(field_names[field])] == '}';
}

/* One pass over the source: pieces of text and fields in order. */
static bool split_source(struct prompt_template *compiled) {
    const char *first = compiled->source;
    const char *at = first;
    while (*at) {
        enum field escaped = at[0] == '{' && at[1] == '{' ? field_at(at + 1) : FIELD_TEXT;
        enum field field = at[0] == '{' ? field_at(at) : FIELD_TEXT;
        struct view before = {first, (size_t)(at - first)};
        if (is_escaped(at, escaped)) {
            size_t length = strlen(field_names[escaped]);
            if (!add_piece(compiled, FIELD_TEXT, before) ||
                !add_piece(compiled, FIELD_TEXT, (struct view){at + 1, length}))
                return false;
            at += length + 2;
            first = at;
        } else if (field != FIELD_TEXT) {
            if (!add_piece(compiled, FIELD_TEXT, before) ||
                !add_piece(compiled, field, (struct view){0}))
                return false;
            at += strlen(field_names[field]);
            first = at;
        } else {
            at++;
        }
    }
    return add_piece(compiled, FIELD_TEXT, (struct view){first, (size_t)(at - first)});
}

static bool has_document(const struct prompt_template *compiled) {
    for (size_t i = 0; i < compiled->count; i++) {
        if (compiled->pieces[i].field == FIELD_DOCUMENT)
            return true;
    }
    return false;
}

/* Newlines at the end go: one blank line stands between prompt and document, however the prompt's
 * file ends. */
static void trim_end(struct prompt_template *compiled) {
    while (compiled->count > 0) {
        struct piece *last = &compiled->pieces[compiled->count - 1];
        while (last->text.length > 0 && strchr("\r\n", last->text.bytes[last->text.length - 1]))
            last->text.length--;
        if (last->field != FIELD_TEXT || last->text.length > 0)
            return;
        compiled->count--;
    }
}

static bool add_document(struct prompt_template *compiled, bool document_first) {
    trim_end(compiled);
    bool alone = compiled->count == 0;
    if (!document_first)
        return (alone || add_piece(compiled, FIELD_TEXT, view_of("\n\n"))) &&
               add_piece(compiled, FIELD_DOCUMENT, (struct view){0});
    if (!add_piece(compiled, FIELD_TEXT, view_of("\n\n")) ||
        !add_piece(compiled, FIELD_DOCUMENT, (struct view){0}))
        return false;
    size_t moved = compiled->count - 2; /* document, blank line, then what was there */
    memmove(compiled->pieces + 2, compiled->pieces, moved * sizeof *compiled->pieces);
    compiled->pieces[0] = (struct piece){.field = FIELD_DOCUMENT};
    compiled->pieces[1] = (struct piece){FIELD_TEXT, view_of("\n\n")};
    compiled->count = alone ? 1 : compiled->count;
    return true;
}

enum status prompt_compile(const char *prompt, bool document_first,
                           struct prompt_template **compiled, struct error *error) {
    *compiled = NULL;
    struct prompt_template *created = calloc(1, sizeof *created);
    if (!created)
        return error_no_memory(error, "a prompt");
    created->source = strdup(prompt);
    bool fine = created->source && split_source(created) &&
                (has_document(created) || add_document(created, document_first));
    if (!fine) {
        prompt_destroy(created);
        return error_no_memory(error, "a prompt");
    }
    *compiled = created;
    return STATUS_OK;
}

void prompt_destroy(struct prompt_template *compiled) {
    if (!compiled)
        return;
    free(compiled->pieces);
    free(compiled->source);
    free(compiled);
}

static bool grow_scratch(struct prompt_scratch *scratch, size_t count) {
    if (count <= scratch->capacity)
        return true;
    struct chat_message *messages = realloc(scratch->messages, (count + 1) * sizeof *messages);
    if (!messages)
        return false;
    scratch->messages = messages;
    struct marked_text *contents = realloc(scratch->contents, count * sizeof *contents);
    if (!contents)
        return false;
    scratch->contents = contents;
    for (size_t i = scratch->capacity; i < count; i++)
        marked_text_init(&contents[i], PROMPT_BYTES_MAX);
    scratch->capacity = count;
    return true;
}

struct prompt_scratch *prompt_scratch_create(void) {
    struct prompt_scratch *scratch = calloc(1, sizeof *scratch);
    if (!scratch)
        return NULL;
    marked_text_init(&scratch->system, PROMPT_BYTES_MAX);
    if (grow_scratch(scratch, 1))
        return scratch;
    prompt_scratch_destroy(scratch);
    return NULL;
}

void prompt_scratch_destroy(struct prompt_scratch *scratch) {
    if (!scratch)
        return;
    for (size_t i = 0; i < scratch->capacity; i++)
        marked_text_deinit(&scratch->contents[i]);
    marked_text_deinit(&scratch->system);
    free(scratch->contents);
    free(scratch->messages);
    free(scratch);
}

static bool append_view(struct marked_text *out, struct view text, enum text_origin origin) {
    return text.length == 0 || marked_text_append(out, text.bytes, text.length, origin);
}

static bool append_field(struct marked_text *out, enum field field,
                         const struct document *document) {
    if (field == FIELD_DOCUMENT)
        return append_view(out, text_view(&document->text), ORIGIN_DOCUMENT);
    if (field == FIELD_INDEX) {
        char index[24];
        snprintf(index, sizeof index, "%lld", document->index);
        return append_view(out, view_of(index), ORIGIN_PROMPT);
    }
    const char *name = field == FIELD_PATH ? document->path : document->name;
    return append_view(out, view_of(name ? name : "stdin"), ORIGIN_NAME);
}

static enum status append_pieces(const struct prompt_template *compiled,
                                 const struct document *document, struct marked_text *out,
                                 struct error *error) {
    for (size_t i = 0; i < compiled->count; i++) {
        const struct piece *piece = &compiled->pieces[i];
        bool fine = piece->field == FIELD_TEXT ? append_view(out, piece->text, ORIGIN_PROMPT)
                                               : append_field(out, piece->field, document);
        if (!fine)
            return error_no_memory(error, "a prompt");
    }
    return STATUS_OK;
}

/* The system message, if there is one to add, at the front of the scratch's messages. */
static enum status add_system(const char *system, struct prompt_scratch *scratch, size_t *count,
                              struct error *error) {
    if (!system)
        return STATUS_OK;
    marked_text_clear(&scratch->system);
    if (!append_view(&scratch->system, view_of(system), ORIGIN_PROMPT))
        return error_no_memory(error, "a prompt");
    scratch->messages[(*count)++] = (struct chat_message){"system", &scratch->system};
    return STATUS_OK;
}

static bool has_system(const json_t *messages) {
    size_t i;
    const json_t *message;
    json_array_foreach(messages, i, message) {
        const char *role = json_string_value(json_object_get(message, "role"));
        if (role && strcmp(role, "system") == 0)
            return true;
    }
    return false;
}

/* Roles and contents of a document's own conversation. */
static enum status add_conversation(const json_t *conversation, struct prompt_scratch *scratch,
                                    size_t *count, struct error *error) {
    for (size_t i = 0; i < json_array_size(conversation); i++) {
        const json_t *message = json_array_get(conversation, i);
        const json_t *content = json_object_get(message, "content");
        const char *role = json_string_value(json_object_get(message, "role"));
        if (!role || !json_is_string(content))
            return error_set(error, STATUS_BAD_INPUT, "message %zu has no role or no text", i + 1);
        struct marked_text *marked = &scratch->contents[i];
        struct view text = {json_string_value(content), json_string_length(content)};
        marked_text_clear(marked);
        if (!append_view(marked, text, ORIGIN_DOCUMENT))
            return error_no_memory(error, "a prompt");
        scratch->messages[(*count)++] = (struct chat_message){role, marked};
    }
    return STATUS_OK;
}

static enum status render_chat(const struct prompt_setting *setting,
                               const struct prompt_scratch *scratch, size_t count,
                               struct marked_text *out, struct error *error) {
    struct chat_variables variables = {.messages = scratch->messages,
                                       .message_count = count,
                                       .bos_token = setting->bos_token,
                                       .eos_token = setting->eos_token,
                                       .add_generation_prompt = true,
                                       .date = setting->date};
    return chat_template_render(setting->chat, &variables, out, error);
}

static enum status render_conversation(const struct prompt_setting *setting,
                                       const struct document *document,
                                       struct prompt_scratch *scratch, struct marked_text *out,
                                       struct error *error) {
    size_t count = 0;
    if (!setting->chat)
        return error_set(error, STATUS_BAD_INPUT,
                         "messages need a chat template: try --chat-template FILE");
    if (!grow_scratch(scratch, json_array_size(document->messages)))
        return error_no_memory(error, "a prompt");
    if (!has_system(document->messages))
        TRY(add_system(setting->system, scratch, &count, error));
    TRY(add_conversation(document->messages, scratch, &count, error));
    return render_chat(setting, scratch, count, out, error);
}

/* Without a template: system, blank line, prompt. */
static enum status render_plain(const struct prompt_template *compiled,
                                const struct prompt_setting *setting,
                                const struct document *document, struct marked_text *out,
                                struct error *error) {
    if (setting->system && (!append_view(out, view_of(setting->system), ORIGIN_PROMPT) ||
                            !append_view(out, view_of("\n\n"), ORIGIN_PROMPT)))
        return error_no_memory(error, "a prompt");
    return append_pieces(compiled, document, out, error);
}

enum status prompt_render(const struct prompt_template *compiled,
                          const struct prompt_setting *setting, const struct document *document,
                          struct prompt_scratch *scratch, struct marked_text *out,
                          struct error *error) {
    size_t count = 0;
    marked_text_clear(out);
    if (document->messages)
        return render_conversation(setting, document, scratch, out, error);
    if (!compiled)
        return error_set(error, STATUS_BAD_INPUT, "no prompt for this document: try --prompt");
    if (!setting->chat)
        return render_plain(compiled, setting, document, out, error);
    struct marked_text *content = &scratch->contents[0];
    marked_text_clear(content);
    TRY(append_pieces(compiled, document, content, error));
    TRY(add_system(setting->system, scratch, &count, error));
    scratch->messages[count++] = (struct chat_message){"user", content};
    return render_chat(setting, scratch, count, out, error);
}
