/* One line of a JSONL file: sheaf's own form or an OpenAI batch request, into a document. */
#ifndef CORE_JOB_INPUT_RECORD_H
#define CORE_JOB_INPUT_RECORD_H

#include "core/base/error.h"
#include "core/job/document.h"

/* Fills id_json (when the line has an id), text or messages, prompt, options and input. `line` is
 * valid UTF-8. What was understood before a failure stays, so that the error row has the line's own
 * id. */
enum status input_record_parse(const struct text *line, struct document *document,
                               const char **code, struct error *error);

/* The fields that both forms have; used by input_openai. A prompt without a document is the
 * document, and the line's own prompt is nothing but it: so it is the whole text, in a chat or
 * plain. */
enum status input_record_set_whole(struct document *document, const json_t *prompt,
                                   const char **code, struct error *error);
enum status input_record_set_id(struct document *document, const json_t *id, const char *field,
                                const char **code, struct error *error);
enum status input_record_carry(struct document *document, const char *key, json_t *value,
                               struct error *error);

#endif
