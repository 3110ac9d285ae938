/* Ranks come from the order of the merge list, never from ids: the two differ in real vocabularies.
 */
#include "tokenizer/pair_table.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/byte_level.h"

enum { MERGE_BYTES_MAX = 4096, MERGE_COUNT_MAX = 1 << 26 };
static const uint64_t free_pair = UINT64_MAX;

static uint64_t pair_of(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static size_t first_slot(const struct pair_table *table, uint64_t pair) {
    return (size_t)((pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> table->shift);
}

static struct pair_slot *find_slot(const struct pair_table *table, uint64_t pair) {
    size_t at = first_slot(table, pair);
    while (table->slots[at].pair != pair && table->slots[at].pair != free_pair)
        at = (at + 1) & table->mask;
    return &table->slots[at];
}

bool pair_table_find(const void *context, const struct bpe_symbol *left,
                     const struct bpe_symbol *right, struct bpe_merge *merge) {
    const struct pair_table *table = context;
    const struct pair_slot *slot = find_slot(table, pair_of(left->id, right->id));
    if (slot->pair == free_pair)
        return false;
    *merge = (struct bpe_merge){slot->rank, slot->id};
    return true;
}

static enum status bad_merge(struct error *error, size_t rank, struct view line, const char *why) {
    return error_set(error, STATUS_CORRUPT, "merge %zu, '%.*s', %s", rank,
                     (int)(line.length < 64 ? line.length : 64), line.bytes, why);
}

/* What merges make mostly has ids in their order: look at the next one before searching. */
static int32_t find_made(const struct vocabulary *vocabulary, struct view made, int32_t guess) {
    if (guess < vocabulary->count && vocabulary->classes[guess] == TOKEN_NORMAL &&
        view_equal(vocabulary_bytes(vocabulary, guess), made))
        return guess;
    return vocabulary_find(vocabulary, made.bytes, made.length);
}

struct merge_reader {
    struct pair_table *table;
    const struct vocabulary *vocabulary;
    struct byte_level alphabet;
    int32_t made; /* by the merge before */
};

static enum status read_merge(struct merge_reader *reader, struct view line, size_t rank,
                              struct error *error) {
    const struct byte_level *alphabet = &reader->alphabet;
    const struct vocabulary *vocabulary = reader->vocabulary;
    const char *space = line.length > 2 ? memchr(line.bytes + 1, ' ', line.length - 1) : NULL;
    if (!space || space + 1 == line.bytes + line.length || line.length > MERGE_BYTES_MAX)
        return bad_merge(error, rank, line, "is not two tokens with a space between them");
    struct view left = {line.bytes, (size_t)(space - line.bytes)};
    struct view right = {space + 1, line.length - left.length - 1};
    char both[MERGE_BYTES_MAX];
    size_t left_length, right_length;
    if (!byte_level_decode(alphabet, left, both, &left_length) ||
        !byte_level_decode(alphabet, right, both + left_length, &right_length))
        return bad_merge(error, rank, line, "is not in the byte-level alphabet");
    int32_t left_id = vocabulary_find(vocabulary, both, left_length);
    int32_t right_id = vocabulary_find(vocabulary, both + left_length, right_length);
    int32_t id =
        find_made(vocabulary, (struct view){both, left_length + right_length}, reader->made + 1);
    if (left_id < 0 || right_id < 0)
        return bad_merge(error, rank, line, "names a token that the vocabulary has not");
    if (id < 0)
        return bad_merge(error, rank, line, "makes a token that the vocabulary has not");
    reader->made = id;
    uint64_t pair = pair_of(left_id, right_id);
    *find_slot(reader->table, pair) = (struct pair_slot){pair, (uint32_t)rank, id};
    return STATUS_OK;
}

enum status pair_table_init(struct pair_table *table, const struct vocabulary *vocabulary,
                            const struct view *merges, size_t merge_count, struct error *error) {
    *table = (struct pair_table){0};
    if (merge_count > MERGE_COUNT_MAX)
        return error_set(error, STATUS_CORRUPT, "the vocabulary has %zu merges", merge_count);
    unsigned bits = 6;
    while (((size_t)1 << bits) * 5 < merge_count * 8)
        bits++;
    size_t count = (size_t)1 << bits;
    table->slots = malloc(count * sizeof *table->slots);
    if (!table->slots)
        return error_no_memory(error, "the merges");
    memset(table->slots, 0xFF, count * sizeof *table->slots);
    table->mask = count - 1;
    table->shift = 64 - bits;
    struct merge_reader reader = {.table = table, .vocabulary = vocabulary, .made = -1};
    byte_level_init(&reader.alphabet);
    for (size_t rank = 0; rank < merge_count; rank++)
        TRY(read_merge(&reader, merges[rank], rank, error));
    return STATUS_OK;
}

void pair_table_deinit(struct pair_table *table) {
    free(table->slots);
    *table = (struct pair_table){0};
}
