/* Text whose bytes remember where they came from, so that a chat template's own special tokens are
 * recognised and a document's look-alikes are not, while the whole is tokenised as one string. */
#ifndef TOKENIZER_MARKED_TEXT_H
#define TOKENIZER_MARKED_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/text.h"

enum text_origin {
    ORIGIN_TEMPLATE, /* written by the chat template: special tokens are honoured */
    ORIGIN_PROMPT,   /* the user's instruction: honoured only without a chat template */
    ORIGIN_DOCUMENT, /* the document: never */
    ORIGIN_NAME, /* a document's path or name in a prompt: never, and not part of the document */
};

struct text_span {
    size_t length;
    enum text_origin origin;
};

/* Invariant: the spans' lengths add up to text.length; no span is empty; neighbours differ in
 * origin. */
struct marked_text {
    struct text text;
    struct text_span *spans;
    size_t span_count;
    size_t span_capacity;
};

void marked_text_init(struct marked_text *marked, size_t max);
void marked_text_deinit(struct marked_text *marked);
void marked_text_clear(struct marked_text *marked);
/* false when out of memory or over the maximum; the text is then unchanged. */
bool marked_text_append(struct marked_text *marked, const char *bytes, size_t length,
                        enum text_origin origin);

#endif
