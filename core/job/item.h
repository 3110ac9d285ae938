/* One request on its way through the job: a document (or one question over it), its tokens, its
 * output, and at the end its row. Owned by one stage at a time and passed on through bounded
 * queues. */
#ifndef CORE_JOB_ITEM_H
#define CORE_JOB_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/engine/engine.h"
#include "core/job/document.h"
#include "core/job/document_hash.h"
#include "core/job/length.h"
#include "core/job/row.h"
#include "core/job/settings.h"
#include "tokenizer/tokenizer.h"

struct item {
    struct item *next;        /* in a queue */
    struct document document; /* its text is gone once it is tokenized */
    struct settings settings; /* the run's, with the document's own options applied */
    struct arena arena;       /* texts of those options */
    uint64_t id_hash;
    uint64_t document_hash; /* options and rendered prompt */
    bool replaces_row;      /* an earlier run computed the id, from another text */
    uint64_t row_hash;      /* what the fingerprint says: with the code of an early error */
    const char *own_prompt; /* brought by the document; in its arena or the document */

    int32_t *tokens; /* owned until submitted */
    int token_count;
    struct length_outcome length;
    int64_t tokenize_ns;
    int64_t tokenized_ns; /* clock when it was ready to be queued */

    struct sequence *sequence; /* the engine's; NULL when not submitted or released */
    struct decode_stream stream;
    struct text output;
    int completion_tokens;
    int unused_tokens; /* computed in the last step, behind the end of the output */
    const char *finish_reason;
    const char *stop_string;
    struct sequence_stats stats;
    int64_t finished_ns; /* clock when it was handed to the writer */

    const char *error_code; /* NULL: fine */
    char *error_message;    /* owned */
};

struct item *item_create(void); /* NULL: out of memory */
void item_destroy(struct item *item);

/* About what it takes in memory; the same from when it is queued until it is taken. */
size_t item_bytes(const struct item *item);

/* Make it an error row. A message that cannot be copied for want of memory becomes a fixed one. */
void item_fail(struct item *item, const char *code, const char *message);

/* The row's fields; `row` borrows from the item. */
void item_fill_row(const struct item *item, struct row *row);

#endif
