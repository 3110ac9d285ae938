/* Doubling growth up to the maximum; nothing here prints or aborts. */
#include "core/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_CAPACITY_MIN = 64 };

void text_init(struct text *text, size_t max) {
    *text = (struct text){.max = max};
}

void text_deinit(struct text *text) {
    free(text->bytes);
    *text = (struct text){.max = text->max};
}

void text_clear(struct text *text) {
    text->length = 0;
    if (text->bytes)
        text->bytes[0] = '\0';
}

bool text_reserve(struct text *text, size_t length) {
    if (length > text->max || text->length > text->max - length)
        return false;
    size_t needed = text->length + length + 1;
    if (needed <= text->capacity)
        return true;
    size_t capacity = text->capacity ? 2 * text->capacity : TEXT_CAPACITY_MIN;
    if (capacity > text->max)
        capacity = text->max + 1;
    if (capacity < needed)
        capacity = needed;
    char *bytes = realloc(text->bytes, capacity);
    if (!bytes)
        return false;
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

bool text_append(struct text *text, const char *bytes, size_t length) {
    if (!text_reserve(text, length))
        return false;
    if (length > 0)
        memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
    return true;
}

bool text_append_string(struct text *text, const char *string) {
    return text_append(text, string, strlen(string));
}

bool text_append_char(struct text *text, char character) {
    return text_append(text, &character, 1);
}

bool text_append_format(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !text_reserve(text, (size_t)length))
        return false;
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
    return true;
}

struct view text_view(const struct text *text) {
    return (struct view){text->bytes ? text->bytes : "", text->length};
}
