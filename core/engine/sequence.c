/* Layout of a sequence's one allocation: the struct, then the 8-byte hashes, then the 4-byte tokens
 * and page tables. */
#include "core/engine/sequence.h"

#include <stdlib.h>
#include <string.h>

#include "core/engine/prefix_index.h"

static int pages_of(int64_t positions) {
    return (int)((positions + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS);
}

/* Place the arrays behind the struct; they were counted into the allocation in the same order. */
static void place_arrays(struct sequence *sequence, int group_count) {
    sequence->hashes = (uint64_t *)(sequence + 1);
    int32_t *next = (int32_t *)(sequence->hashes + sequence->full_count);
    sequence->tokens = next;
    next += sequence->prompt_count + sequence->max_tokens;
    for (int group = 0; group < group_count; group++) {
        sequence->groups[group].table = next;
        for (int page = 0; page < sequence->page_count_max; page++)
            next[page] = -1;
        next += sequence->page_count_max;
    }
}

static void hash_pages(struct sequence *sequence) {
    uint64_t hash = 0;
    for (int page = 0; page < sequence->full_count; page++) {
        hash = prefix_index_hash(hash, sequence->tokens + (size_t)page * KV_PAGE_TOKENS);
        sequence->hashes[page] = hash;
    }
}

enum status sequence_create(const struct engine_request *request, int group_count,
                            struct sequence **sequence, struct error *error) {
    int full_count = request->token_count / KV_PAGE_TOKENS;
    int64_t token_count_max = (int64_t)request->token_count + request->max_tokens;
    int page_count_max = pages_of(token_count_max - 1); /* the last token is never computed */
    size_t bytes =
        sizeof **sequence + (size_t)full_count * sizeof(uint64_t) +
        ((size_t)token_count_max + (size_t)group_count * (size_t)page_count_max) * sizeof(int32_t);
    struct sequence *made = malloc(bytes);
    if (!made)
        return error_no_memory(error, "a sequence");
    *made = (struct sequence){
        .prompt_count = request->token_count,
        .max_tokens = request->max_tokens,
        .page_count_max = page_count_max,
        .full_count = full_count,
        .publish_entry = -1,
        .sampling = request->sampling,
        .key = request->key,
        .user = request->user,
    };
    place_arrays(made, group_count);
    memcpy(made->tokens, request->tokens, (size_t)request->token_count * sizeof(int32_t));
    hash_pages(made);
    *sequence = made;
    return STATUS_OK;
}

void sequence_destroy(struct sequence *sequence) {
    free(sequence);
}

int sequence_prefill_left(const struct sequence *sequence) {
    int left = sequence->prompt_count - sequence->computed;
    return left > 0 ? left : 0;
}

int sequence_hit_max(const struct sequence *sequence) {
    return (sequence->prompt_count - 1) / KV_PAGE_TOKENS;
}

int sequence_window_first(int computed, int window) {
    if (window == 0 || computed < window)
        return 0;
    return (computed - window + 1) / KV_PAGE_TOKENS;
}

/* `window - 1` positions behind, `chunk` of their own, at any offset in a page: n consecutive
 * positions touch at most (n + 2 × 64 - 2) / 64 pages. */
int64_t sequence_window_span(int window, int chunk) {
    int64_t positions = (int64_t)window - 1 + chunk;
    return (positions + 2 * KV_PAGE_TOKENS - 2) / KV_PAGE_TOKENS;
}

int sequence_window_pages(const struct sequence *sequence, int window, int chunk) {
    int64_t pages = sequence_window_span(window, chunk);
    return pages < sequence->page_count_max ? (int)pages : sequence->page_count_max;
}
