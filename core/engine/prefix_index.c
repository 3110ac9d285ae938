/* Open addressing with linear probing and backward-shift deletion (no tombstones): the table is at
 * most half full, so probes are short however many pages come and go. Slots hold entry numbers;
 * entries stay where they are, because page records and sequences name them. */
#include "core/engine/prefix_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { PAGE_BYTES = KV_PAGE_TOKENS * (int)sizeof(int32_t) };

enum status prefix_index_init(struct prefix_index *index, int64_t entry_count_max,
                              struct error *error) {
    *index = (struct prefix_index){.free_first = -1};
    if (entry_count_max < 1 || entry_count_max > (1 << 29))
        return error_set(error, STATUS_OVER_LIMIT, "a prefix index of %lld pages is out of range",
                         (long long)entry_count_max);
    uint32_t slot_count = 2;
    while (slot_count < 2 * (uint32_t)entry_count_max)
        slot_count *= 2;
    index->entries = calloc((size_t)entry_count_max, sizeof *index->entries);
    index->slots = calloc(slot_count, sizeof *index->slots);
    if (!index->entries || !index->slots) {
        prefix_index_deinit(index);
        return error_no_memory(error, "the prefix index");
    }
    index->slot_mask = slot_count - 1;
    index->entry_count_max = (int32_t)entry_count_max;
    return STATUS_OK;
}

void prefix_index_deinit(struct prefix_index *index) {
    free(index->entries);
    free(index->slots);
    *index = (struct prefix_index){.free_first = -1};
}

uint64_t prefix_index_hash(uint64_t parent, const int32_t *tokens) {
    return XXH3_64bits_withSeed(tokens, PAGE_BYTES, parent);
}

static uint32_t home_slot(const struct prefix_index *index, uint64_t hash) {
    return (uint32_t)(hash ^ hash >> 32) & index->slot_mask;
}

static bool entry_is(const struct prefix_entry *entry, uint64_t hash, uint64_t parent_serial,
                     const int32_t *tokens) {
    return entry->hash == hash && entry->parent_serial == parent_serial &&
           memcmp(entry->tokens, tokens, PAGE_BYTES) == 0;
}

int32_t prefix_index_find(const struct prefix_index *index, uint64_t hash, uint64_t parent_serial,
                          const int32_t *tokens) {
    uint32_t slot = home_slot(index, hash);
    for (; index->slots[slot]; slot = (slot + 1) & index->slot_mask) {
        int32_t entry = index->slots[slot] - 1;
        if (entry_is(&index->entries[entry], hash, parent_serial, tokens))
            return entry;
    }
    return -1;
}

static int32_t take_entry(struct prefix_index *index) {
    int32_t entry = index->free_first;
    if (entry >= 0) {
        index->free_first = index->entries[entry].next_free;
    } else {
        assert(index->fresh < index->entry_count_max);
        entry = index->fresh++;
    }
    index->entry_count++;
    return entry;
}

int32_t prefix_index_publish(struct prefix_index *index, uint64_t hash, uint64_t parent_serial,
                             const int32_t *tokens) {
    int32_t found = prefix_index_find(index, hash, parent_serial, tokens);
    if (found >= 0)
        return found;
    int32_t number = take_entry(index);
    struct prefix_entry *entry = &index->entries[number];
    entry->hash = hash;
    entry->serial = ++index->serial_last;
    entry->parent_serial = parent_serial;
    entry->page_count = 0;
    for (int group = 0; group < MODEL_KV_GROUPS_MAX; group++)
        entry->pages[group] = -1;
    memcpy(entry->tokens, tokens, PAGE_BYTES);
    uint32_t slot = home_slot(index, hash);
    while (index->slots[slot])
        slot = (slot + 1) & index->slot_mask;
    index->slots[slot] = number + 1;
    return number;
}

void prefix_index_attach(struct prefix_index *index, int32_t entry, int group, int32_t page) {
    assert(index->entries[entry].pages[group] < 0 && page >= 0);
    index->entries[entry].pages[group] = page;
    index->entries[entry].page_count++;
}

/* Close the gap at `hole`: pull back every later entry of the cluster that may stand there. */
static void shift_back(struct prefix_index *index, uint32_t hole) {
    uint32_t slot = hole;
    for (;;) {
        slot = (slot + 1) & index->slot_mask;
        if (!index->slots[slot])
            break;
        uint32_t home = home_slot(index, index->entries[index->slots[slot] - 1].hash);
        uint32_t distance_home = (slot - home) & index->slot_mask;
        uint32_t distance_hole = (slot - hole) & index->slot_mask;
        if (distance_home < distance_hole)
            continue;
        index->slots[hole] = index->slots[slot];
        hole = slot;
    }
    index->slots[hole] = 0;
}

static void remove_entry(struct prefix_index *index, int32_t number) {
    struct prefix_entry *entry = &index->entries[number];
    uint32_t slot = home_slot(index, entry->hash);
    while (index->slots[slot] != number + 1)
        slot = (slot + 1) & index->slot_mask;
    shift_back(index, slot);
    entry->serial = 0;
    entry->next_free = index->free_first;
    index->free_first = number;
    index->entry_count--;
}

void prefix_index_detach(struct prefix_index *index, int32_t entry, int group) {
    assert(index->entries[entry].serial && index->entries[entry].pages[group] >= 0);
    index->entries[entry].pages[group] = -1;
    if (--index->entries[entry].page_count == 0)
        remove_entry(index, entry);
}

const char *prefix_index_check(const struct prefix_index *index) {
    int32_t count = 0;
    for (uint32_t slot = 0; slot <= index->slot_mask; slot++) {
        if (!index->slots[slot])
            continue;
        int32_t number = index->slots[slot] - 1;
        const struct prefix_entry *entry = &index->entries[number];
        count++;
        if (number >= index->fresh || entry->serial == 0)
            return "a slot of the prefix index names a free entry";
        if (entry->serial > index->serial_last || entry->parent_serial >= entry->serial)
            return "an entry was published before its parent";
        if (entry->page_count < 1)
            return "an entry without pages is still in the index";
        if (prefix_index_find(index, entry->hash, entry->parent_serial, entry->tokens) != number)
            return "an entry of the prefix index cannot be found";
    }
    return count == index->entry_count ? NULL : "the count of index entries is wrong";
}
