/* From sampled tokens to a finished text: streaming decode, end tokens, stop strings across token
 * borders. */
#ifndef CORE_JOB_GENERATION_H
#define CORE_JOB_GENERATION_H

#include "core/engine/engine.h"
#include "core/job/item.h"

/* The engine's request for an item; the tokens are borrowed. */
struct engine_request generation_request(const struct item *item);

/* Take a token of the item's sequence; `last` when the engine gives no more. True when the item is
 * finished: its output, finish_reason and stop_string are then set. */
bool generation_take_token(struct item *item, const struct tokenizer *tokenizer, int32_t token,
                           bool last);

#endif
