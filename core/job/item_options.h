/* A document's own options (a JSONL line's `options`, an OpenAI body) applied over the run's. */
#ifndef CORE_JOB_ITEM_OPTIONS_H
#define CORE_JOB_ITEM_OPTIONS_H

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/job/item.h"

/* `options` may be NULL. Fills item->settings (which already holds the run's) and item->own_prompt,
 * and begins the item's document hash with the options. On failure *code is "unknown_option" or
 * "bad_option". */
enum status item_options_apply(struct item *item, const json_t *options, const char **code,
                               struct error *error);

#endif
