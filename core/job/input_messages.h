/* Conversations in JSON, checked and brought to one form. */
#ifndef CORE_JOB_INPUT_MESSAGES_H
#define CORE_JOB_INPUT_MESSAGES_H

#include "core/base/error.h"
#include "core/base/json.h"

/* *messages: a new array of {"role", "content"} with string contents (text parts are joined). On
 * failure *code is bad_line, or empty when no message has text. */
enum status input_messages_parse(const json_t *value, json_t **messages, const char **code,
                                 struct error *error);

/* What a JSON value is, for messages: "a number". */
const char *input_messages_kind(const json_t *value);

#endif
