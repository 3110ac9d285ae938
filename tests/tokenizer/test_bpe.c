/* Merging: the best rule first, ties leftmost, and the heap gives what the scan gives. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/failing_malloc.h"
#include "tokenizer/bpe.h"

/* Ids are their own merges: a pair has a rule by arithmetic, so there are many and they interact.
 */
static bool find_rule(const void *context, const struct bpe_symbol *left,
                      const struct bpe_symbol *right, struct bpe_merge *merge) {
    const uint32_t *salt = context;
    uint32_t mixed = ((uint32_t)left->id * 2654435761u) ^ ((uint32_t)right->id * 40503u) ^ *salt;
    mixed ^= mixed >> 13;
    if (mixed % 3 == 0)
        return false;
    *merge = (struct bpe_merge){mixed % 17, (int32_t)(mixed % 50)};
    return true;
}

/* By definition: all pairs looked at anew for each merge. */
static size_t merge_slowly(struct bpe_symbol *symbols, size_t count, const uint32_t *salt) {
    for (;;) {
        size_t best = count;
        struct bpe_merge best_merge = {UINT64_MAX, -1}, merge;
        for (size_t i = 0; i + 1 < count; i++)
            if (symbols[i].id >= 0 && symbols[i + 1].id >= 0 &&
                find_rule(salt, &symbols[i], &symbols[i + 1], &merge) &&
                merge.key < best_merge.key) {
                best = i;
                best_merge = merge;
            }
        if (best == count)
            return count;
        symbols[best].id = best_merge.id;
        symbols[best].length += symbols[best + 1].length;
        count--;
        memmove(&symbols[best + 1], &symbols[best + 2], (count - best - 1) * sizeof *symbols);
    }
}

static void fill(struct bpe_symbol *symbols, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        int32_t id = seed >> 28 == 0 ? -1 : (int32_t)(seed >> 24) % 5;
        symbols[i] = (struct bpe_symbol){(uint32_t)i, 1, id};
    }
}

Test(bpe, scan_and_heap_give_the_definition) {
    struct bpe_work work = {0};
    static struct bpe_symbol expected[300];
    for (uint32_t round = 0; round < 600; round++) {
        size_t count = round % 300;
        cr_assert(bpe_reserve(&work, count));
        fill(work.symbols, count, round);
        fill(expected, count, round);
        work.count = count;
        struct bpe_rules rules = {&round, find_rule};
        cr_assert(bpe_run(&work, &rules));
        cr_assert_eq(work.count, merge_slowly(expected, count, &round));
        for (size_t i = 0; i < work.count; i++) {
            cr_assert_eq(work.symbols[i].id, expected[i].id);
            cr_assert_eq(work.symbols[i].start, expected[i].start);
            cr_assert_eq(work.symbols[i].length, expected[i].length);
        }
    }
    bpe_deinit(&work);
}

Test(bpe, no_memory_is_said) {
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct bpe_work work = {0};
        uint32_t salt = 7;
        struct bpe_rules rules = {&salt, find_rule};
        failing_malloc_arm(n);
        bool done = bpe_reserve(&work, 200);
        if (done) {
            fill(work.symbols, 200, 3);
            work.count = 200;
            done = bpe_run(&work, &rules);
        }
        failed = failing_malloc_disarm();
        cr_assert_neq(done, failed);
        bpe_deinit(&work);
    }
}
