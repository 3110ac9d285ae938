/* Splitting is done in two passes over the same cutter: one counts the parts, one makes them. */
#include "tokenizer/chat_split.h"

#include <string.h>

#include "tokenizer/chat_methods.h"

struct cutter {
    struct view bytes;
    const struct view *separator; /* NULL: runs of blanks */
    int64_t cuts_max;             /* negative: no limit */
    int64_t cuts;
    size_t first, end; /* what is not yet split */
    bool from_right;
    bool done;
};

static bool is_blank_at(struct view bytes, size_t at, size_t *length) {
    int32_t code;
    *length = chat_string_character(bytes.bytes + at, bytes.length - at, &code);
    return chat_string_is_space(code);
}

/* Trim blanks off what is left, on both sides. */
static void trim_rest(struct cutter *cutter, int sides) {
    struct view rest = {cutter->bytes.bytes + cutter->first, cutter->end - cutter->first};
    size_t first;
    size_t end;
    chat_methods_strip(rest, NULL, sides, &first, &end);
    cutter->end = cutter->first + end;
    cutter->first += first;
}

/* Where the next separator inside what is left begins and ends; false: none. */
static bool find_cut(const struct cutter *cutter, size_t *cut, size_t *after) {
    struct view rest = {cutter->bytes.bytes, cutter->end};
    if (!cutter->separator) {
        for (size_t length, at = cutter->first; at < cutter->end; at += length) {
            if (!is_blank_at(rest, at, &length))
                continue;
            *cut = at;
            *after = at + length;
            while (*after < cutter->end && is_blank_at(rest, *after, &length))
                *after += length;
            return true;
        }
        return false;
    }
    *cut = chat_string_find(rest, *cutter->separator, cutter->first);
    *after = *cut + cutter->separator->length;
    return *cut != SIZE_MAX;
}

/* The same from the right: the last separator. */
static bool find_last_cut(const struct cutter *cutter, size_t *cut, size_t *after) {
    size_t width = cutter->separator ? cutter->separator->length : 1;
    for (size_t at = cutter->end; at >= cutter->first + width; at--) {
        size_t length = width;
        size_t start = at - width;
        struct view bytes = {cutter->bytes.bytes, cutter->end};
        bool hit = cutter->separator
                       ? memcmp(bytes.bytes + start, cutter->separator->bytes, width) == 0
                       : is_blank_at(bytes, start, &length);
        if (!hit)
            continue;
        struct view head = {bytes.bytes + cutter->first, start - cutter->first};
        size_t first = 0;
        size_t end = head.length;
        if (!cutter->separator)
            chat_methods_strip(head, NULL, CHAT_METHODS_RIGHT, &first, &end);
        *cut = cutter->first + end;
        *after = start + length;
        return true;
    }
    return false;
}

/* The next part; false when there are no more. */
static bool next_part(struct cutter *cutter, size_t *first, size_t *end) {
    if (cutter->done)
        return false;
    if (!cutter->separator)
        trim_rest(cutter, cutter->from_right ? CHAT_METHODS_RIGHT : CHAT_METHODS_LEFT);
    if (!cutter->separator && cutter->first == cutter->end)
        return false;
    size_t cut;
    size_t after;
    bool may_cut = cutter->cuts_max < 0 || cutter->cuts < cutter->cuts_max;
    bool found = may_cut && (cutter->from_right ? find_last_cut(cutter, &cut, &after)
                                                : find_cut(cutter, &cut, &after));
    if (!found) {
        *first = cutter->first;
        *end = cutter->end;
        cutter->done = true;
        return true;
    }
    *first = cutter->from_right ? after : cutter->first;
    *end = cutter->from_right ? cutter->end : cut;
    if (cutter->from_right)
        cutter->end = cut;
    else
        cutter->first = after;
    cutter->cuts++;
    return true;
}

static enum status split(struct chat_evaluator *evaluator, const struct chat_string *string,
                         struct cutter cutter, struct chat_value *result) {
    struct cutter counter = cutter;
    size_t first;
    size_t end;
    size_t count = 0;
    TRY(chat_eval_charge(evaluator, string->length));
    while (next_part(&counter, &first, &end))
        count++;
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, count, &list));
    TRY(chat_eval_charge(evaluator, count * 16));
    for (size_t i = 0; next_part(&cutter, &first, &end); i++) {
        size_t at = cutter.from_right ? count - 1 - i : i;
        TRY(chat_eval_slice(evaluator, string, first, end - first, &list->items[at]));
    }
    *result = (struct chat_value){.kind = CHAT_LIST, .as.list = list};
    return STATUS_OK;
}

static enum status split_by(struct chat_evaluator *evaluator, struct chat_value receiver,
                            const struct chat_value *bound, bool from_right,
                            struct chat_value *result) {
    struct cutter cutter = {.bytes = chat_string_view(receiver.as.string),
                            .cuts_max = -1,
                            .end = receiver.as.string->length,
                            .from_right = from_right};
    struct view separator = {0};
    if (bound[1].kind != CHAT_ABSENT && !chat_value_to_integer(bound[1], &cutter.cuts_max))
        return chat_eval_fail(evaluator, "split needs an integer, not %s",
                              chat_value_type_name(bound[1]));
    if (bound[0].kind == CHAT_STRING) {
        separator = chat_string_view(bound[0].as.string);
        cutter.separator = &separator;
        if (separator.length == 0)
            return chat_eval_fail(evaluator, "empty separator");
    } else if (bound[0].kind != CHAT_ABSENT && bound[0].kind != CHAT_NONE) {
        return chat_eval_fail(evaluator, "split needs a str, not %s",
                              chat_value_type_name(bound[0]));
    }
    return split(evaluator, receiver.as.string, cutter, result);
}

enum status chat_split_call(struct chat_evaluator *evaluator, struct chat_value receiver,
                            const struct chat_value *bound, struct chat_value *result) {
    return split_by(evaluator, receiver, bound, false, result);
}

enum status chat_split_right(struct chat_evaluator *evaluator, struct chat_value receiver,
                             const struct chat_value *bound, struct chat_value *result) {
    return split_by(evaluator, receiver, bound, true, result);
}

/* Bytes of the line end at `at`, 0 if there is none. */
static size_t line_end(struct view bytes, size_t at) {
    int32_t code;
    size_t length = chat_string_character(bytes.bytes + at, bytes.length - at, &code);
    if (code == '\r' && at + 1 < bytes.length && bytes.bytes[at + 1] == '\n')
        return 2;
    bool ends = (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
                code == 0x2028 || code == 0x2029;
    return ends ? length : 0;
}

/* One line from *first: its end without its line end, and where the next begins. */
static void next_line(struct view bytes, size_t first, size_t *end, size_t *next) {
    size_t width = 0;
    int32_t code;
    *end = first;
    while (*end < bytes.length && (width = line_end(bytes, *end)) == 0)
        *end += chat_string_character(bytes.bytes + *end, bytes.length - *end, &code);
    *next = *end + width;
}

enum status chat_split_lines(struct chat_evaluator *evaluator, struct chat_value receiver,
                             const struct chat_value *bound, struct chat_value *result) {
    struct view bytes = chat_string_view(receiver.as.string);
    size_t count = 0;
    size_t end;
    TRY(chat_eval_charge(evaluator, bytes.length));
    for (size_t first = 0; first < bytes.length; count++)
        next_line(bytes, first, &end, &first);
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, count, &list));
    TRY(chat_eval_charge(evaluator, count * 16));
    size_t first = 0;
    for (size_t i = 0; i < count; i++) {
        size_t next;
        next_line(bytes, first, &end, &next);
        size_t stop = chat_value_truth(bound[0]) ? next : end;
        TRY(chat_eval_slice(evaluator, receiver.as.string, first, stop - first, &list->items[i]));
        first = next;
    }
    *result = (struct chat_value){.kind = CHAT_LIST, .as.list = list};
    return STATUS_OK;
}
