/* What the rest of sheaf sees of chat templates: a parsed tree, and one evaluator a rendering whose
 * limits grow with the input. */
#include "tokenizer/chat_template.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/chat_eval.h"
#include "tokenizer/chat_parser.h"
#include "tokenizer/chat_statement.h"

enum {
    SOURCE_BYTES_MAX = 4 << 20,
    TREE_BYTES_MAX = 512 << 20,
    CHUNK_BYTES = 64 << 10,
};

struct chat_template {
    struct arena arena;
    struct chat_node *body;
};

enum status chat_template_parse(struct view source, struct chat_template **chat_template,
                                struct error *error) {
    *chat_template = NULL;
    if (source.length > SOURCE_BYTES_MAX)
        return error_set(error, STATUS_OVER_LIMIT, "chat template has %zu bytes, more than %d MB",
                         source.length, SOURCE_BYTES_MAX >> 20);
    struct chat_template *created = calloc(1, sizeof *created);
    if (!created)
        return error_no_memory(error, "a chat template");
    arena_init(&created->arena, CHUNK_BYTES, TREE_BYTES_MAX);
    enum status status = chat_parser_run(source, &created->arena, &created->body, error);
    if (status == STATUS_OK)
        *chat_template = created;
    else
        chat_template_destroy(created);
    return status;
}

void chat_template_destroy(struct chat_template *chat_template) {
    if (!chat_template)
        return;
    arena_deinit(&chat_template->arena);
    free(chat_template);
}

static enum status set_variable(struct chat_evaluator *evaluator, const char *name,
                                struct chat_value value) {
    return chat_eval_set_name(evaluator, view_of(name), value);
}

static enum status add_entry(struct chat_evaluator *evaluator, struct chat_dict *dict,
                             const char *name, const struct chat_string *string) {
    struct chat_value key;
    TRY(chat_eval_new_text(evaluator, view_of(name), &key));
    if (!string || !chat_value_dict_set(&evaluator->arena, dict, key, chat_value_string(string)))
        return chat_eval_full(evaluator);
    return STATUS_OK;
}

/* {"role": …, "content": …}. A role may come from a document's file: it is never the template's. */
static enum status make_message(struct chat_evaluator *evaluator,
                                const struct chat_message *message, struct chat_value *value) {
    struct arena *arena = &evaluator->arena;
    struct chat_dict *dict = chat_value_new_dict(arena, 2);
    if (!dict)
        return chat_eval_full(evaluator);
    TRY(add_entry(evaluator, dict, "role",
                  chat_string_borrow(arena, view_of(message->role), ORIGIN_PROMPT)));
    TRY(add_entry(evaluator, dict, "content", chat_string_from_marked(arena, message->content)));
    *value = (struct chat_value){.kind = CHAT_DICT, .as.dict = dict};
    return STATUS_OK;
}

static enum status set_messages(struct chat_evaluator *evaluator,
                                const struct chat_variables *variables) {
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, variables->message_count, &list));
    for (size_t i = 0; i < list->count; i++)
        TRY(make_message(evaluator, &variables->messages[i], &list->items[i]));
    return set_variable(evaluator, "messages",
                        (struct chat_value){.kind = CHAT_LIST, .as.list = list});
}

/* A token the model has; otherwise the name stays undefined. */
static enum status set_token(struct chat_evaluator *evaluator, const char *name,
                             struct view token) {
    struct chat_value value;
    if (token.length == 0)
        return STATUS_OK;
    TRY(chat_eval_new_text(evaluator, token, &value));
    return set_variable(evaluator, name, value);
}

static enum status set_variables(struct chat_evaluator *evaluator,
                                 const struct chat_variables *variables) {
    TRY(chat_eval_push_scope(evaluator, NULL));
    TRY(set_messages(evaluator, variables));
    TRY(set_token(evaluator, "bos_token", variables->bos_token));
    TRY(set_token(evaluator, "eos_token", variables->eos_token));
    TRY(set_variable(evaluator, "add_generation_prompt",
                     chat_value_bool(variables->add_generation_prompt)));
    TRY(set_variable(evaluator, "tools", chat_value_none()));
    TRY(set_variable(evaluator, "documents", chat_value_none()));
    return chat_eval_push_scope(evaluator, evaluator->scope);
}

static size_t input_bytes(const struct chat_variables *variables) {
    size_t total = 0;
    for (size_t i = 0; i < variables->message_count; i++)
        total += variables->messages[i].content->text.length;
    return total;
}

enum status chat_template_render(const struct chat_template *chat_template,
                                 const struct chat_variables *variables, struct marked_text *out,
                                 struct error *error) {
    size_t input = input_bytes(variables);
    struct chat_evaluator evaluator = {.error = error,
                                       .out = out,
                                       .steps_max = CHAT_EVAL_STEPS_MAX + input,
                                       .bytes_max = CHAT_EVAL_BYTES_MAX + 2 * input,
                                       .date = variables->date};
    arena_init(&evaluator.arena, CHUNK_BYTES, CHAT_EVAL_BYTES_MAX + 4 * input);
    marked_text_clear(out);
    enum status status = set_variables(&evaluator, variables);
    if (status == STATUS_OK)
        status = chat_statement_run(&evaluator, chat_template->body);
    if (status != STATUS_OK)
        marked_text_clear(out);
    arena_deinit(&evaluator.arena);
    return status;
}
