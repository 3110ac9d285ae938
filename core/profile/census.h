/* Which full pages of prompts were computed more than once: what a prefix cache would have saved,
 * or would have if its pages had lived longer. Pages are known by a chain of hashes of all tokens
 * up to their end; tokens come from the step plans, so nothing else need tell. */
#ifndef CORE_PROFILE_CENSUS_H
#define CORE_PROFILE_CENSUS_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/model/step_plan.h"

struct census {
    uint64_t *seen; /* [capacity] open addressing, 0: free */
    int64_t capacity, seen_count;
    uint64_t *page_chains; /* [page_count] of group 0: the chain at the page's end, 0: not full */
    int64_t page_count;
    int64_t tokens, pairs;                   /* of prompts, computed */
    int64_t repeated_tokens, repeated_pairs; /* of pages that had been computed before */
};

enum status census_init(struct census *census, int64_t page_count, struct error *error);
void census_deinit(struct census *census);

/* All prompt runs of a step. Once the table is full, new pages are not noted any more. */
void census_add_step(struct census *census, const struct step_plan *plan);

#endif
