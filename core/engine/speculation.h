/* Guesses in the scheduler's steps: who guesses, how far, and what of it stands. The rows of a
 * guess are rows of its sequence like any others, and a row's bits depend on its own sequence
 * alone, so a guess that is the token sampled before it is computed as it would have been a step
 * later. The rest is taken back: `computed` returns to the last row that stands, and the next run
 * zeroes what lies behind it (step_run.stale_count). Only prompt pages are ever published, and
 * guesses are written behind the prompt. */
#ifndef CORE_ENGINE_SPECULATION_H
#define CORE_ENGINE_SPECULATION_H

#include "core/engine/scheduler.h"

/* Nothing when the options do not speculate. */
enum status speculation_init(struct scheduler *scheduler, struct error *error);
void speculation_deinit(struct scheduler *scheduler);

/* Rows of a decoding sequence that one step computes at most: windows have room for a run as long
 * as a chunk of the prompt, so no longer one is made. */
int speculation_run_max(const struct scheduler *scheduler, const struct sequence *sequence);

/* What the other rows of the next step leave of LOOKUP_ROWS_MAX; `*decoding` is counted on the way.
 */
int speculation_room(const struct scheduler *scheduler, int *decoding);

/* Up to `most` guesses behind the tokens of a decoding sequence: their number. It never computes
 * further than it may go: with all guesses right it has its max_tokens. */
int speculation_guess(struct scheduler *scheduler, struct sequence *sequence, int most);

/* The sequence guesses no more: its index is free. */
void speculation_end(struct scheduler *scheduler, struct sequence *sequence);

/* The sampled tokens that stand become output; positions of the other guesses count as never
 * computed. False: the logits are not finite, and it is over. */
bool speculation_take(struct scheduler *scheduler, struct scheduler_run *work,
                      const struct scheduler_outcome *outcomes);

#endif
