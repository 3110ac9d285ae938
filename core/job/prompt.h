/* From a document to the exact text the model sees, every byte with its origin: the user's prompt
 * with its fields filled in one pass, in a chat template or plain. */
#ifndef CORE_JOB_PROMPT_H
#define CORE_JOB_PROMPT_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/job/document.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/marked_text.h"

/* A prompt text with `{document} {path} {name} {index}` found once. Unknown braces stay, `{{name}}`
 * gives `{name}`. Without {document}: prompt, blank line, document — or, with `document_first`,
 * document, blank line, prompt (many questions over one document share its KV). {path} and {name}
 * of a document without a path are "stdin"; {index} is the row's. */
struct prompt_template;
enum status prompt_compile(const char *prompt, bool document_first,
                           struct prompt_template **compiled, struct error *error);
void prompt_destroy(struct prompt_template *compiled);

struct prompt_setting {
    const struct chat_template *chat; /* NULL: plain text */
    const char *system;               /* NULL: none. Plain text: system, blank line, prompt */
    struct view bos_token, eos_token; /* literal texts, for the template */
    long long date;
};

/* Scratch that is reused from document to document. */
struct prompt_scratch;
struct prompt_scratch *prompt_scratch_create(void);
void prompt_scratch_destroy(struct prompt_scratch *scratch);

/* Render into `out` (cleared first). A document with messages is its own prompt: `compiled` may be
 * NULL and is not used, `system` comes first unless they have a system message, and every content
 * counts as the document. Messages need a chat template; a document without messages needs a
 * prompt: both are STATUS_BAD_INPUT otherwise. */
enum status prompt_render(const struct prompt_template *compiled,
                          const struct prompt_setting *setting, const struct document *document,
                          struct prompt_scratch *scratch, struct marked_text *out,
                          struct error *error);

#endif
