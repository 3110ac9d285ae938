/* Prompt lookup: what a sequence may say next, guessed from its own prompt and output. Documents
 * quote themselves and are quoted, so what followed the last few tokens before often follows them
 * again. Guesses become rows of the step that computes the last token, and the sampler decides
 * which of them were right: nothing here can change a token, only how many a step yields.
 *
 * Grams of 4 and of 2 tokens are indexed by hash, each with the place behind its latest occurrence.
 * Four places share a hash, the oldest gives way, and what is found is compared with the tokens
 * themselves: memory is fixed, and a guess costs a few probes, however long the text. How far to
 * guess follows from how long the agreement is and how the last guesses fared. */
#ifndef CORE_ENGINE_LOOKUP_H
#define CORE_ENGINE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOOKUP_GUESSES_MAX = 7, /* of a sequence in a step: 8 rows with the one that is known */
    /* Guesses are added to a step only up to this many rows in all. With two cores a row more costs
     * a sixth of a step of one row, and from 8 rows on nearly what a row saved is worth, but long
     * documents' keys are read once for all rows of a sequence: 8 sequences of 1,500 tokens that
     * quote decode 1.2 times as fast with 64 rows as with 16, 32 short ones still 1.08 times as
     * fast as without guesses. */
    LOOKUP_ROWS_MAX = 64,
};

struct lookup {
    struct lookup *next; /* for its owner: a list of those not in use */
    int32_t *places;     /* [place_count] by hash: the position behind a gram; 0: none */
    uint32_t place_count;
    int indexed; /* grams that end at or before this position are in the index */
    int match;   /* tokens before the place last found that agree with the end; 0: nothing found */
    int reach;   /* guesses it may make at once */
    int rest;    /* finds to leave unused after wrong guesses */
    int pause;   /* how long the next rest is */
};

/* Places of the index of a sequence of up to this many tokens: a power of two, bounded. */
size_t lookup_place_count(int token_count_max);

/* Rows by which a step with guesses may exceed those of `max_sequences` and a chunk: a step has
 * LOOKUP_ROWS_MAX rows in all or no guesses. */
int lookup_more_rows(int max_sequences);

/* Bytes of the indexes of so many sequences. */
uint64_t lookup_bytes(int max_sequences, int token_count_max);

/* For a new sequence. `places` must hold lookup_place_count(token_count_max) of them; only these
 * are touched. */
void lookup_open(struct lookup *lookup, int token_count_max);

/* Write up to `most` guesses behind tokens[0, count) and say how many. The same again until
 * lookup_learn is called. */
int lookup_guess(struct lookup *lookup, int32_t *tokens, int count, int most);

/* The step was computed: of `guessed` guesses the first `right` were right. To be called after
 * every lookup_guess that was computed, whatever it gave. */
void lookup_learn(struct lookup *lookup, int guessed, int right);

#endif
