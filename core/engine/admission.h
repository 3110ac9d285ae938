/* Who may start. A waiting sequence is admitted only if everything it may ever need fits beside all
 * that the running ones hold and have reserved, so nothing is ever preempted. In a global group:
 * held pages (a shared one counts once) + pages still reserved ≤ pages of the pool. In a window
 * group: the sum of the most each sequence holds at once ≤ pages of the pool; a shared page counts
 * for every sharer, because it leaves their windows at different times.
 *
 * Order is strict at the head of the queue. A later sequence passes a head that cannot start only
 * if it fits now and the head would not start at a later step than without it, in a forecast in
 * which every running sequence uses all its max_tokens. When sequences end early the head starts
 * earlier than the forecast; how much earlier may depend on who passed.
 *
 * Prefix-aware: a sequence whose prompt goes on like one that is being computed right now waits for
 * those pages instead of computing them again; others may pass it under the same rule. */
#ifndef CORE_ENGINE_ADMISSION_H
#define CORE_ENGINE_ADMISSION_H

#include "core/engine/scheduler.h"

enum { ADMISSION_PASS_MAX = 64 /* sequences behind a waiting head that are looked at in a step */ };

/* Moves from `waiting` to `running`, links the prefixes found, moves what never fits to
 * `refused`. */
void admission_run(struct scheduler *scheduler);

#endif
