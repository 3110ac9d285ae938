/* Growable byte text with a stated maximum. `bytes` is always NUL-terminated once something was
 * appended; the content may hold NUL bytes, `length` counts. */
#ifndef CORE_BASE_TEXT_H
#define CORE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A borrowed piece of text: not NUL-terminated, not owned. */
struct view {
    const char *bytes;
    size_t length;
};

struct text {
    char *bytes; /* NULL until the first append */
    size_t length;
    size_t capacity;
    size_t max; /* largest length allowed */
};

void text_init(struct text *text, size_t max);
void text_deinit(struct text *text);
void text_clear(struct text *text); /* keeps the memory */

/* All appends return false, and leave the text as it was, when out of memory or over the maximum.
 */
bool text_append(struct text *text, const char *bytes, size_t length);
bool text_append_string(struct text *text, const char *string);
bool text_append_char(struct text *text, char character);
bool text_append_format(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Make room for `length` more bytes without appending. */
bool text_reserve(struct text *text, size_t length);

struct view text_view(const struct text *text);
struct view view_of(const char *string);
bool view_equal(struct view a, struct view b);
bool view_is(struct view view, const char *string);

#endif
