/* What a tokenizer does to text before it cuts it: NFC for models that have it, and SentencePiece's
 * handling of spaces. Both leave the text alone when nothing changes, which is the usual case and
 * costs one scan; otherwise the changed places are kept, to map offsets back. */
#ifndef TOKENIZER_NORMALIZER_H
#define TOKENIZER_NORMALIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/text.h"

/* Bytes [at, at + length) of the new text stand for [from, from + from_length) of the old. */
struct normalizer_edit {
    uint32_t at, length;
    uint32_t from, from_length;
};

/* Zero-initialised is empty; memory is reused. */
struct normalizer {
    uint8_t *bytes; /* the new text, when something changed */
    size_t length;
    size_t capacity;
    struct normalizer_edit *edits; /* ascending */
    size_t edit_count;
    size_t edit_capacity;
    int32_t *code_points; /* work memory of NFC: two halves */
    size_t code_point_capacity;
};

void normalizer_deinit(struct normalizer *normalizer);

/* The text to cut: `text` itself with edit_count 0, or the normalizer's own bytes, valid until the
 * next call. A result without bytes for a text with bytes: out of memory. */
struct view normalizer_compose(struct normalizer *normalizer, struct view text);

/* U+2581 becomes a space, as the reference writes spaces as U+2581; `prefix` puts one in front. */
struct view normalizer_spaces(struct normalizer *normalizer, struct view text, bool prefix);

/* Turn ascending offsets in the new text into offsets in the old one, adding `base`. */
void normalizer_map_offsets(const struct normalizer *normalizer, uint32_t *offsets, size_t count,
                            uint32_t base);

#endif
