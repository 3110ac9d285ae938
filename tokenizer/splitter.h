/* Splitters: how byte-level BPE cuts text into pieces before merging. Each model family has a
 * regular expression for it; here each is a hand-written scanner that finds the same pieces in one
 * pass. A scanner never backs up further than one character, so any text costs time linear in its
 * length. One row of the table in splitter.c adds a name. */
#ifndef TOKENIZER_SPLITTER_H
#define TOKENIZER_SPLITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/text.h"

struct splitter_cursor {
    const uint8_t *at;       /* where the next piece begins */
    const uint8_t *end;      /* of the text */
    const uint8_t *run_end;  /* falcon: of the current run of punctuation or of anything else */
    const uint8_t *word_end; /* falcon: of the current word in that run */
};

struct splitter {
    const char *name; /* as in tokenizer.ggml.pre */
    /* Moves cursor->at, which is before cursor->end, to the end of the piece that begins there. */
    void (*next)(struct splitter_cursor *cursor);
    bool composes;    /* text is brought to NFC first */
    bool whole_words; /* a piece that is a token stays one, merges or not (ignore_merges) */
    bool adds_bos;    /* when the model file does not say */
};

/* The row of a name; an unknown or empty name is STATUS_UNSUPPORTED and lists what there is. */
enum status splitter_find(struct view name, const struct splitter **splitter, struct error *error);

static inline struct splitter_cursor splitter_begin(const uint8_t *bytes, size_t length) {
    return (struct splitter_cursor){bytes, bytes + length, bytes, bytes};
}

#endif
