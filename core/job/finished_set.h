/* Which ids are finished, or were seen in this run: 16 bytes an id at 2/3 load, whatever the pile's
 * size. Ids are known by their 64-bit hash. */
#ifndef CORE_JOB_FINISHED_SET_H
#define CORE_JOB_FINISHED_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum finished_flags {
    FINISHED_ROW = 1,   /* an earlier run wrote a row */
    FINISHED_ERROR = 2, /* that row is an error */
    FINISHED_SEEN = 4,  /* this run met the id */
};

struct finished_entry {
    uint64_t id_hash; /* 0: free slot */
    uint64_t state;   /* document hash with its low 3 bits replaced by enum finished_flags */
};

struct finished_set {
    struct finished_entry *entries;
    size_t count;
    size_t capacity; /* power of two */
};

void finished_set_init(struct finished_set *set);
void finished_set_deinit(struct finished_set *set);

/* The entry of an id, made (state 0) when it is new. NULL: out of memory. Valid until the next
 * call. */
struct finished_entry *finished_set_get(struct finished_set *set, uint64_t id_hash);

/* The entry of an id or NULL. */
struct finished_entry *finished_set_find(const struct finished_set *set, uint64_t id_hash);

uint64_t finished_set_state(uint64_t document_hash, unsigned flags);
/* Whether a state belongs to a document hash. */
bool finished_set_matches(uint64_t state, uint64_t document_hash);

#endif
