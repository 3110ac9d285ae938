/* A cursor over the text; every error quotes the whole of it and says what was expected where. */
#include "core/kernels/bench_batch.h"

#include <stdbool.h>
#include <string.h>

struct cursor {
    const char *text, *at;
};

static enum status fail(const struct cursor *cursor, const char *expected, struct error *error) {
    return error_set(error, STATUS_BAD_INPUT, "batch '%s': expected %s at '%s'", cursor->text,
                     expected, cursor->at[0] != '\0' ? cursor->at : "its end");
}

static bool take(struct cursor *cursor, const char *word) {
    size_t length = strlen(word);
    bool found = strncmp(cursor->at, word, length) == 0;
    cursor->at += found ? length : 0;
    return found;
}

static bool at_digit(const struct cursor *cursor) {
    return cursor->at[0] >= '0' && cursor->at[0] <= '9';
}

/* 1 ≤ value ≤ most. `what` names it. */
static enum status take_number(struct cursor *cursor, const char *what, int most, int *value,
                               struct error *error) {
    const char *start = cursor->at;
    long long number = 0;
    if (!at_digit(cursor) || cursor->at[0] == '0')
        return fail(cursor, what, error);
    for (; at_digit(cursor) && number <= most; cursor->at++)
        number = 10 * number + (cursor->at[0] - '0');
    if (cursor->at[0] == 'k' && cursor->at[1] != 'v' && take(cursor, "k")) /* `q1kv2`: 1, kv 2 */
        number *= 1024;
    if (number > most) {
        cursor->at = start;
        return error_set(error, STATUS_BAD_INPUT, "batch '%s': at '%s': more than %d", cursor->text,
                         cursor->at, most);
    }
    *value = (int)number;
    return STATUS_OK;
}

static enum status take_group(struct cursor *cursor, struct bench_batch_group *group,
                              struct error *error) {
    const char *start = cursor->at;
    group->sequence_count = 1;
    if (at_digit(cursor))
        TRY(take_number(cursor, "a number of sequences", BENCH_BATCH_SEQUENCES_MAX,
                        &group->sequence_count, error));
    if (!take(cursor, "q"))
        return fail(cursor, "'q' and a number of queries", error);
    TRY(take_number(cursor, "a number of queries", BENCH_BATCH_CONTEXT_MAX, &group->query_count,
                    error));
    group->context = group->query_count;
    if (take(cursor, "kv") || take(cursor, "s"))
        TRY(take_number(cursor, "a context", BENCH_BATCH_CONTEXT_MAX, &group->context, error));
    if (group->context >= group->query_count)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_INPUT,
                     "batch '%s': at '%s': a context of %d holds no %d queries", cursor->text,
                     start, group->context, group->query_count);
}

enum status bench_batch_parse(const char *text, struct bench_batch *batch, struct error *error) {
    struct cursor cursor = {text, text};
    *batch = (struct bench_batch){0};
    do {
        if (batch->group_count == BENCH_BATCH_GROUPS_MAX)
            return error_set(error, STATUS_BAD_INPUT, "batch '%s': more than %d groups", text,
                             BENCH_BATCH_GROUPS_MAX);
        struct bench_batch_group *group = &batch->groups[batch->group_count++];
        TRY(take_group(&cursor, group, error));
        batch->sequence_count += group->sequence_count;
    } while (take(&cursor, "_") || take(&cursor, ","));
    if (cursor.at[0] != '\0')
        return fail(&cursor, "'_', ',' or nothing more", error);
    if (batch->sequence_count > BENCH_BATCH_SEQUENCES_MAX)
        return error_set(error, STATUS_BAD_INPUT, "batch '%s': more than %d sequences", text,
                         BENCH_BATCH_SEQUENCES_MAX);
    return STATUS_OK;
}
