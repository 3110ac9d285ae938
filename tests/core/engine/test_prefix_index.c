/* The prefix index: a match is the whole prefix, whatever the hashes do, and an entry lives as long
 * as one of its pages. */
#include <criterion/criterion.h>

#include "core/engine/prefix_index.h"

static struct prefix_index index_of(int64_t count) {
    struct prefix_index index;
    cr_assert_eq(prefix_index_init(&index, count, NULL), STATUS_OK);
    return index;
}

static void fill(int32_t *tokens, int32_t value) {
    for (int i = 0; i < KV_PAGE_TOKENS; i++)
        tokens[i] = value + i;
}

static int32_t add(struct prefix_index *index, uint64_t hash, uint64_t parent, int32_t value) {
    int32_t tokens[KV_PAGE_TOKENS];
    fill(tokens, value);
    int32_t entry = prefix_index_publish(index, hash, parent, tokens);
    if (index->entries[entry].pages[0] < 0)
        prefix_index_attach(index, entry, 0, value);
    return entry;
}

static int32_t find(const struct prefix_index *index, uint64_t hash, uint64_t parent,
                    int32_t value) {
    int32_t tokens[KV_PAGE_TOKENS];
    fill(tokens, value);
    return prefix_index_find(index, hash, parent, tokens);
}

Test(prefix_index, finds_what_was_published) {
    struct prefix_index index = index_of(4);
    int32_t entry = add(&index, 77, 0, 5);
    cr_assert_eq(find(&index, 77, 0, 5), entry);
    cr_assert_eq(find(&index, 78, 0, 5), -1);
    cr_assert_eq(add(&index, 77, 0, 5), entry);
    cr_assert_eq(index.entry_count, 1);
    cr_assert_null(prefix_index_check(&index));
    prefix_index_deinit(&index);
}

Test(prefix_index, believes_tokens_not_hashes) {
    struct prefix_index index = index_of(4);
    int32_t first = add(&index, 77, 0, 5);
    cr_assert_eq(find(&index, 77, 0, 6), -1);
    int32_t second = add(&index, 77, 0, 6);
    cr_assert_neq(first, second);
    cr_assert_eq(find(&index, 77, 0, 5), first);
    cr_assert_eq(find(&index, 77, 0, 6), second);
    cr_assert_null(prefix_index_check(&index));
    prefix_index_deinit(&index);
}

Test(prefix_index, believes_serials_not_places) {
    struct prefix_index index = index_of(4);
    int32_t parent = add(&index, 1, 0, 5);
    uint64_t serial = index.entries[parent].serial;
    int32_t child = add(&index, 2, serial, 6);
    cr_assert_eq(find(&index, 2, serial, 6), child);
    prefix_index_detach(&index, parent, 0);
    int32_t again = add(&index, 1, 0, 5);
    cr_assert_eq(again, parent, "the entry is reused");
    cr_assert_neq(index.entries[again].serial, serial);
    cr_assert_eq(find(&index, 2, index.entries[again].serial, 6), -1);
    prefix_index_deinit(&index);
}

Test(prefix_index, an_entry_lives_as_long_as_one_group_has_a_page) {
    struct prefix_index index = index_of(4);
    int32_t entry = add(&index, 9, 0, 1);
    prefix_index_attach(&index, entry, 1, 3);
    prefix_index_detach(&index, entry, 0);
    cr_assert_eq(find(&index, 9, 0, 1), entry);
    cr_assert_eq(index.entries[entry].pages[0], -1);
    prefix_index_detach(&index, entry, 1);
    cr_assert_eq(find(&index, 9, 0, 1), -1);
    cr_assert_eq(index.entry_count, 0);
    prefix_index_deinit(&index);
}

Test(prefix_index, chain_hash_depends_on_parent_and_every_token) {
    int32_t tokens[KV_PAGE_TOKENS];
    fill(tokens, 0);
    uint64_t hash = prefix_index_hash(0, tokens);
    cr_assert_neq(prefix_index_hash(1, tokens), hash);
    for (int i = 0; i < KV_PAGE_TOKENS; i++) {
        tokens[i] ^= 1;
        cr_assert_neq(prefix_index_hash(0, tokens), hash);
        tokens[i] ^= 1;
    }
    cr_assert_eq(prefix_index_hash(0, tokens), hash);
}

/* Clusters, wrap-around and deletion in any order, against a plain array. */
Test(prefix_index, survives_random_use_of_few_hashes) {
    enum { COUNT = 64, STEPS = 20000 };
    struct prefix_index index = index_of(COUNT);
    int32_t entries[COUNT];
    uint64_t state = 12345;
    memset(entries, -1, sizeof entries);
    for (int step = 0; step < STEPS; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int32_t i = (int32_t)(state >> 33) % COUNT;
        uint64_t hash = (uint64_t)(i % 7 + 120); /* homes near the table's end */
        cr_assert_eq(find(&index, hash, 0, i * 100), entries[i]);
        if (entries[i] < 0) {
            entries[i] = add(&index, hash, 0, i * 100);
        } else {
            prefix_index_detach(&index, entries[i], 0);
            entries[i] = -1;
        }
        if (step % 100 == 0)
            cr_assert_null(prefix_index_check(&index));
    }
    prefix_index_deinit(&index);
}

Test(prefix_index, check_names_what_is_broken) {
    struct prefix_index index = index_of(4);
    int32_t entry = add(&index, 9, 0, 1);
    index.entries[entry].hash ^= 1;
    cr_assert_str_eq(prefix_index_check(&index), "an entry of the prefix index cannot be found");
    index.entries[entry].hash ^= 1;
    index.entry_count = 2;
    cr_assert_str_eq(prefix_index_check(&index), "the count of index entries is wrong");
    prefix_index_deinit(&index);
}
