/* Thin layer over jansson (strict UTF-8, insertion order kept): parsing with our limits and errors,
 * and writing of values in one line. json_t is jansson's; callers use its accessors directly. */
#ifndef CORE_BASE_JSON_H
#define CORE_BASE_JSON_H

#include <jansson.h>

#include "core/base/error.h"
#include "core/base/text.h"

/* Parse one JSON value that fills `bytes` (blanks around it allowed). NUL as \u0000 is accepted,
 * duplicate keys, lone surrogates, invalid UTF-8, trailing garbage and nesting over 100 are
 * refused. The error tells the position. The caller owns the result (json_decref). */
enum status json_parse(const char *bytes, size_t length, json_t **value, struct error *error);

/* Append `value` in compact form, keys in insertion order, non-ASCII kept. */
bool json_append(struct text *text, const json_t *value);

/* Append `bytes` as a JSON string with quotes. Invalid UTF-8 is replaced by U+FFFD, so the output
 * is always valid. */
bool json_append_string(struct text *text, const char *bytes, size_t length);

/* Append a number: `decimals` digits after the point; non-finite values become null. */
bool json_append_number(struct text *text, double value, int decimals);

#endif
