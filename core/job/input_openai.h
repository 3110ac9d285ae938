/* OpenAI batch lines: {"custom_id", "method", "url", "body": {…}}. */
#ifndef CORE_JOB_INPUT_OPENAI_H
#define CORE_JOB_INPUT_OPENAI_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/job/document.h"

bool input_openai_is_envelope(const json_t *line);

/* The body's settings become options by their long names. What would change the result and is not
 * supported is refused by name (unknown_option); what changes nothing is left out. */
enum status input_openai_parse(json_t *line, struct document *document, const char **code,
                               struct error *error);

#endif
