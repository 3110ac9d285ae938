/* Which full pages of prompts exist: an entry is one page-long step of a prefix (64 tokens after a
 * known parent), and names the page that holds it in each KV group. Found by a 64-bit chain hash,
 * believed only when the tokens and the parent's publish serial agree; serials never repeat, so by
 * induction a match is the whole prefix, whatever the hash does. Entries own no pages and keep none
 * alive: a page that is evicted is detached, and an entry without pages is gone.
 *
 * Pages hold the same bytes whoever computed them, so a group may take its page from any sequence.
 */
#ifndef CORE_ENGINE_PREFIX_INDEX_H
#define CORE_ENGINE_PREFIX_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/model/model.h"

struct prefix_entry {
    uint64_t hash;                      /* of the chain up to and including this page */
    uint64_t serial;                    /* when published; 0: the entry is free */
    uint64_t parent_serial;             /* 0: the first page of a prompt */
    int32_t pages[MODEL_KV_GROUPS_MAX]; /* -1: evicted or never there */
    int32_t page_count;                 /* groups that have a page */
    int32_t next_free;
    int32_t tokens[KV_PAGE_TOKENS];
};

struct prefix_index {
    struct prefix_entry *entries; /* [entry_count_max]; only the first `fresh` were ever touched */
    int32_t *slots;               /* [slot_mask + 1], entry + 1, 0: empty; linear probing */
    uint32_t slot_mask;
    int32_t entry_count_max;
    int32_t entry_count;
    int32_t fresh;
    int32_t free_first;
    uint64_t serial_last;
};

/* `entry_count_max`: the pages of all groups together; so there is always an entry for a page. */
enum status prefix_index_init(struct prefix_index *index, int64_t entry_count_max,
                              struct error *error);
void prefix_index_deinit(struct prefix_index *index);

/* The chain hash of a page: its KV_PAGE_TOKENS tokens after a prefix with hash `parent` (0: none).
 */
uint64_t prefix_index_hash(uint64_t parent, const int32_t *tokens);

/* The entry of this page, or -1. `parent_serial` is the serial of the entry before it, 0 for the
 * first. */
int32_t prefix_index_find(const struct prefix_index *index, uint64_t hash, uint64_t parent_serial,
                          const int32_t *tokens);

/* As find; a new entry without pages when there is none. The caller attaches a page at once. */
int32_t prefix_index_publish(struct prefix_index *index, uint64_t hash, uint64_t parent_serial,
                             const int32_t *tokens);

void prefix_index_attach(struct prefix_index *index, int32_t entry, int group, int32_t page);

/* The group's page was evicted. */
void prefix_index_detach(struct prefix_index *index, int32_t entry, int group);

/* NULL when all invariants hold, else the one that is broken. */
const char *prefix_index_check(const struct prefix_index *index);

#endif
