/* From the bytes of a document to valid UTF-8, or the reason why they are not a text. */
#ifndef CORE_JOB_INPUT_TEXT_H
#define CORE_JOB_INPUT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/text.h"

/* Bytes before the first that is not UTF-8. */
size_t input_text_valid_length(const uint8_t *bytes, size_t length);

/* Nothing but white space? */
bool input_text_is_blank(const char *bytes, size_t length);

/* Whether the beginning of a file is that of a binary file: NUL bytes, PDF, or mostly bytes that no
 * text has. UTF-16 is not: its user wants to hear how to convert it. */
bool input_text_looks_binary(const uint8_t *bytes, size_t length);

/* The name of another Unicode encoding whose byte order mark begins the bytes, or NULL. */
const char *input_text_other_encoding(const uint8_t *bytes, size_t length);

/* Strip a UTF-8 byte order mark. */
void input_text_strip_mark(struct text *text);

/* Make the text valid UTF-8 by the policy: replace bad bytes by U+FFFD, counted in *replaced, or
 * refuse. On failure *code is invalid_utf8 or not_text (more than 1 % replaced). */
enum status input_text_repair(struct text *text, bool replace, long long *replaced,
                              const char **code, struct error *error);

/* All of the above for a whole file, NUL bytes and emptiness refused (not_text, empty). */
enum status input_text_decode(struct text *text, bool replace, long long *replaced,
                              const char **code, struct error *error);

#endif
