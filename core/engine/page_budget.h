/* How many KV pages each group gets out of one budget of bytes. Window groups need little a
 * sequence whatever its length, so they get enough for max_sequences first (at most half of the
 * budget, or their share in a sequence that fills the context, if that is more); global groups get
 * the rest. */
#ifndef CORE_ENGINE_PAGE_BUDGET_H
#define CORE_ENGINE_PAGE_BUDGET_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/scheduler.h"

/* page_bytes, page_count: [kv_group_count]; page_bytes as foretold by the backend's `memory`. A
 * budget that holds no page of some group is `OVER_LIMIT`, with the numbers. */
enum status page_budget_split(const struct model *model, const struct engine_options *options,
                              const uint64_t *page_bytes, int64_t *page_count, struct error *error);

/* Sizes that make sense at all; before anything is computed from them. */
enum status page_budget_check(const struct engine_options *options, struct error *error);

/* The scheduler's options under these: what the engine and the dry run schedule with. */
enum status page_budget_scheduling(const struct model *model, const struct engine_options *options,
                                   const uint64_t *page_bytes, struct scheduler_options *scheduling,
                                   struct error *error);

#endif
