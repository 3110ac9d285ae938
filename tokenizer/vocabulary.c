/* Built in one pass over the stored tokens, with four allocations whatever the count: a vocabulary
 * of 150,000 has to be there in milliseconds. Stored forms are turned into output bytes here, once:
 * byte-level tokens out of their alphabet, pieces with U+2581 for a space into pieces with a space.
 */
#include "tokenizer/vocabulary.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tokenizer/byte_level.h"

enum { TOKEN_COUNT_MAX = 1 << 24, TOKEN_BYTES_MAX = 1 << 16 };

static const char space_mark[] = "\xE2\x96\x81"; /* U+2581, SentencePiece's space */

/* "[PAD7]" of id 7: rows that a converter put in to fill the embedding up; never text. */
static bool is_filler(struct view stored, int32_t id) {
    if (stored.length < 6 || memcmp(stored.bytes, "[PAD", 4) != 0 ||
        stored.bytes[stored.length - 1] != ']')
        return false;
    int64_t number = 0;
    for (size_t i = 4; i + 1 < stored.length; i++) {
        if (stored.bytes[i] < '0' || stored.bytes[i] > '9' || number > TOKEN_COUNT_MAX)
            return false;
        number = number * 10 + (stored.bytes[i] - '0');
    }
    return number == id;
}

/* The byte of "<0x2A>", or -1. */
static int parse_byte_token(struct view stored) {
    if (stored.length != 6 || memcmp(stored.bytes, "<0x", 3) != 0 || stored.bytes[5] != '>')
        return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        char digit = stored.bytes[i];
        if (digit >= '0' && digit <= '9')
            value = value * 16 + (digit - '0');
        else if (digit >= 'A' && digit <= 'F')
            value = value * 16 + (digit - 'A' + 10);
        else if (digit >= 'a' && digit <= 'f')
            value = value * 16 + (digit - 'a' + 10);
        else
            return -1;
    }
    return value;
}

/* Copy with every U+2581 as a space; returns the length. */
static size_t decode_piece(struct view stored, char *out) {
    size_t count = 0;
    for (size_t i = 0; i < stored.length;) {
        if (stored.length - i >= 3 && memcmp(stored.bytes + i, space_mark, 3) == 0) {
            out[count++] = ' ';
            i += 3;
        } else {
            out[count++] = stored.bytes[i++];
        }
    }
    return count;
}

static enum status allocate(struct vocabulary *vocabulary, const struct tokenizer_source *source,
                            struct error *error) {
    if (source->token_count <= 0 || source->token_count > TOKEN_COUNT_MAX)
        return error_set(error, STATUS_CORRUPT, "the vocabulary has %d tokens",
                         source->token_count);
    size_t count = (size_t)source->token_count;
    uint64_t stored_bytes = 1;
    for (size_t i = 0; i < count; i++) {
        if (source->tokens[i].length > TOKEN_BYTES_MAX)
            return error_set(error, STATUS_CORRUPT, "token %zu has %zu bytes, more than %d", i,
                             source->tokens[i].length, TOKEN_BYTES_MAX);
        stored_bytes += source->tokens[i].length;
    }
    if (stored_bytes > UINT32_MAX)
        return error_set(error, STATUS_CORRUPT, "the vocabulary's tokens have over 4 GiB");
    size_t slot_count = 64;
    while (slot_count < 2 * count)
        slot_count *= 2;
    vocabulary->count = source->token_count;
    vocabulary->classes = malloc(count);
    vocabulary->offsets = malloc((count + 1) * sizeof *vocabulary->offsets);
    vocabulary->bytes = malloc((size_t)stored_bytes);
    vocabulary->slots = malloc(slot_count * sizeof *vocabulary->slots);
    vocabulary->slot_mask = slot_count - 1;
    if (!vocabulary->classes || !vocabulary->offsets || !vocabulary->bytes || !vocabulary->slots)
        return error_no_memory(error, "the vocabulary");
    memset(vocabulary->slots, 0xFF, slot_count * sizeof *vocabulary->slots);
    memset(vocabulary->byte_ids, 0xFF, sizeof vocabulary->byte_ids);
    return STATUS_OK;
}

static uint32_t hash_bytes(const char *bytes, size_t length) {
    return (uint32_t)XXH3_64bits(bytes, length);
}

/* The slot of these bytes: its id is -1 when they are not there yet. */
static size_t find_slot(const struct vocabulary *vocabulary, uint32_t hash, const char *bytes,
                        size_t length) {
    size_t at = hash & vocabulary->slot_mask;
    for (;; at = (at + 1) & vocabulary->slot_mask) {
        const struct vocabulary_slot *slot = &vocabulary->slots[at];
        if (slot->id < 0)
            return at;
        if (slot->hash != hash)
            continue;
        struct view there = vocabulary_bytes(vocabulary, slot->id);
        if (there.length == length && memcmp(there.bytes, bytes, length) == 0)
            return at;
    }
}

int32_t vocabulary_find(const struct vocabulary *vocabulary, const char *bytes, size_t length) {
    size_t slot = find_slot(vocabulary, hash_bytes(bytes, length), bytes, length);
    return vocabulary->slots[slot].id;
}

static enum status insert(struct vocabulary *vocabulary, int32_t id, struct view stored,
                          struct error *error) {
    struct view bytes = vocabulary_bytes(vocabulary, id);
    if (bytes.length == 0)
        return STATUS_OK; /* an empty token cannot come out of any text */
    uint32_t hash = hash_bytes(bytes.bytes, bytes.length);
    size_t at = find_slot(vocabulary, hash, bytes.bytes, bytes.length);
    if (vocabulary->slots[at].id >= 0)
        return error_set(error, STATUS_CORRUPT, "tokens %d and %d are both '%.*s'",
                         vocabulary->slots[at].id, id,
                         (int)(stored.length < 64 ? stored.length : 64), stored.bytes);
    vocabulary->slots[at] = (struct vocabulary_slot){hash, id};
    return STATUS_OK;
}

static bool is_blank(struct view bytes) {
    for (size_t i = 0; i < bytes.length; i++)
        if (bytes.bytes[i] != ' ')
            return false;
    return bytes.length > 0;
}

static enum status read_class(const struct tokenizer_source *source, int32_t id, uint8_t *class,
                              struct error *error) {
    *class = source->classes ? source->classes[id] : TOKEN_NORMAL;
    if (*class < TOKEN_NORMAL || *class > TOKEN_BYTE)
        return error_set(error, STATUS_CORRUPT, "token %d has class %d, which is none", id, *class);
    if (*class != TOKEN_NORMAL && *class != TOKEN_BYTE && is_filler(source->tokens[id], id))
        *class = TOKEN_UNUSED;
    return STATUS_OK;
}

static enum status read_byte_token(struct vocabulary *vocabulary, int32_t id, struct view stored,
                                   struct error *error) {
    int byte = parse_byte_token(stored);
    if (byte < 0)
        return error_set(error, STATUS_CORRUPT, "byte token %d is '%.*s', not '<0x00>' to '<0xFF>'",
                         id, (int)(stored.length < 64 ? stored.length : 64), stored.bytes);
    if (vocabulary->byte_ids[byte] >= 0)
        return error_set(error, STATUS_CORRUPT, "tokens %d and %d are both '<0x%02X>'",
                         vocabulary->byte_ids[byte], id, (unsigned)byte);
    vocabulary->byte_ids[byte] = id;
    vocabulary->bytes[vocabulary->offsets[id]] = (char)byte;
    vocabulary->offsets[id + 1] = vocabulary->offsets[id] + 1;
    return STATUS_OK;
}

/* Byte-level: only ordinary tokens are spelled in the alphabet. One that is not cannot come out of
 * merging and is out of use. Returns the length of `out`. */
static size_t decode_byte_level(const struct byte_level *alphabet, struct view stored,
                                uint8_t *class, char *out) {
    size_t length;
    if (*class == TOKEN_NORMAL) {
        if (byte_level_decode(alphabet, stored, out, &length))
            return length;
        *class = TOKEN_UNUSED;
    }
    if (stored.length > 0)
        memcpy(out, stored.bytes, stored.length);
    return stored.length;
}

static enum status read_token(struct vocabulary *vocabulary, const struct tokenizer_source *source,
                              const struct byte_level *alphabet, int32_t id, struct error *error) {
    struct view stored = source->tokens[id];
    uint8_t *class = &vocabulary->classes[id];
    TRY(read_class(source, id, class, error));
    char *out = vocabulary->bytes + vocabulary->offsets[id];
    size_t length;
    if (source->model == TOKENIZER_BYTE_BPE) {
        length = decode_byte_level(alphabet, stored, class, out);
    } else if (*class == TOKEN_BYTE) {
        return read_byte_token(vocabulary, id, stored, error);
    } else {
        length = decode_piece(stored, out);
        if (*class == TOKEN_USER_DEFINED && is_blank((struct view){out, length}))
            *class = TOKEN_NORMAL;
    }
    vocabulary->offsets[id + 1] = vocabulary->offsets[id] + (uint32_t)length;
    return *class == TOKEN_NORMAL ? insert(vocabulary, id, stored, error) : STATUS_OK;
}

enum status vocabulary_init(struct vocabulary *vocabulary, const struct tokenizer_source *source,
                            struct error *error) {
    *vocabulary = (struct vocabulary){0};
    TRY(allocate(vocabulary, source, error));
    struct byte_level alphabet;
    byte_level_init(&alphabet);
    vocabulary->offsets[0] = 0;
    for (int32_t id = 0; id < vocabulary->count; id++)
        TRY(read_token(vocabulary, source, &alphabet, id, error));
    if (source->model != TOKENIZER_BYTE_BPE)
        return STATUS_OK;
    for (int byte = 0; byte < 256; byte++) {
        char single = (char)byte;
        vocabulary->byte_ids[byte] = vocabulary_find(vocabulary, &single, 1);
    }
    return STATUS_OK;
}

void vocabulary_deinit(struct vocabulary *vocabulary) {
    free(vocabulary->classes);
    free(vocabulary->offsets);
    free(vocabulary->bytes);
    free(vocabulary->slots);
    *vocabulary = (struct vocabulary){0};
}

uint64_t vocabulary_identity(const struct vocabulary *vocabulary) {
    uint32_t count = (uint32_t)vocabulary->count;
    uint64_t bytes = XXH3_64bits(vocabulary->bytes, vocabulary->offsets[count]);
    uint64_t offsets =
        XXH3_64bits_withSeed(vocabulary->offsets, (count + 1) * sizeof *vocabulary->offsets, bytes);
    return XXH3_64bits_withSeed(vocabulary->classes, count, offsets);
}
