/* Two-way sets: a new word takes the first place of its set and pushes the one there to the second.
 */
#include "tokenizer/word_cache.h"

#include <stdlib.h>
#include <string.h>

enum { SET_BITS = 13, WAYS = 2, ENTRY_COUNT = WAYS << SET_BITS }; /* 1 MiB: fits a level-2 cache */

bool word_cache_prepare(struct word_cache *cache, uint64_t identity) {
    size_t bytes = ENTRY_COUNT * sizeof *cache->entries;
    if (cache->entries && cache->identity == identity)
        return true;
    if (!cache->entries)
        cache->entries = aligned_alloc(sizeof *cache->entries, bytes);
    if (!cache->entries)
        return false;
    memset(cache->entries, 0, bytes);
    cache->identity = identity;
    return true;
}

void word_cache_deinit(struct word_cache *cache) {
    free(cache->entries);
    *cache = (struct word_cache){0};
}

void word_cache_key(struct word_key *key, const uint8_t *bytes, size_t length) {
    memset(key, 0, sizeof *key);
    memcpy(key->bytes, bytes, length);
    key->bytes[WORD_CACHE_BYTES_MAX] = (uint8_t)length;
}

static struct word_entry *set_of(const struct word_cache *cache, const struct word_key *key) {
    uint64_t hash = key->parts[0] * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 32 ^ key->parts[1]) * 0xC2B2AE3D27D4EB4Fu;
    hash = (hash ^ hash >> 29 ^ key->parts[2]) * 0x165667B19E3779F9u;
    hash = (hash ^ hash >> 32 ^ key->parts[3]) * 0x9E3779B97F4A7C15u;
    return &cache->entries[(hash >> (64 - SET_BITS)) * WAYS];
}

static bool is_equal(const struct word_key *a, const struct word_key *b) {
    return ((a->parts[0] ^ b->parts[0]) | (a->parts[1] ^ b->parts[1]) |
            (a->parts[2] ^ b->parts[2]) | (a->parts[3] ^ b->parts[3])) == 0;
}

const struct word_entry *word_cache_find(const struct word_cache *cache,
                                         const struct word_key *key) {
    const struct word_entry *set = set_of(cache, key);
    for (int way = 0; way < WAYS; way++)
        if (is_equal(&set[way].key, key))
            return &set[way];
    return NULL;
}

void word_cache_put(struct word_cache *cache, const struct word_key *key, const int32_t *ids,
                    size_t count) {
    struct word_entry *set = set_of(cache, key);
    set[1] = set[0];
    set[0].key = *key;
    set[0].count = (int32_t)count;
    memcpy(set[0].ids, ids, count * sizeof *ids);
}
