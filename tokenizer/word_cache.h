/* What merging made of short words lately, one cache a thread: text repeats its words. An entry is
 * one cache line, holds exactly what the merges yielded, and is found by all bytes of the word, so
 * a hit and a miss give the same ids. The size is fixed; old words are overwritten. */
#ifndef TOKENIZER_WORD_CACHE_H
#define TOKENIZER_WORD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORD_CACHE_BYTES_MAX = 31, WORD_CACHE_IDS_MAX = 7 };

struct word_key {
    union {
        uint8_t bytes[WORD_CACHE_BYTES_MAX + 1]; /* the word, zeros, its length last */
        uint64_t parts[4];
    };
};

struct word_entry {
    struct word_key key; /* length 0: empty */
    int32_t ids[WORD_CACHE_IDS_MAX];
    int32_t count;
};

struct word_cache {
    struct word_entry *entries; /* NULL until the first use */
    uint64_t identity;          /* of the tokenizer the entries are of */
};

/* Make the cache one of `identity`, emptying it when it was another's. false: out of memory. */
bool word_cache_prepare(struct word_cache *cache, uint64_t identity);
void word_cache_deinit(struct word_cache *cache);

/* The key of a word of 1..WORD_CACHE_BYTES_MAX bytes. */
void word_cache_key(struct word_key *key, const uint8_t *bytes, size_t length);

/* The entry of `key`, or NULL. */
const struct word_entry *word_cache_find(const struct word_cache *cache,
                                         const struct word_key *key);

/* Remember up to WORD_CACHE_IDS_MAX ids. */
void word_cache_put(struct word_cache *cache, const struct word_key *key, const int32_t *ids,
                    size_t count);

#endif
