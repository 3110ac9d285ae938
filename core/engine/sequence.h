/* A document being computed: its tokens, how far it is, the pages it holds in each KV group, and
 * what it still has reserved. One allocation at submit holds all of it, so that steps allocate
 * nothing. Owned by the scheduler from submit to release; the engine hands out pointers as opaque
 * handles.
 *
 * Positions [0, computed) have their keys and values in pages. A sequence whose prompt is computed
 * has exactly one token more than it has positions: the one sampled last, which its next step
 * computes, with guesses of what follows it (lookup.h) when they are wanted. */
#ifndef CORE_ENGINE_SEQUENCE_H
#define CORE_ENGINE_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/engine/engine.h"
#include "core/engine/lookup.h"

enum sequence_state {
    SEQUENCE_WAITING, /* holds and reserves nothing */
    SEQUENCE_RUNNING, /* holds pages; everything it may still need is reserved */
    SEQUENCE_OVER,    /* holds nothing any more; the handle lives until released */
};

struct sequence_pages {
    int32_t *table;   /* [page_count_max], by position / KV_PAGE_TOKENS; -1 outside [first, end) */
    int first, end;   /* the pages held */
    int64_t reserved; /* global group: pages it may still take; window group: most it ever holds */
};

struct sequence {
    struct sequence *previous, *next; /* in the list of its state (waiting, over) */
    enum sequence_state state;
    int64_t order; /* of submission: the order of admission and of prefill */

    int32_t *tokens; /* [prompt_count + max_tokens]: prompt, output, guesses of a planned step */
    int prompt_count;
    int max_tokens;
    int output_count;
    int computed;
    int written; /* positions [computed, written) are of guesses that were wrong, or of a step that
                    is planned: pages may hold something there */

    struct lookup *lookup; /* while it decodes and guesses, else NULL */
    bool guesses_no_more;

    int page_count_max; /* pages of a group that holds every position */
    struct sequence_pages groups[MODEL_KV_GROUPS_MAX];

    uint64_t *hashes; /* [full_count]: chain hashes of the prompt's full pages */
    int full_count;
    int published;           /* pages of the prompt found or left in the index */
    int32_t publish_entry;   /* index entry of page published - 1: the parent of the next */
    uint64_t publish_serial; /* that entry's serial when it was published */

    struct sampling sampling;
    uint64_t key;
    void *user;
    struct sequence_stats stats;
};

/* Waiting, with the request's tokens copied and its page hashes computed. */
enum status sequence_create(const struct engine_request *request, int group_count,
                            struct sequence **sequence, struct error *error);
void sequence_destroy(struct sequence *sequence);

/* Prompt tokens not computed yet; 0: decoding. */
int sequence_prefill_left(const struct sequence *sequence);

/* Pages a prefix hit may give at most: at least one prompt token is always computed. */
int sequence_hit_max(const struct sequence *sequence);

/* The first page a group with this window needs once `computed` positions are done (0: global). */
int sequence_window_first(int computed, int window);

/* The most pages that a window of `window` positions ever needs at once, in steps of at most
 * `chunk` rows. */
int64_t sequence_window_span(int window, int chunk);

/* As sequence_window_span, for this sequence: never more than all of its pages. */
int sequence_window_pages(const struct sequence *sequence, int window, int chunk);

#endif
