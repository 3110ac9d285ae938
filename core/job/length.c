/* Length policies on the token stream. A token belongs to whoever owns its first byte, so a token
 * that straddles the border of the document is counted and cut on one side only. */
#include "core/job/length.h"

#include <stdio.h>
#include <string.h>

/* Walks spans beside tokens: both are in order of bytes. */
struct owner_walk {
    const struct token_list *list;
    const struct marked_text *text;
    size_t span;     /* the span looked at */
    size_t span_end; /* its end in bytes */
};

static struct owner_walk start_walk(const struct token_list *list, const struct marked_text *text) {
    struct owner_walk walk = {.list = list, .text = text};
    walk.span_end = text->span_count > 0 ? text->spans[0].length : 0;
    return walk;
}

/* A BOS that the tokenizer put in front begins where the token after it begins, and has no bytes.
 */
static bool is_added_bos(const struct token_list *list, size_t token) {
    return token == 0 && list->count > 1 && list->offsets[0] == list->offsets[1];
}

/* Tokens must be asked for in order. */
static bool in_document(struct owner_walk *walk, size_t token) {
    while (walk->span < walk->text->span_count && walk->list->offsets[token] >= walk->span_end) {
        if (++walk->span < walk->text->span_count)
            walk->span_end += walk->text->spans[walk->span].length;
    }
    return walk->span < walk->text->span_count &&
           walk->text->spans[walk->span].origin == ORIGIN_DOCUMENT &&
           !is_added_bos(walk->list, token);
}

static long long count_document(const struct token_list *list, const struct marked_text *text) {
    struct owner_walk walk = start_walk(list, text);
    long long count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += in_document(&walk, i);
    return count;
}

/* The document's tokens that stay: [0, head) and [tail, total), counted among themselves. */
struct kept_range {
    long long head;
    long long tail;
    long long total;
};

/* Whether a token begins in the middle of a UTF-8 character. */
static bool splits_character(const struct token_list *list, const struct marked_text *text,
                             size_t token) {
    size_t offset = list->offsets[token];
    return offset < text->text.length && ((unsigned char)text->text.bytes[offset] & 0xC0) == 0x80;
}

/* Move both cuts to borders of characters, keeping less. */
static void align_cuts(const struct token_list *list, const struct marked_text *text,
                       struct kept_range *range) {
    struct owner_walk walk = start_walk(list, text);
    long long index = 0;
    long long head = 0; /* the last border at or before range->head */
    long long tail = range->total;
    for (size_t i = 0; i < list->count; i++) {
        if (!in_document(&walk, i))
            continue;
        bool border = !splits_character(list, text, i);
        if (border && index <= range->head)
            head = index;
        if (border && index >= range->tail && tail == range->total)
            tail = index;
        index++;
    }
    if (head == 0 && tail == range->total)
        return; /* room for less than a character: half of one is better than nothing */
    range->head = head;
    range->tail = tail;
}

static void remove_cut(struct token_list *list, const struct marked_text *text,
                       const struct kept_range *range) {
    struct owner_walk walk = start_walk(list, text);
    long long index = 0;
    size_t written = 0;
    size_t count = list->count;
    for (size_t i = 0; i < count; i++) {
        bool keep = true;
        uint32_t offset = list->offsets[i];
        if (in_document(&walk, i)) {
            keep = index < range->head || index >= range->tail;
            index++;
        }
        if (!keep)
            continue;
        list->ids[written] = list->ids[i];
        list->offsets[written++] = offset;
    }
    list->count = written;
}

static void describe(const struct kept_range *range, char *kept, size_t bytes) {
    if (range->tail == range->total)
        snprintf(kept, bytes, "tokens 0-%lld of %lld", range->head - 1, range->total);
    else if (range->head == 0)
        snprintf(kept, bytes, "tokens %lld-%lld of %lld", range->tail, range->total - 1,
                 range->total);
    else
        snprintf(kept, bytes, "tokens 0-%lld and %lld-%lld of %lld", range->head - 1, range->tail,
                 range->total - 1, range->total);
}

static struct kept_range choose_range(enum too_long policy, long long total, long long budget) {
    struct kept_range range = {.head = budget, .tail = total, .total = total};
    if (policy == TOO_LONG_KEEP_TAIL)
        range.head = 0;
    else if (policy == TOO_LONG_KEEP_ENDS)
        range.head = budget - budget / 2;
    range.tail = total - (budget - range.head);
    return range;
}

static enum status fail_too_long(const struct length_outcome *outcome, long long context,
                                 long long max_tokens, struct error *error) {
    long long prompt = outcome->prompt_tokens - outcome->document_tokens;
    long long budget = context - max_tokens - prompt;
    if (budget < 1)
        return error_set(error, STATUS_OVER_LIMIT,
                         "%lld context - %lld output - %lld prompt leaves no room for the "
                         "document's %lld tokens: try a shorter prompt, a smaller --max-tokens or "
                         "a larger --context",
                         context, max_tokens, prompt, outcome->document_tokens);
    return error_set(error, STATUS_OVER_LIMIT,
                     "document has %lld tokens, %lld context - %lld output - %lld prompt leaves "
                     "%lld: try --too-long keep-head or a smaller --max-tokens",
                     outcome->document_tokens, context, max_tokens, prompt, budget);
}

enum status length_apply(struct token_list *list, const struct marked_text *text,
                         enum too_long policy, long long context, long long max_tokens,
                         struct length_outcome *outcome, struct error *error) {
    long long total = (long long)list->count;
    *outcome = (struct length_outcome){.prompt_tokens = total};
    outcome->document_tokens = count_document(list, text);
    outcome->used_tokens = outcome->document_tokens;
    if (total <= context - max_tokens)
        return STATUS_OK;
    long long budget = context - max_tokens - (total - outcome->document_tokens);
    if (policy == TOO_LONG_ERROR || budget < 1)
        return fail_too_long(outcome, context, max_tokens, error);
    struct kept_range range = choose_range(policy, outcome->document_tokens, budget);
    align_cuts(list, text, &range);
    remove_cut(list, text, &range);
    outcome->used_tokens = range.head + (range.total - range.tail);
    outcome->prompt_tokens = (long long)list->count;
    outcome->shortened = true;
    describe(&range, outcome->kept, sizeof outcome->kept);
    return STATUS_OK;
}
