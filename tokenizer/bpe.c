/* Two ways to one result. Few symbols: the best pair is found by looking at all of them, on the
 * stack. Many: a heap of candidate pairs over a linked list. Candidates that have gone stale are
 * recognised when they come up: symbols only ever grow, so a pair that begins at the same symbol
 * and covers the same number of bytes is the same pair. */
#include "tokenizer/bpe.h"

#include <stdlib.h>
#include <string.h>

struct bpe_candidate {
    uint64_t key;
    uint32_t left;   /* index of the left symbol */
    uint32_t length; /* bytes of both */
    int32_t id;
};

#define NO_SYMBOL UINT32_MAX
static const uint64_t no_rule = UINT64_MAX;

void bpe_deinit(struct bpe_work *work) {
    free(work->symbols);
    free(work->heap);
    free(work->next);
    free(work->previous);
    *work = (struct bpe_work){0};
}

bool bpe_reserve(struct bpe_work *work, size_t count) {
    work->count = 0;
    if (count <= work->capacity)
        return true;
    if (count >= NO_SYMBOL)
        return false;
    struct bpe_symbol *symbols = realloc(work->symbols, count * sizeof *symbols);
    if (!symbols)
        return false;
    work->symbols = symbols;
    work->capacity = count;
    return true;
}

static struct bpe_merge find_rule(const struct bpe_rules *rules, const struct bpe_symbol *left,
                                  const struct bpe_symbol *right) {
    struct bpe_merge merge = {no_rule, -1};
    if (left->id >= 0 && right->id >= 0 && rules->find(rules->context, left, right, &merge))
        return merge;
    return (struct bpe_merge){no_rule, -1};
}

static void run_by_scanning(struct bpe_work *work, const struct bpe_rules *rules) {
    struct bpe_merge merges[BPE_SCAN_MAX];
    struct bpe_symbol *symbols = work->symbols;
    size_t count = work->count;
    for (size_t i = 0; i + 1 < count; i++)
        merges[i] = find_rule(rules, &symbols[i], &symbols[i + 1]);
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (merges[i].key < merges[best].key)
                best = i;
        if (merges[best].key == no_rule)
            break;
        symbols[best].length += symbols[best + 1].length;
        symbols[best].id = merges[best].id;
        size_t behind = count - best - 2;
        memmove(&symbols[best + 1], &symbols[best + 2], behind * sizeof *symbols);
        memmove(&merges[best], &merges[best + 1], behind * sizeof *merges);
        count--;
        if (best > 0)
            merges[best - 1] = find_rule(rules, &symbols[best - 1], &symbols[best]);
        if (best + 1 < count)
            merges[best] = find_rule(rules, &symbols[best], &symbols[best + 1]);
    }
    work->count = count;
}

static bool comes_before(const struct bpe_candidate *a, const struct bpe_candidate *b) {
    return a->key != b->key ? a->key < b->key : a->left < b->left;
}

static void heap_push(struct bpe_work *work, struct bpe_candidate candidate) {
    size_t at = work->heap_count++;
    while (at > 0) {
        size_t parent = (at - 1) / 2;
        if (!comes_before(&candidate, &work->heap[parent]))
            break;
        work->heap[at] = work->heap[parent];
        at = parent;
    }
    work->heap[at] = candidate;
}

static struct bpe_candidate heap_pop(struct bpe_work *work) {
    struct bpe_candidate top = work->heap[0];
    struct bpe_candidate last = work->heap[--work->heap_count];
    size_t count = work->heap_count;
    size_t at = 0;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && comes_before(&work->heap[child + 1], &work->heap[child]))
            child++;
        if (!comes_before(&work->heap[child], &last))
            break;
        work->heap[at] = work->heap[child];
        at = child;
    }
    work->heap[at] = last;
    return top;
}

/* Each merge takes one candidate out and puts at most two in: never more than two a symbol. */
static bool reserve_heap(struct bpe_work *work) {
    size_t needed = 2 * work->count;
    if (needed > work->heap_capacity) {
        struct bpe_candidate *heap = realloc(work->heap, needed * sizeof *heap);
        if (!heap)
            return false;
        work->heap = heap;
        work->heap_capacity = needed;
    }
    if (work->count > work->link_capacity) {
        uint32_t *next = realloc(work->next, work->count * sizeof *next);
        if (next)
            work->next = next;
        uint32_t *previous = realloc(work->previous, work->count * sizeof *previous);
        if (previous)
            work->previous = previous;
        if (!next || !previous)
            return false;
        work->link_capacity = work->count;
    }
    work->heap_count = 0;
    return true;
}

static void consider(struct bpe_work *work, const struct bpe_rules *rules, uint32_t left) {
    uint32_t right = left == NO_SYMBOL ? NO_SYMBOL : work->next[left];
    if (right == NO_SYMBOL)
        return;
    const struct bpe_symbol *symbols = work->symbols;
    struct bpe_merge merge = find_rule(rules, &symbols[left], &symbols[right]);
    if (merge.key != no_rule)
        heap_push(work,
                  (struct bpe_candidate){merge.key, left,
                                         symbols[left].length + symbols[right].length, merge.id});
}

/* Close up the symbols that are left. */
static void compact(struct bpe_work *work) {
    size_t count = 0;
    for (uint32_t i = 0; i != NO_SYMBOL; i = work->next[i])
        work->symbols[count++] = work->symbols[i];
    work->count = count;
}

static bool run_with_heap(struct bpe_work *work, const struct bpe_rules *rules) {
    if (!reserve_heap(work))
        return false;
    struct bpe_symbol *symbols = work->symbols;
    uint32_t count = (uint32_t)work->count;
    for (uint32_t i = 0; i < count; i++) {
        work->previous[i] = i > 0 ? i - 1 : NO_SYMBOL;
        work->next[i] = i + 1 < count ? i + 1 : NO_SYMBOL;
    }
    for (uint32_t i = 0; i + 1 < count; i++)
        consider(work, rules, i);
    while (work->heap_count > 0) {
        struct bpe_candidate best = heap_pop(work);
        uint32_t right = work->next[best.left];
        if (symbols[best.left].length == 0 || right == NO_SYMBOL ||
            symbols[best.left].length + symbols[right].length != best.length)
            continue;
        symbols[best.left].length = best.length;
        symbols[best.left].id = best.id;
        symbols[right].length = 0;
        uint32_t after = work->next[right];
        work->next[best.left] = after;
        if (after != NO_SYMBOL)
            work->previous[after] = best.left;
        consider(work, rules, work->previous[best.left]);
        consider(work, rules, best.left);
    }
    compact(work);
    return true;
}

bool bpe_run(struct bpe_work *work, const struct bpe_rules *rules) {
    if (work->count > BPE_SCAN_MAX)
        return run_with_heap(work, rules);
    run_by_scanning(work, rules);
    return true;
}
