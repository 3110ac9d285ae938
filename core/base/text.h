/* Growable byte text with a stated maximum. `bytes` is always NUL-terminated once something was
 * appended; the content may hold NUL bytes, `length` counts. */
#ifndef CORE_BASE_TEXT_H
#define CORE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/view.h"

struct text {
    char *bytes; /* NULL until the first append */
    size_t length;
    size_t capacity;
    size_t max; /* largest length allowed, < SIZE_MAX */
};

void text_init(struct text *text, size_t max);
void text_deinit(struct text *text);
void text_clear(struct text *text); /* keeps the memory */

/* All appends return false, and leave the text as it was, when out of memory or over the maximum.
 * What is appended must not lie in the text itself. */
bool text_append(struct text *text, const char *bytes, size_t length);
bool text_append_string(struct text *text, const char *string);
bool text_append_char(struct text *text, char character);
bool text_append_format(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Make room for `length` more bytes without appending. */
bool text_reserve(struct text *text, size_t length);

/* What is there now: valid until the next append; "" before the first. */
struct view text_view(const struct text *text);

#endif
