/* Marked text: one growable text and, beside it, a list of spans that says which bytes came from
 * where. Spans of equal origin are merged as they are appended, so a rendered prompt has a handful
 * of them however many pieces it was built from. Both grow before either changes: a failed append
 * leaves the marked text as it was. */
#include "tokenizer/marked_text.h"

#include <stdint.h>
#include <stdlib.h>

void marked_text_init(struct marked_text *marked, size_t max) {
    text_init(&marked->text, max);
    marked->spans = NULL;
    marked->span_count = 0;
    marked->span_capacity = 0;
}

void marked_text_deinit(struct marked_text *marked) {
    text_deinit(&marked->text);
    free(marked->spans);
    marked->spans = NULL;
    marked->span_count = 0;
    marked->span_capacity = 0;
}

void marked_text_clear(struct marked_text *marked) {
    text_clear(&marked->text);
    marked->span_count = 0;
}

/* Room for one more span. */
static bool reserve_span(struct marked_text *marked) {
    if (marked->span_count < marked->span_capacity)
        return true;
    if (marked->span_capacity > SIZE_MAX / sizeof *marked->spans / 2)
        return false;
    size_t capacity = marked->span_capacity ? marked->span_capacity * 2 : 8;
    struct text_span *spans = realloc(marked->spans, capacity * sizeof *spans);
    if (!spans)
        return false;
    marked->spans = spans;
    marked->span_capacity = capacity;
    return true;
}

bool marked_text_append(struct marked_text *marked, const char *bytes, size_t length,
                        enum text_origin origin) {
    if (length == 0)
        return true;
    if (!reserve_span(marked) || !text_append(&marked->text, bytes, length))
        return false;
    struct text_span *last = marked->span_count ? &marked->spans[marked->span_count - 1] : NULL;
    if (last && last->origin == origin)
        last->length += length;
    else
        marked->spans[marked->span_count++] = (struct text_span){length, origin};
    return true;
}
