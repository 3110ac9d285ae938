/* The merges of byte-level BPE: from a pair of ids to its rank and the id of both together. */
#ifndef TOKENIZER_PAIR_TABLE_H
#define TOKENIZER_PAIR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "tokenizer/bpe.h"
#include "tokenizer/vocabulary.h"

struct pair_slot {
    uint64_t pair; /* left id << 32 | right id; UINT64_MAX: free */
    uint32_t rank;
    int32_t id;
};

struct pair_table {
    struct pair_slot *slots; /* power of two, linear probing */
    size_t mask;
    unsigned shift; /* of the hash, to its top bits */
};

/* Reads "left right" lines, best first. A line without a space between two tokens, or one that
 * names or makes something that is no ordinary token, is STATUS_CORRUPT. Of equal lines the last
 * counts. */
enum status pair_table_init(struct pair_table *table, const struct vocabulary *vocabulary,
                            const struct view *merges, size_t merge_count, struct error *error);
void pair_table_deinit(struct pair_table *table);

/* A bpe_rules function; context is the table. */
bool pair_table_find(const void *context, const struct bpe_symbol *left,
                     const struct bpe_symbol *right, struct bpe_merge *merge);

#endif
