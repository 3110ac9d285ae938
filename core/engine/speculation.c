/* See speculation.h. Nothing is allocated after init: there is an index for every sequence that can
 * run, and guesses lie in the sequence's own token array, where output will be. */
#include "core/engine/speculation.h"

#include <stdlib.h>

enum status speculation_init(struct scheduler *scheduler, struct error *error) {
    const struct scheduler_options *options = &scheduler->options;
    if (!options->speculate)
        return STATUS_OK;
    size_t count = (size_t)options->max_sequences;
    size_t places = lookup_place_count(options->context);
    scheduler->lookups = calloc(count, sizeof *scheduler->lookups);
    scheduler->lookup_places = calloc(count * places, sizeof *scheduler->lookup_places);
    if (!scheduler->lookups || !scheduler->lookup_places)
        return error_no_memory(error, "indexes for guesses");
    for (size_t i = count; i-- > 0;) {
        scheduler->lookups[i].places = scheduler->lookup_places + i * places;
        scheduler->lookups[i].next = scheduler->lookups_free;
        scheduler->lookups_free = &scheduler->lookups[i];
    }
    return STATUS_OK;
}

void speculation_deinit(struct scheduler *scheduler) {
    free(scheduler->lookups);
    free(scheduler->lookup_places);
}

int speculation_run_max(const struct scheduler *scheduler, const struct sequence *sequence) {
    int chunk = scheduler_chunk_max(scheduler, sequence);
    if (!scheduler->options.speculate)
        return 1;
    return chunk < 1 + LOOKUP_GUESSES_MAX ? chunk : 1 + LOOKUP_GUESSES_MAX;
}

int speculation_guess(struct scheduler *scheduler, struct sequence *sequence, int most) {
    int left = sequence->max_tokens - sequence->output_count - 1;
    int rows = speculation_run_max(scheduler, sequence) - 1;
    most = most < left ? most : left;
    most = most < rows ? most : rows;
    if (sequence->guesses_no_more || most <= 0)
        return 0;
    if (!sequence->lookup) {
        sequence->lookup = scheduler->lookups_free;
        scheduler->lookups_free = sequence->lookup->next;
        lookup_open(sequence->lookup, sequence->prompt_count + sequence->max_tokens);
    }
    return lookup_guess(sequence->lookup, sequence->tokens,
                        sequence->prompt_count + sequence->output_count, most);
}

void speculation_end(struct scheduler *scheduler, struct sequence *sequence) {
    if (!sequence->lookup)
        return;
    sequence->lookup->next = scheduler->lookups_free;
    scheduler->lookups_free = sequence->lookup;
    sequence->lookup = NULL;
}

int speculation_room(const struct scheduler *scheduler, int *decoding) {
    int64_t prompt_rows = 0;
    *decoding = 0;
    for (int i = 0; i < scheduler->running_count; i++) {
        int left = sequence_prefill_left(scheduler->running[i]);
        prompt_rows += left;
        *decoding += left == 0;
    }
    if (prompt_rows > scheduler->options.batch_tokens)
        prompt_rows = scheduler->options.batch_tokens;
    int room = LOOKUP_ROWS_MAX - *decoding - (int)prompt_rows;
    return scheduler->options.speculate && room > 0 ? room : 0;
}

/* How many of the step's tokens stand: one behind the known tokens, and one behind each guess that
 * was the token sampled there. `*finite`: whether nothing on the way was not. */
static int count_tokens(const struct scheduler_run *work, const struct scheduler_outcome *outcomes,
                        bool *finite) {
    const struct sequence *sequence = work->sequence;
    const int32_t *guesses = sequence->tokens + sequence->prompt_count + sequence->output_count;
    for (int count = 0;; count++) {
        *finite = outcomes[count].finite;
        if (!*finite)
            return count;
        if (count == work->guess_count || guesses[count] != outcomes[count].token)
            return count + 1;
    }
}

/* A guess that no one would have computed may be what made a row not finite, its own or
 * one before it in the same page: the sequence goes on from the last row that was, without guesses.
 */
bool speculation_take(struct scheduler *scheduler, struct scheduler_run *work,
                      const struct scheduler_outcome *outcomes) {
    struct sequence *sequence = work->sequence;
    bool finite;
    int count = count_tokens(work, outcomes, &finite);
    if (!finite && work->guess_count == 0)
        return false;
    for (int i = 0; i < count; i++)
        sequence->tokens[sequence->prompt_count + sequence->output_count++] = outcomes[i].token;
    work->token_count = count;
    sequence->computed -= work->guess_count + 1 - count;
    sequence->stats.guessed_tokens += work->guess_count;
    sequence->stats.accepted_tokens += count > 0 ? count - 1 : 0;
    if (sequence->lookup)
        lookup_learn(sequence->lookup, work->guess_count, count > 0 ? count - 1 : 0);
    sequence->guesses_no_more |= !finite;
    if (!finite)
        speculation_end(scheduler, sequence);
    return true;
}
