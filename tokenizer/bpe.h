/* Byte-pair merging: symbols side by side, and again and again the pair of the best rule (ties: the
 * leftmost) becomes one symbol. Which pairs have rules is the caller's (a table of merges, or
 * scores). */
#ifndef TOKENIZER_BPE_H
#define TOKENIZER_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpe_symbol {
    uint32_t start;  /* byte offset in the text being merged */
    uint32_t length; /* bytes */
    int32_t id;      /* -1: no token; takes part in no merge */
};

struct bpe_merge {
    uint64_t key; /* smaller is merged sooner */
    int32_t id;   /* of the merged token */
};

struct bpe_rules {
    const void *context;
    /* The rule for two neighbours, both with ids ≥ 0; false when there is none. */
    bool (*find)(const void *context, const struct bpe_symbol *left, const struct bpe_symbol *right,
                 struct bpe_merge *merge);
};

struct bpe_candidate;

/* Memory of one thread's merging, reused. Zero-initialised is empty. */
struct bpe_work {
    struct bpe_symbol *symbols;
    size_t count;
    size_t capacity;
    struct bpe_candidate *heap;
    size_t heap_count;
    size_t heap_capacity;
    uint32_t *next; /* heap path: links between live symbols, both ways */
    uint32_t *previous;
    size_t link_capacity;
};

void bpe_deinit(struct bpe_work *work);

/* Room for `count` symbols; clears. The caller then fills symbols[] and count. false: out of
 * memory. */
bool bpe_reserve(struct bpe_work *work, size_t count);

/* Merge symbols[0..count) to the end. Up to BPE_SCAN_MAX symbols by scanning, more with a heap:
 * O(n log n). The result is the same. false: out of memory. */
bool bpe_run(struct bpe_work *work, const struct bpe_rules *rules);

enum { BPE_SCAN_MAX = 24 };

#endif
