/* A sorted array instead of a tree: a match narrows the range of tokens that share the bytes read
 * so far, by binary search, a byte at a time. Most positions end at the first byte's empty range.
 */
#include "tokenizer/added_tokens.h"

#include <stdlib.h>
#include <string.h>

static int compare_tokens(const void *a, const void *b) {
    const struct added_token *left = a, *right = b;
    size_t shared = left->text.length < right->text.length ? left->text.length : right->text.length;
    int order = memcmp(left->text.bytes, right->text.bytes, shared);
    if (order != 0)
        return order;
    return (left->text.length > right->text.length) - (left->text.length < right->text.length);
}

static bool has_role(int32_t id, const int32_t *roles, size_t role_count) {
    for (size_t i = 0; i < role_count; i++)
        if (roles[i] == id)
            return true;
    return false;
}

static void index_first_bytes(struct added_tokens *added) {
    size_t at = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        added->first[byte] = (uint32_t)at;
        while (at < added->count && (unsigned char)added->tokens[at].text.bytes[0] == byte)
            at++;
    }
    added->first[256] = (uint32_t)at;
}

enum status added_tokens_init(struct added_tokens *added, const struct vocabulary *vocabulary,
                              const int32_t *roles, size_t role_count, struct error *error) {
    *added = (struct added_tokens){0};
    size_t count = 0;
    for (int32_t id = 0; id < vocabulary->count; id++)
        count += vocabulary_is_added(vocabulary, id);
    added->tokens = malloc((count + 1) * sizeof *added->tokens);
    if (!added->tokens)
        return error_no_memory(error, "the added tokens");
    for (int32_t id = 0; id < vocabulary->count; id++) {
        struct view text = vocabulary_bytes(vocabulary, id);
        if (!vocabulary_is_added(vocabulary, id) || text.length == 0)
            continue;
        bool needs_trust =
            vocabulary->classes[id] != TOKEN_USER_DEFINED || has_role(id, roles, role_count);
        added->tokens[added->count++] = (struct added_token){text, id, needs_trust};
    }
    qsort(added->tokens, added->count, sizeof *added->tokens, compare_tokens);
    for (size_t i = 1; i < added->count; i++) {
        struct view text = added->tokens[i].text;
        if (view_equal(added->tokens[i - 1].text, text))
            return error_set(error, STATUS_CORRUPT, "tokens %d and %d are both '%.*s'",
                             added->tokens[i - 1].id, added->tokens[i].id,
                             (int)(text.length < 64 ? text.length : 64), text.bytes);
    }
    index_first_bytes(added);
    return STATUS_OK;
}

void added_tokens_deinit(struct added_tokens *added) {
    free(added->tokens);
    *added = (struct added_tokens){0};
}

/* The first token of [low, high), which share their first `depth` bytes, whose byte at `depth` is
 * at least `byte`. A token that ends there sorts before all bytes. */
static size_t lower_bound(const struct added_tokens *added, size_t low, size_t high, size_t depth,
                          unsigned byte) {
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct view text = added->tokens[middle].text;
        if (text.length <= depth || (unsigned char)text.bytes[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct added_token *added_tokens_match(const struct added_tokens *added, const char *at,
                                             const char *end, const char *trusted_end) {
    unsigned byte = (unsigned char)*at;
    size_t low = added->first[byte], high = added->first[byte + 1];
    const struct added_token *best = NULL;
    for (size_t depth = 1; low < high; depth++) {
        const struct added_token *token = &added->tokens[low];
        if (token->text.length == depth) {
            if (!token->needs_trust || at + depth <= trusted_end)
                best = token;
            low++;
        }
        if (at + depth == end)
            break;
        byte = (unsigned char)at[depth];
        low = lower_bound(added, low, high, depth, byte);
        high = lower_bound(added, low, high, depth, byte + 1);
    }
    return best;
}

const struct added_token *added_tokens_find(const struct added_tokens *added, struct view text) {
    struct added_token wanted = {.text = text};
    return bsearch(&wanted, added->tokens, added->count, sizeof *added->tokens, compare_tokens);
}
