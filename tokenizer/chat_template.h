/* Chat templates: a Jinja subset, parsed to a tree and walked, with transformers' settings
 * (trim_blocks, lstrip_blocks, one trailing newline dropped, loop controls). Strings carry their
 * origin through every filter and method, so the output says which bytes the template wrote and
 * which came from the user. Steps, depth and output are limited; a template cannot read anything
 * but what it is given. */
#ifndef TOKENIZER_CHAT_TEMPLATE_H
#define TOKENIZER_CHAT_TEMPLATE_H

#include "core/base/error.h"
#include "tokenizer/marked_text.h"

struct chat_template;

struct chat_message {
    const char *role; /* "system", "user", "assistant" */
    const struct marked_text *content;
};

struct chat_variables {
    const struct chat_message *messages;
    size_t message_count;
    struct view bos_token; /* literal texts; empty when the model has none */
    struct view eos_token;
    bool add_generation_prompt;
    /* strftime_now: a fixed date keeps reruns equal; seconds since the epoch, UTC. */
    long long date;
};

/* Errors name the line and what is not supported. `source` is copied. */
enum status chat_template_parse(struct view source, struct chat_template **chat_template,
                                struct error *error);
void chat_template_destroy(struct chat_template *chat_template);

/* Render into `out` (cleared first). raise_exception and undefined operations are STATUS_BAD_INPUT
 * with the template's own message. Thread-safe on one template. */
enum status chat_template_render(const struct chat_template *chat_template,
                                 const struct chat_variables *variables, struct marked_text *out,
                                 struct error *error);

#endif
