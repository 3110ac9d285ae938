/* Open addressing with linear probing; the table doubles at two thirds. */
#include "core/job/finished_set.h"

#include <stdlib.h>

static const uint64_t FLAG_BITS = 7;

void finished_set_init(struct finished_set *set) {
    *set = (struct finished_set){0};
}

void finished_set_deinit(struct finished_set *set) {
    free(set->entries);
    *set = (struct finished_set){0};
}

/* Slot 0 means free, so hash 0 is stored as 1. */
static uint64_t stored_hash(uint64_t id_hash) {
    return id_hash ? id_hash : 1;
}

static struct finished_entry *probe(struct finished_entry *entries, size_t capacity,
                                    uint64_t id_hash) {
    size_t slot = (size_t)id_hash & (capacity - 1);
    while (entries[slot].id_hash != 0 && entries[slot].id_hash != id_hash)
        slot = (slot + 1) & (capacity - 1);
    return &entries[slot];
}

static bool grow(struct finished_set *set) {
    size_t capacity = set->capacity ? set->capacity * 2 : 1024;
    struct finished_entry *entries = calloc(capacity, sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < set->capacity; i++) {
        if (set->entries[i].id_hash != 0)
            *probe(entries, capacity, set->entries[i].id_hash) = set->entries[i];
    }
    free(set->entries);
    set->entries = entries;
    set->capacity = capacity;
    return true;
}

struct finished_entry *finished_set_get(struct finished_set *set, uint64_t id_hash) {
    if ((set->count + 1) * 3 > set->capacity * 2 && !grow(set))
        return NULL;
    struct finished_entry *entry = probe(set->entries, set->capacity, stored_hash(id_hash));
    if (entry->id_hash == 0) {
        entry->id_hash = stored_hash(id_hash);
        set->count++;
    }
    return entry;
}

struct finished_entry *finished_set_find(const struct finished_set *set, uint64_t id_hash) {
    if (set->count == 0)
        return NULL;
    struct finished_entry *entry = probe(set->entries, set->capacity, stored_hash(id_hash));
    return entry->id_hash != 0 ? entry : NULL;
}

uint64_t finished_set_state(uint64_t document_hash, unsigned flags) {
    return (document_hash & ~FLAG_BITS) | flags;
}

bool finished_set_matches(uint64_t state, uint64_t document_hash) {
    return ((state ^ document_hash) & ~FLAG_BITS) == 0;
}
